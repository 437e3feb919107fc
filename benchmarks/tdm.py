"""Measure the ways to share a fabric: seconds, growth with pods, proofs on small cases, gains against no time division.

python -m benchmarks.tdm [--part growth|proof|gain|study] [--seeds 10] [--most-pods 4096] [--workers 2]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace

import numpy as np

from topox_core.runs.executor import LocalExecutor
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import Round, TdmSettings
from topox_core.tdm.solve import solve
from topox_core.tdm.study import BASELINE, Study, StudyAxes, StudyCellResult, StudyRow

SMALL = SetUp(pod_groups=1, pods_per_group=4, ports_per_pod=8, degree_max=8, reconfiguration_ms=0.0)
LARGE = ("hill-climbing", "best-grouping", "all-train")
LINES = (
    StudyAxes((32, 64, 128, 256, 512), (8192,)),
    StudyAxes((256,), tuple(1024 * k for k in (1, 8, 32, 64, 128))),
)


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
    known: dict[str, StudyCellResult] = {}
    print(
        "| jobs | context | C/T | no time division | "
        + " | ".join(LARGE)
        + " |\n"
        + "| --- " * (4 + len(LARGE))
        + "|"
    )
    try:
        for axes in LINES:
            whole = Study(axes, tuple(range(seeds)), LARGE)
            run = whole.start(known, executor)
            while run.running:
                print(
                    f"\r{run.progress.share:4.0%} of {len(whole.cells())} sets of jobs",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
                time.sleep(1.0)
            print("\r" + "; ".join(run.result().lost), file=sys.stderr)
            rows = {
                (row.jobs, row.context, row.algorithm): row
                for row in whole.rows(run.result().results)
            }
            for count, context in axes.points():
                ratios = [
                    known[whole.key(cell)].ratio or 0.0
                    for cell in whole.cells()
                    if (cell.jobs, cell.context) == (count, context) and whole.key(cell) in known
                ]
                base = rows[count, context, BASELINE]
                print(
                    f"| {count} | {context // 1024}k | {np.median(ratios):.2g} | {base.round_s.mean:.0f} s | "
                    + " | ".join(_reduction(rows[count, context, name]) for name in LARGE)
                    + " |",
                    flush=True,
                )
    finally:
        executor.kill()


def _reduction(row: StudyRow) -> str:
    cut = row.reduction
    return f"{100 * cut.mean:.0f} % ({100 * cut.least:.0f} to {100 * cut.most:.0f})"


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
