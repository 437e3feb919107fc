"""Time the ranking of parallel plans: plans, passes walked, seconds.

    python -m benchmarks.plan_ranking [--machine NAME] [MODEL ...]

Prints, for each language model on its usual servers, how many plans suit, fit and are ranked, how many
passes of their pipelines are walked, and the seconds for all of it (warm).
"""

from __future__ import annotations

import argparse
import sys
import time

from topox_core.strategy.models import MODELS, named
from topox_core.strategy.plans import best_plans, jobs
from topox_core.training.costs.memory import fits
from topox_core.training.machine import MACHINES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    language_models = [name for name, model in MODELS.items() if model.shape]
    parser.add_argument("models", nargs="*", default=language_models, metavar="MODEL")
    parser.add_argument("--machine", choices=MACHINES, default="h100")
    options = parser.parse_args()
    machine = MACHINES[options.machine]
    best_plans(MODELS["llama3-8b"].shape, machine, 1, 64)  # warm
    print(
        f"{'model':14} {'servers':>7} {'suit':>6} {'fit':>6} {'passes':>12} {'seconds':>7} fastest"
    )
    for name in options.models:
        model = named(name)
        if model.shape is None:
            print(f"{name:14} has no plans")
            continue
        began = time.perf_counter()
        found = best_plans(model.shape, machine, model.servers, model.batch)
        seconds = time.perf_counter() - began
        passes = sum(
            2 * job.chunks * job.plan.microbatches
            for job in jobs(model.shape, machine, model.servers, model.batch)
            if fits(job)
        )
        print(
            f"{name:14} {model.servers:7} {found.considered:6,} {found.fitting:6,} {passes:12,} {seconds:7.2f} "
            f"{found.best.total_ms / 1e3:.2f} s, {found.best.words}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
