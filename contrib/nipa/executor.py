#!/usr/bin/env python3
"""An executor for NIPA, the continuous integration of Linux's netdev: runs `stacklab regress` on each new branch.

    executor.py --branches https://netdev.bots.linux.dev/static/nipa/branches.json --tree ~/linux \\
        --results /srv/results --url https://example.org/results

It reads the list of branches, fetches the newest one into a git repository, and compares it with the commit that it is based on. A
result file and `results.json`, the list of result files, go to a folder that a web server serves. The repository's files do not change.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
import urllib.request

GROUP = "stacklab-regress"
# Exit codes of stacklab regress.
GOOD, BAD, BROKEN = 0, 1, 125
SECONDS = 4 * 3600


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--branches", required=True, help="address or file of the list of branches")
    parser.add_argument("--tree", required=True, help="a git repository of Linux, into which branches are fetched")
    parser.add_argument("--results", required=True, help="the folder of results")
    parser.add_argument("--url", required=True, help="the address at which that folder is served")
    parser.add_argument("--name", default="stacklab", help="the name of this executor")
    parser.add_argument("--baseline", help="what to compare with, where the list names no base of a branch")
    parser.add_argument("--remote", default="origin", help="the remote to fetch from, where the list names none")
    parser.add_argument("--fail-if", action="append", default=[], help="a condition of stacklab regress; may be repeated")
    parser.add_argument("--stacklab", default="stacklab", help="the program")
    parser.add_argument("--period", type=float, default=60, help="seconds between two looks at the list")
    parser.add_argument("--once", action="store_true", help="test the newest branch, if it has no result, and end")
    return parser.parse_args()


def load(path, default):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def store(path, content):
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    os.replace(path + ".part", path)


def branches(source):
    if "://" not in source:
        return load(source, [])
    with urllib.request.urlopen(source, timeout=60) as answer:
        return json.load(answer)


def git(tree, *words):
    done = subprocess.run(["git", "-C", tree, *words], capture_output=True, text=True, check=True, timeout=SECONDS)
    return done.stdout.strip()


def fetch(asked, branch):
    """The commits of a branch and of its base."""
    git(asked.tree, "fetch", "-q", branch.get("url") or asked.remote, branch["branch"])
    candidate = git(asked.tree, "rev-parse", "FETCH_HEAD")
    baseline = branch.get("base") or asked.baseline
    if not baseline:
        sys.exit(f"the list names no base of {branch['branch']}: use --baseline")
    return git(asked.tree, "rev-parse", "--verify", f"{baseline}^{{commit}}"), candidate


def regress(asked, baseline, candidate, log):
    """The exit code and the comparison; there is none where a kernel cannot be built or does not boot."""
    command = [asked.stacklab, "regress", "--tree", asked.tree, "--baseline", baseline, "--candidate", candidate, "--format", "json"]
    command += [word for condition in asked.fail_if for word in ("--fail-if", condition)]
    with open(log, "w", encoding="utf-8") as errors:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=SECONDS)
    return done.returncode, json.loads(done.stdout) if done.returncode in (GOOD, BAD) else None


def last_line(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return lines[-1] if lines else "no reason was given"


def results(code, comparison, link, seconds, reason):
    """A test for each cell, with nested results for each condition. A kernel that does not build or boot is one failed test."""
    test = {"group": GROUP, "link": link, "time": seconds, "crashes": []}
    if comparison is None:
        is_broken = code == BROKEN
        outcome = "fail" if is_broken else "skip"
        return [{**test, "test": "boot", "result": outcome, "retry": outcome, "crashes": [reason] * is_broken, "results": []}]
    cells = {}
    for check in comparison["checks"]:
        one = {"test": check["condition"], "result": "fail" if check["is_bad"] else "pass", "change": check["change"]}
        cells.setdefault(check["cell"], []).append(one)
    found = []
    for cell, nested in cells.items():
        outcome = "fail" if any(one["result"] == "fail" for one in nested) else "pass"
        # Counts repeat to the bit: a second run has the same result.
        found.append({**test, "test": cell.replace("/", "-"), "result": outcome, "retry": outcome, "results": nested})
    return found


def run(asked, branch):
    start = datetime.datetime.now(datetime.timezone.utc)
    name = f"results-{branch['branch'].replace('/', '-')}.json"
    log = os.path.join(asked.results, name.replace(".json", ".log"))
    link = f"{asked.url.rstrip('/')}/{os.path.basename(log)}"
    try:
        code, comparison = regress(asked, *fetch(asked, branch), log)
        reason = last_line(log) if comparison is None else ""
    except (subprocess.SubprocessError, json.JSONDecodeError, OSError) as error:
        code, comparison, reason = None, None, str(error)
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{reason}\n")
    end = datetime.datetime.now(datetime.timezone.utc)
    entry = {"executor": asked.name, "branch": branch["branch"], "start": str(start), "end": str(end), "link": link}
    entry["results"] = results(code, comparison, link, round((end - start).total_seconds(), 1), reason)
    store(os.path.join(asked.results, name), entry)
    return f"{asked.url.rstrip('/')}/{name}"


def newest_without_result(asked):
    known = {entry["branch"] for entry in load(os.path.join(asked.results, "results.json"), []) if entry["url"]}
    listed = sorted(branches(asked.branches), key=lambda branch: datetime.datetime.fromisoformat(branch["date"]))
    return listed[-1] if listed and listed[-1]["branch"] not in known else None


def main():
    asked = options()
    os.makedirs(asked.results, exist_ok=True)
    manifest = os.path.join(asked.results, "results.json")
    while True:
        try:
            branch = newest_without_result(asked)
        except (OSError, ValueError) as error:
            if asked.once:
                sys.exit(f"cannot read the list of branches: {error}")
            print(f"cannot read the list of branches: {error}", file=sys.stderr)
            branch = None
        if branch:
            others = [entry for entry in load(manifest, []) if entry["branch"] != branch["branch"]]
            entry = {"url": None, "branch": branch["branch"], "executor": asked.name}
            # Without an address, it is in progress.
            store(manifest, [*others, entry])
            entry["url"] = run(asked, branch)
            store(manifest, [*others, entry])
        if asked.once:
            return
        time.sleep(asked.period)


if __name__ == "__main__":
    main()
