"""Plan demand matrices over parallel switches, and set the plans beside their bound and two baselines.

    python -m benchmarks.demand [--seeds 3] [--only moe,each,gpt,flows] [--free]

One line a kind of matrix, number of switches and delay: the mean over the seeds of ours over the
bound and of the baselines over ours, and the longest time that one plan of ours took. Line sums
are 1 ms, so that a delay is a share of them.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from topox_core.demand.planning import lower_bound, plan_demand
from topox_core.papers.cards.abstracts import KINDS

SWITCHES, DELAYS_MS = (2, 4), (0.001, 0.01, 0.1)
BASELINES = ("peeled", "shared")


def line(kind: str, switches: int, delay_ms: float, seeds: int, free: bool) -> str:
    rows, longest_s = [], 0.0
    for seed in range(seeds):
        demand = KINDS[kind](np.random.default_rng(seed))
        began = time.perf_counter()
        ours = plan_demand(demand, switches, delay_ms, first_free=free).makespan_ms
        longest_s = max(longest_s, time.perf_counter() - began)
        bound = lower_bound(demand, switches, delay_ms, free).ms
        others = [
            plan_demand(demand, switches, delay_ms, first_free=free, method=name).makespan_ms
            for name in BASELINES
        ]
        rows.append([ours / bound, *(other / ours for other in others)])
    to_bound, a, b = np.mean(rows, axis=0)
    return (
        f"{kind:6} {switches:8} {delay_ms:8g} {to_bound:11.3f} {a:11.2f} {b:11.2f} {longest_s:9.2f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--free", action="store_true", help="first configurations stand already")
    options = parser.parse_args()
    plan_demand(np.eye(3), 2, 0.1)  # machine code is loaded before the clock starts
    print("kind   switches delay_ms  ours/bound      A/ours      B/ours  longest_s")
    for kind in options.only.split(","):
        for switches in SWITCHES:
            for delay_ms in DELAYS_MS:
                print(line(kind, switches, delay_ms, options.seeds, options.free), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
