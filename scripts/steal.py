"""Steal: time in which the hypervisor gave the processors to others. Figures of time mean little then."""

import time

# Maximum steal of a quiet machine, as a share of the time of all CPUs.
QUIET = 0.05


def ticks():
    """Ticks of all processors so far: stolen ones, and all."""
    with open("/proc/stat", encoding="ascii") as file:
        counted = [int(word) for word in file.readline().split()[1:9]]
    return counted[7], sum(counted)


def share(since):
    """Steal since then (as `ticks` gave it), as a share of the time of all CPUs."""
    (stolen, all_), (stolen_then, all_then) = ticks(), since
    return (stolen - stolen_then) / max(all_ - all_then, 1)


def await_quiet(seconds):
    """Waits until steal is low for a few seconds, or that long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        since = ticks()
        time.sleep(5)
        if share(since) <= QUIET:
            return
