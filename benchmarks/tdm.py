"""Measure the ways to share a fabric: seconds, growth with pods, proofs on small cases, gains against no time division.

python -m benchmarks.tdm [--part growth|proof|gain|study] [--seeds 10] [--most-pods 4096] [--workers 2]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from topox_core.runs.executor import LocalExecutor
from topox_core.studies.ready import rounds_record
from topox_core.studies.study import study_of
from topox_core.studies.study_run import StudyRun, plan_of
from topox_core.tdm.algorithms.catalogue import BASELINE, DEFAULT_ALGORITHMS, solve
from topox_core.tdm.mixes.deployment import CONTEXTS, JOBS, SetUp, deploy
from topox_core.tdm.model.jobs import Jobs, Round, TdmSettings

SMALL = SetUp(pod_groups=1, pods_per_group=4, ports_per_pod=8, degree_max=8, reconfiguration_ms=0.0)
LARGE = DEFAULT_ALGORITHMS
LINES = ((JOBS, (8192,)), ((256,), CONTEXTS))


def timed(jobs: Jobs, algorithm: str, **chosen: float) -> tuple[Round, float]:
    settings = replace(TdmSettings(algorithm=algorithm), **chosen)  # type: ignore[arg-type]
    began = time.perf_counter()
    result = solve(jobs, settings)
    return result, time.perf_counter() - began


def growth(most_pods: int) -> None:
    """Two jobs a pod, from 64 pods on; the ratio is seconds a pod against those at the size before."""
    print(
        f"{'pods':>6} {'jobs':>6} {'hill climbing s':>16} {'ratio':>6} {'best grouping s':>16} {'ratio':>6}"
    )
    before: tuple[float, ...] = (float("nan"),) * 2
    pods = 64
    while pods <= most_pods:
        jobs = deploy(SetUp(jobs=2 * pods, pod_groups=pods // 8))
        seconds = tuple(timed(jobs, algorithm, time_limit_s=3600.0)[1] for algorithm in LARGE[:2])
        ratio = tuple(now / then / 2 for now, then in zip(seconds, before, strict=True))
        print(
            f"{pods:6,} {2 * pods:6,} {seconds[0]:16.2f} {ratio[0]:6.2f} {seconds[1]:16.2f} {ratio[1]:6.2f}",
            flush=True,
        )
        before, pods = seconds, 2 * pods


def proof() -> None:
    """The exact model on 30 random mixes of 4 to 6 jobs on four pods."""
    for delay_ms in (0.0, 0.5):
        seconds, climbed, aware, unproved = [], [], [], 0
        for seed in range(30):
            setup = replace(
                SMALL,
                jobs=4 + seed % 3,
                context=(8192, 16_384, 32_768)[seed // 3 % 3],
                seed=seed,
                reconfiguration_ms=delay_ms,
            )
            jobs = deploy(setup)
            best, took = timed(jobs, "milp")
            seconds.append(took)
            unproved += best.status != "optimal"
            climbed.append(timed(jobs, "hill-climbing")[0].round_s / best.round_s - 1)
            aware.append(timed(jobs, "load-aware-rings")[0].round_s / best.round_s - 1)
        print(
            f"exact model, 30 mixes, delay {delay_ms:g} ms: mean {np.mean(seconds):.2f} s, median {np.median(seconds):.2f} s, "
            f"max {max(seconds):.2f} s, {unproved} unproved; above the optimum: hill climbing {np.mean(climbed):.2%} "
            f"(max {max(climbed):.2%}), load-aware rings {np.mean(aware):.2%} (max {max(aware):.2%})",
            flush=True,
        )


def gain(seeds: int) -> None:
    """Mean reduction of the round against no time division, paired by seed."""
    print(
        f"{'jobs':>5} {'context':>8} {'algorithm':18} {'reduction':>9} {'least':>7} {'most':>7} {'mean s':>7} {'max s':>6} "
        f"{'proved':>7}"
    )
    for count, context in ((256, 8192), (512, 8192), (256, 131_072)):
        mixes = [deploy(SetUp(jobs=count, context=context, seed=seed)) for seed in range(seeds)]
        base = [timed(jobs, "non-tdm")[0].round_s for jobs in mixes]
        for algorithm in LARGE:
            runs = [timed(jobs, algorithm) for jobs in mixes]
            cut = [
                1 - result.round_s / without
                for (result, _), without in zip(runs, base, strict=True)
            ]
            took = [seconds for _, seconds in runs]
            proved = sum(result.status == "optimal" for result, _ in runs)
            print(
                f"{count:5} {context:8,} {algorithm:18} {np.mean(cut):9.1%} {min(cut):7.1%} {max(cut):7.1%} "
                f"{np.mean(took):7.2f} {max(took):6.2f} {proved:4}/{seeds}",
                flush=True,
            )


def study(seeds: int, workers: int) -> None:
    """Both studies of the Jobs page at full size, run in worker processes as the page runs them, as rows of Markdown."""
    executor = LocalExecutor(workers)
    print("| jobs | context | C/T | no time division | " + " | ".join(LARGE) + " |")
    print("| --- " * (4 + len(LARGE)) + "|")
    try:
        for jobs, contexts in LINES:
            record = rounds_record(jobs, contexts, seeds, (BASELINE, *LARGE))
            plan = plan_of(study_of({"name": "rounds", **record}, "study"))
            run = StudyRun(plan, None, executor)
            while run.running:
                words = f"\r{run.progress.share:4.0%} of {len(plan.keys)} points"
                print(words, end="", file=sys.stderr, flush=True)
                time.sleep(1.0)
            result = run.result()
            print("\r" + "; ".join(result.lost), file=sys.stderr)
            by: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)
            for row in result.rows:
                if row.measures:
                    by[row.point[1:]].append(row.measures)
            for context, count in product(contexts, jobs):
                base = by[context, count, BASELINE]
                ratios = [one["communicating_s"] / one["computing_s"] for one in base]
                cuts = [_reduction(by[context, count, name]) for name in LARGE]
                mean_s = np.mean([one["round_s"] for one in base])
                print(
                    f"| {count} | {context // 1024}k | {np.median(ratios):.2g} | {mean_s:.0f} s | {' | '.join(cuts)} |",
                    flush=True,
                )
    finally:
        executor.kill()


def _reduction(measures: list[Any]) -> str:
    cut = [100 * one["reduction"] for one in measures]
    return f"{np.mean(cut):.0f} % ({min(cut):.0f} to {max(cut):.0f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--part", choices=("growth", "proof", "gain", "study"), help="only one of the four"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most-pods", type=int, default=4096)
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="worker processes of the study"
    )
    given = parser.parse_args()
    for algorithm in LARGE:
        timed(deploy(SetUp(jobs=32, pod_groups=1)), algorithm)  # compiled code warm
    parts = {
        "growth": lambda: growth(given.most_pods),
        "proof": proof,
        "gain": lambda: gain(given.seeds),
        "study": lambda: study(given.seeds, given.workers),
    }
    for name, run in parts.items():
        if given.part in (None, name):
            print(f"-- {name}", flush=True)
            run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
