"""The faults of `bench/fleet faults`: what is measured despite them, beside an undisturbed campaign."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

# Decides what is killed, and the order and times of the faults.
SEED = 1
# The user and group "nobody": PostgreSQL does not run as root.
NOBODY = 65534
# Seconds within which a campaign ends after the last fault.
LIMIT = 1800


class Postgres:
    """A server on a Unix socket, as an unprivileged user."""

    def __init__(self, folder):
        os.chmod(folder, 0o755)
        self.home = f"{folder}/postgres"
        os.mkdir(self.home)
        os.chown(self.home, NOBODY, NOBODY)
        below = "/usr/lib/postgresql"
        if not os.path.isdir(below):
            sys.exit("bench/fleet: needs PostgreSQL: apt-get install postgresql")
        self.programs = f"{below}/{max(os.listdir(below), key=float)}/bin"
        self.call("initdb", "-U", "lab", "-A", "trust", "-E", "UTF8", "--locale=C", "-D", f"{self.home}/data")
        self.run()

    def words(self, program, *words):
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"{self.programs}/{program}", *words]

    def call(self, program, *words):
        return subprocess.run(self.words(program, *words), check=True, cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

    def run(self):
        """Starts the server, and waits until it answers."""
        words = self.words("postgres", "-D", f"{self.home}/data", "-k", self.home, "-c", "listen_addresses=")
        self.server = subprocess.Popen(words, cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                return self.ask("postgres", "SELECT 1")
            except subprocess.CalledProcessError:
                time.sleep(0.1)
        sys.exit("bench/fleet: PostgreSQL does not start")

    def end(self, name=signal.SIGKILL):
        self.server.send_signal(name)
        self.server.wait()

    def ask(self, database, query):
        """The rows of a query, as JSON."""
        said = self.call("psql", "-X", "-t", "-A", "-q", "-h", self.home, "-U", "lab", "-d", database, "-c", f"SELECT row_to_json(t) FROM ({query}) t")
        return [json.loads(line) for line in said.splitlines()]

    def database(self, name):
        self.call("psql", "-X", "-q", "-h", self.home, "-U", "lab", "-d", "postgres", "-c", f"CREATE DATABASE {name}")
        return f"postgres://lab@{self.home.replace('/', '%2F')}/{name}"


class Coordinator:
    """`fleet run`, which is resumed after it was killed."""

    def __init__(self, folder, words):
        self.words, self.log = words, f"{folder}/run.log"
        self.start(words)

    def start(self, words):
        with open(self.log, "a", encoding="utf-8") as log:
            self.running = subprocess.Popen(words, stdout=log, stderr=log)

    def kill(self):
        if self.running.poll() is not None:
            sys.exit("bench/fleet: the campaign ended before all faults: measure more blocks")
        self.running.kill()
        self.running.wait()

    def resume(self):
        at = self.words.index("--server")
        self.start([*self.words[:3], "--resume", *self.words[at:]])

    def end(self):
        code = self.running.wait(LIMIT)
        with open(self.log, encoding="utf-8") as log:
            text = log.read()
        if code != 0:
            sys.exit(f"bench/fleet: fleet run ended with {code}:\n{text[-4000:]}")
        return text


class Repeater(threading.Thread):
    """A client of NATS that repeats every message that opens a stream, and one of a hundred others."""

    def __init__(self):
        super().__init__(daemon=True)
        self.repeated, self.stops = 0, False
        self.socket = socket.create_connection(("10.0.0.1", 4222))
        self.socket.settimeout(1)
        login = {"user": "fleet", "pass": "bench", "echo": False, "verbose": False, "pedantic": False, "lang": "python", "version": "1"}
        self.socket.sendall(f"CONNECT {json.dumps(login)}\r\nSUB stacklab.agent.* 1\r\nSUB _INBOX.> 2\r\n".encode())

    def run(self):
        heard, stream = 0, self.socket.makefile("rb")
        while not self.stops:
            try:
                words = stream.readline().split()
                if words[:1] == [b"PING"]:
                    self.socket.sendall(b"PONG\r\n")
                if words[:1] != [b"MSG"]:
                    continue
                payload, heard = stream.read(int(words[-1]) + 2), heard + 1
                if words[2] == b"1" or heard % 100 == 0:
                    reply = words[3:-1]
                    self.socket.sendall(b" ".join([b"PUB", words[1], *reply, words[-1]]) + b"\r\n" + payload)
                    self.repeated += 1
            except OSError:
                return

    def stop(self):
        self.stops = True
        self.socket.close()


def faults(chosen, run, processes, postgres, coordinator):
    """The faults: what each one is, and what does it."""
    servers = [name for name in processes if isinstance(name, int)]
    names = [name for name in processes if isinstance(name, str)]
    tenth = chosen.sample(names, len(names) // 10)
    cut = chosen.sample(names, len(names) // 5)
    two = chosen.sample(servers, 2)
    one = chosen.choice(servers)

    def killed(which, seconds):
        for name in which:
            processes[name].kill()
        for name in which:
            processes[name].wait()
        time.sleep(seconds)
        for name in which:
            processes[name] = run[name]()

    def coordinator_killed():
        coordinator.kill()
        time.sleep(5)
        coordinator.resume()

    def links(state):
        for name in cut:
            subprocess.run(["ip", "link", "set", f"v{name[1:]}", state], check=True)

    def partition():
        links("down")
        time.sleep(15)
        links("up")

    def stopped():
        for name in two:
            processes[name].send_signal(signal.SIGSTOP)
        time.sleep(60)
        for name in two:
            processes[name].send_signal(signal.SIGCONT)

    def postgres_killed():
        postgres.end()
        time.sleep(5)
        postgres.run()

    def repeated():
        repeater = Repeater()
        repeater.start()
        time.sleep(15)
        repeater.stop()
        return f": {repeater.repeated} messages"

    return [
        ("one of three servers of NATS killed, started again after 5 s", lambda: killed([one], 5)),
        (f"{len(tenth)} agents killed at once, started again after 5 s", lambda: killed(tenth, 5)),
        ("coordinator killed, resumed after 5 s", coordinator_killed),
        (f"{len(cut)} agents cut off for 15 s", partition),
        ("two of three servers of NATS stopped for 60 s", stopped),
        ("PostgreSQL killed, started again after 5 s", postgres_killed),
        ("messages of NATS delivered twice for 15 s", repeated),
        ("coordinator killed, resumed after 5 s", coordinator_killed),
    ]


def measured(postgres, database):
    """The trials of each block with a result, and how often blocks were tried."""
    found, twice = {}, 0
    for row in postgres.ask(database, "SELECT pair, block, result FROM result"):
        trials = [json.dumps(run["trial"], sort_keys=True) for run in json.loads(row["result"])["runs"]]
        twice += (row["pair"], row["block"]) in found
        found[row["pair"], row["block"]] = trials
    [counts] = postgres.ask(database, "SELECT sum(attempts) AS tried, max(attempts) AS most, count(*) FILTER (WHERE state <> 'done') AS missing FROM block")
    return found, twice, counts


def compare(folder, run, processes, command):
    """Measures twice, and says what differs."""
    postgres, chosen = Postgres(folder), random.Random(SEED)
    began = time.monotonic()
    Coordinator(folder, command(postgres.database("calm"))).end()
    calm, _, counts = measured(postgres, "calm")
    lines = [
        f"PostgreSQL {re.search('[0-9.]+', postgres.call('postgres', '--version'))[0]}",
        f"undisturbed: {time.monotonic() - began:.0f} s, {len(calm)} blocks with a result, {counts['tried'] - len(calm)} failed attempts",
    ]
    print("\n".join(lines), file=sys.stderr)
    coordinator, began = Coordinator(folder, command(postgres.database("lab"))), time.monotonic()
    listed = faults(chosen, run, processes, postgres, coordinator)
    chosen.shuffle(listed)
    for name, fault in listed:
        time.sleep(5 + 5 * chosen.random())
        at = time.monotonic() - began
        lines.append(f"  {at:3.0f} s: {name}{fault() or ''}")
        print(lines[-1], file=sys.stderr)
    if coordinator.running.poll() is not None:
        sys.exit("bench/fleet: the campaign ended before all faults: measure more blocks")
    coordinator.end()
    took = time.monotonic() - began
    found, twice, counts = measured(postgres, "lab")
    kept = sum(len(os.listdir(f"{folder}/kept{name[1:]}")) for name in processes if isinstance(name, str))
    # Its shared memory outlives a kill.
    postgres.end(signal.SIGINT)
    differ = sum(found.get(key) != trials for key, trials in calm.items()) + len(found.keys() - calm.keys())
    lines += [
        f"disturbed: {took:.0f} s, {len(found)} blocks with a result, {twice} counted twice, {counts['missing']} given up; {differ} blocks have "
        "other trials than the undisturbed campaign",
        f"{counts['tried'] - len(found)} attempts failed, at most {counts['most']} attempts of a block; {kept} results left on agents",
    ]
    return lines
