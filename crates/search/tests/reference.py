"""Searches of MLRsearch 1.2.1, the program of RFC 9971's authors, on simulated devices, one JSON object per line.

    PYTHONPATH=target/tools/mlrsearch python3 crates/search/tests/reference.py SEEDS

Each of five lists of goals is tried on four kinds of devices with that many seeds. A line has the goals, the loads (frames/s), each
trial (seconds, load, offered and lost frames) and what was found.
"""

import json
import math
import random
import sys

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

MIN_LOAD, MAX_LOAD = 5000.0, 1e6

FIELDS = ("loss_ratio", "exceed_ratio", "width", "initial_trial_s", "final_trial_s", "duration_sum_s", "coarser_targets", "expansion")
GOALS = {
    "csit": [(0.0, 0.5, 0.005, 1, 1, 21, 2, 2), (0.005, 0.5, 0.005, 1, 1, 21, 2, 2)],
    "rfc2544": [(0.0, 0.0, 0.01, 60, 60, 60, 1, 2)],
    "tst009": [(0.0, 0.5, 0.01, 60, 60, 120, 2, 2)],
    "long and short": [(0.0, 0.5, 0.005, 1, 10, 60, 3, 2), (0.01, 0.2, 0.01, 1, 10, 30, 2, 2)],
    "slices": [(0.001, 0.5, 0.01, 0.125, 0.125, 3, 2, 2)],
}
KINDS = ("sharp", "soft", "noisy", "bursts")


class Device(AbstractMeasurer):
    """Loses what is beyond its capacity, and what its kind adds."""

    def __init__(self, kind, seed):
        self.kind = kind
        self.capacity = 10 ** random.Random(seed * 7 + 1).uniform(4.1, 5.9)
        self.random = random.Random(seed)
        self.trials = []

    def lost_share(self, seconds, load):
        beyond = max(0.0, 1 - self.capacity / load)
        if self.kind == "soft":
            return max(beyond, min(1.0, 1e-3 * math.exp(min(50, (load / self.capacity - 1) / 0.03))))
        if self.kind == "noisy":
            return max(0.0, 1 - self.capacity * math.exp(self.random.gauss(0, 0.02)) / load)
        if self.kind == "bursts" and self.random.random() < 1 - math.exp(-0.3 * seconds):
            return min(1.0, beyond + self.random.expovariate(1 / 0.004) / seconds)
        return beyond

    def measure(self, intended_duration, intended_load):
        offered = int(intended_load * intended_duration)
        lost = round(offered * self.lost_share(intended_duration, intended_load))
        self.trials.append((intended_duration, intended_load, offered, lost))
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            loss_count=lost,
        )


def search(goals, device):
    config = Config()
    # The last field: whether a search that a goal cannot end is an error.
    config.goals = [SearchGoal(*goal, False) for goal in goals]
    config.min_load, config.max_load = MIN_LOAD, MAX_LOAD
    config.warmup_duration, config.search_duration_max = 0, 1e9
    found = MultipleLossRatioSearch(config=config).search(device, debug=lambda _: None)
    return [found[goal] for goal in config.goals]


def number(value):
    return None if value is None else float(value)


def main():
    for name, goals in GOALS.items():
        for kind in KINDS:
            for seed in range(int(sys.argv[1])):
                device = Device(kind, seed)
                results = search(goals, device)
                print(
                    json.dumps(
                        {
                            "name": f"{name}, {kind}, seed {seed}",
                            "min_load": MIN_LOAD,
                            "max_load": MAX_LOAD,
                            "goals": [dict(zip(FIELDS, goal)) for goal in goals],
                            "trials": device.trials,
                            "results": [
                                {
                                    "lower": number(result.relevant_lower_bound),
                                    "upper": number(result.relevant_upper_bound),
                                    "conditional_throughput": number(result.conditional_throughput),
                                }
                                for result in results
                            ],
                        }
                    )
                )


main()
