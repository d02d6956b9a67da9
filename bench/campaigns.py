"""Campaigns of the release build, or of the program that STACKLAB names, for the benchmarks that compare their findings."""

import contextlib
import csv
import datetime
import io
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STACKLAB = os.environ.get("STACKLAB", os.path.join(ROOT, "target/release/stacklab"))

# The exit code where nothing is valid.
NOTHING = 6


def need():
    """Ends with a reason where no campaign can be run."""
    if os.geteuid() != 0 or not os.access(STACKLAB, os.X_OK):
        sys.exit(f"{os.path.basename(sys.argv[0])}: needs root, and {STACKLAB}: make build")


class Record:
    """The record of a study that was run."""

    def __init__(self, path):
        self.path = path

    def findings(self):
        """The findings of its JSON report."""
        return json.loads(self.ask("report", "--format", "json"))

    def slices(self):
        """A row for each slice and host (docs/export.md)."""
        return list(csv.DictReader(io.StringIO(self.ask("export", "--slices"))))

    def ask(self, verb, *words):
        """What a command says about the record."""
        return subprocess.run([STACKLAB, verb, self.path, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


@contextlib.contextmanager
def recorded(study, seed):
    """Runs a study, of TOML text, and gives its record, which is removed afterwards."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path, record = os.path.join(folder, "study.toml"), os.path.join(folder, "study.stacklab")
        with open(path, "w", encoding="ascii") as file:
            file.write(study)
        run = [STACKLAB, "run", path, "--out", record, "--seed", str(seed)]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield Record(record)


def findings(study, seed):
    """Runs a study, of TOML text, and gives the findings of its JSON report."""
    with recorded(study, seed) as record:
        return record.findings()


def explained(*words):
    """Runs `stacklab explain` of two arms, and gives the costs of its JSON; None if too little was sampled to say anything."""
    ran = subprocess.run([STACKLAB, "explain", *words, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode not in (0, NOTHING):
        sys.exit(f"{' '.join(ran.args)}: exit code {ran.returncode}: {ran.stderr}")
    costs = json.loads(ran.stdout)["explained"]
    return costs[0] if costs else None


def build():
    """How the program was built."""
    return "a release build" if "/release/" in STACKLAB else "a build for tests: the engine optimised, the rest not"


def keep(name, words, lines):
    """Prints what was found, below what it came from, and keeps it in bench/results/DATE-NAME.txt."""
    now = datetime.datetime.now(datetime.timezone.utc)
    version = subprocess.run([STACKLAB, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    machine = f"{os.cpu_count()} processors, Linux {os.uname().release}"
    command = " ".join([f"bench/{os.path.basename(sys.argv[0])}", *map(str, words)])
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True).stdout.strip()
    text = "\n".join([f"{command}: {now:%Y-%m-%d %H:%M} UTC, {version} ({commit or 'no commit'}), {machine}", *lines]) + "\n"
    print(text, end="")
    with open(os.path.join(ROOT, f"bench/results/{now:%Y-%m-%d}-{name}.txt"), "w", encoding="utf-8") as file:
        file.write(text)
