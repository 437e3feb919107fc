"""Solves with set-up times beside CP-SAT on the straight model, on slots and on continuous time.

    python -m benchmarks.set_ups [--suite FOLDER] [--only REGEX] [--samples race,moe]
    [--clocks slots,continuous] [--delays 0.1,1,10] [--seconds 1,10] [--engine auto] [--no-peer]

A line for each solve: delay in slots, makespan and bound in ms, gap, seconds to the first schedule,
to the proof, until it ended (circuit changes are saved after a proof) and beyond its limit, CPU
seconds of all its processes. Then ratios. Delays of
less than a slot are left out on slots, where they are one. Each solve is followed by the peer's
with the same limit and cores; code and engines are loaded before.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.schedule_suite import machine
from benchmarks.side_by_side.instances import instances
from benchmarks.side_by_side.set_up_peer import straight_set_ups
from benchmarks.side_by_side.warm_command import load_code
from topox_core.api import load_cluster, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.transfer_graph import TransferGraph, durations_ms
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.engines.waiting_workers import LOADED, wait_until_loaded
from topox_core.schedule.planning.fine_clock import exact_ticks_per_ms, fine_problem
from topox_core.schedule.planning.planner import prepare
from topox_core.schedule.problem import Problem
from topox_core.schedule.race.proof import LOADING_S
from topox_core.schedule.results.result import TracePoint
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.workloads.samples import load_sample

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = "blackboard,patience,race,moe,fsdp,dlrm-16"
MAX_PEER_TRANSFERS = 400  # the straight model has a Boolean for every two of them at one server
SAME = 1e-6  # relative: what rounding to ticks may cost either side
COLUMNS = (
    f"{'instance':26} {'clock':10} {'delay':>5} {'who':8} {'limit':>5} {'ms':>12} {'bound':>12} "
    f"{'gap %':>7} {'first s':>8} {'proof s':>8} {'solve s':>8} {'over s':>7} {'cpu s':>6} ended"
)


@dataclass(frozen=True)
class Measured:
    """One solve; makespan and bound in ms, times in seconds."""

    instance: str
    clock: str
    delay_slots: float
    who: str
    limit_s: float
    makespan_ms: float | None
    bound_ms: float
    first_s: float | None
    proof_s: float | None
    solve_s: float
    cpu_s: float
    ended: str

    @property
    def gap(self) -> float | None:
        """Relative distance of makespan and bound."""
        if not self.makespan_ms:
            return None
        return max(0.0, 1 - self.bound_ms / self.makespan_ms)

    @property
    def proved(self) -> bool:
        """Whether makespan and bound meet."""
        return self.gap is not None and self.gap <= SAME

    def line(self) -> str:
        """Return the solve as a line of the table."""

        def figure(value: float | None, places: int) -> str:
            return "-" if value is None else f"{value:.{places}f}"

        gap = None if self.gap is None else 100 * self.gap
        return (
            f"{self.instance:26} {self.clock:10} {self.delay_slots:5g} {self.who:8} {self.limit_s:5g} "
            f"{figure(self.makespan_ms, 5):>12} {self.bound_ms:12.5f} {figure(gap, 3):>7} "
            f"{figure(self.first_s, 2):>8} {figure(self.proof_s, 2):>8} {self.solve_s:8.2f} {self.solve_s - self.limit_s:7.2f} "
            f"{self.cpu_s:6.1f} {self.ended}"
        )


def cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def ours(name: str, graph: TransferGraph, cluster: Cluster, settings: Settings) -> Measured:
    """Measure a whole solve of ours, its engines loaded."""
    for engine in LOADED:
        wait_until_loaded(engine, LOADING_S)
    first: list[float] = []
    proved: list[float] = []

    def note(point: TracePoint) -> None:
        now_s = time.monotonic() - began
        first.append(now_s)
        if point.incumbent_ms is not None and point.bound_ms >= point.incumbent_ms * (1 - SAME):
            proved.append(now_s)

    spent_s, began = cpu_s(), time.monotonic()
    result = solve(graph, cluster, settings, on_point=note)
    took_s = time.monotonic() - began
    if not proved and result.gap is not None and result.gap <= SAME:
        proved.append(took_s)
    return Measured(
        name,
        settings.clock,
        cluster.reconfiguration_ms / cluster.slot_ms,
        settings.engine,
        settings.time_limit_s,
        result.makespan_ms,
        result.bound_ms,
        first[0] if first else took_s,
        proved[0] if proved else None,
        took_s,
        cpu_s() - spent_s,
        f"{result.stopped_by}, {result.bound_by} {result.message}"[:90],
    )


def peer(like: Measured, problem: Problem, cores: int) -> Measured:
    """Measure the peer on the same problem, with the same limit."""
    spent_s = cpu_s()
    found = straight_set_ups(problem, like.limit_s, cores)
    return Measured(
        like.instance,
        like.clock,
        like.delay_slots,
        "straight",
        like.limit_s,
        None if found.makespan is None else problem.ms(found.makespan),
        problem.ms(found.bound),
        found.first_s,
        found.solve_s if found.proved else None,
        found.solve_s,
        cpu_s() - spent_s,
        ("optimal" if found.proved else "limit") + ("" if found.checked else ", BREAKS A RULE"),
    )


def problem_of(
    graph: TransferGraph, cluster: Cluster, settings: Settings, makespan_ms: float
) -> Problem:
    """Return the problem that a solve was of: on slots, or on a clock as fine as our own."""
    if settings.clock == "continuous":
        ticks_per_ms = exact_ticks_per_ms(durations_ms(graph, cluster), makespan_ms)
        return fine_problem(graph, cluster, settings, ticks_per_ms)
    reduction = prepare(graph, cluster, settings).reduction
    return with_set_ups(reduction.problem, reduction.dark_slots)


def solves(options: argparse.Namespace) -> Iterator[Measured]:
    """Yield every solve, the peer's after ours."""
    for name, graph, of in inputs(options):
        for clock in options.clocks:
            for delay_slots in options.delays:
                if clock == "slots" and delay_slots < 1:
                    continue
                cluster = of.changed(reconfiguration_ms=delay_slots * of.slot_ms)
                for seconds in options.seconds:
                    settings = Settings.of(
                        clock=clock,
                        engine=options.engine,
                        time_limit_s=seconds,
                        threads=options.cores,
                    )
                    mine = ours(name, graph, cluster, settings)
                    yield mine
                    if options.no_peer or len(graph.ids) > 2_000 or mine.makespan_ms is None:
                        continue
                    problem = problem_of(graph, cluster, settings, mine.makespan_ms)
                    if int(problem.on_grid.sum()) <= MAX_PEER_TRANSFERS:
                        yield peer(mine, problem, options.cores)


def inputs(options: argparse.Namespace) -> Iterator[tuple[str, TransferGraph, Cluster]]:
    """Yield name, lowered graph and cluster of each sample and each instance."""
    for name in options.samples:
        graph, cluster = load_sample(name)
        yield name, lower(graph, Settings.of().lowering), cluster
    for one in instances(options.suite, options.only):
        yield (
            one.name,
            lower(load_graph(one.graph), Settings.of().lowering),
            load_cluster(one.cluster),
        )


def summary(done: list[Measured], engine: str) -> Iterator[str]:
    """Yield ratios of makespans and bounds to the peer's, and what passed its limit or came late."""
    by_case = {(m.instance, m.clock, m.delay_slots, m.limit_s, m.who): m for m in done}
    for clock in sorted({m.clock for m in done}):
        for limit_s in sorted({m.limit_s for m in done}):
            mine = [m for m in done if (m.clock, m.limit_s, m.who) == (clock, limit_s, engine)]
            both = [
                (m, by_case[key])
                for m in mine
                if (key := (m.instance, clock, m.delay_slots, limit_s, "straight")) in by_case
            ]
            yield (
                f"{clock} at {limit_s:g} s: {sum(m.proved for m in mine)} of {len(mine)} proved; "
                f"longest past the limit {max(m.solve_s - limit_s for m in mine):.2f} s, "
                f"latest first schedule {max(m.first_s or 0.0 for m in mine):.2f} s"
            )
            if not both:
                continue
            ratios = [
                (a.makespan_ms / b.makespan_ms, a)
                for a, b in both
                if a.makespan_ms and b.makespan_ms
            ]
            yield (
                f"  beside the straight model: proved {sum(a.proved for a, _ in both)} and "
                f"{sum(b.proved for _, b in both)} of {len(both)}; no schedule "
                f"{sum(a.makespan_ms is None for a, _ in both)} and {sum(b.makespan_ms is None for _, b in both)}; makespan "
                f"{sum(r < 1 - SAME for r, _ in ratios)} shorter, "
                f"{sum(abs(r - 1) <= SAME for r, _ in ratios)} equal, "
                f"{sum(r > 1 + SAME for r, _ in ratios)} longer"
            )
            if ratios:
                worst, at = max(ratios, key=lambda pair: pair[0])
                least = min(r for r, _ in ratios)
                yield (
                    f"  ratio {least:.4f} to {worst:.4f} ({at.instance}, delay {at.delay_slots:g})"
                )
            for a, b in both:
                if b.proved and not a.proved:
                    yield f"  proved there only: {a.instance}, delay {a.delay_slots:g}"
                elif b.bound_ms > a.bound_ms * (1 + SAME):
                    yield (
                        f"  higher bound there: {a.instance}, delay {a.delay_slots:g}: "
                        f"{a.bound_ms / b.bound_ms:.4f}"
                    )
                elif a.proof_s and b.proof_s and a.proof_s > b.proof_s + 0.1:
                    yield (
                        f"  proved there sooner: {a.instance}, delay {a.delay_slots:g}: "
                        f"{b.proof_s:.2f} s, not {a.proof_s:.2f}"
                    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])

    def figures(text: str) -> list[float]:
        return [float(part) for part in text.split(",")]

    def words(text: str) -> list[str]:
        return [part for part in text.split(",") if part]

    parser.add_argument(
        "--suite", type=Path, default=ROOT / "benchmarks" / "suite", metavar="FOLDER"
    )
    parser.add_argument("--only", default="^(tiny|small)", metavar="REGEX")
    parser.add_argument("--samples", type=words, default=words(SAMPLES), metavar=SAMPLES)
    parser.add_argument("--clocks", type=words, default=["slots", "continuous"])
    parser.add_argument("--delays", type=figures, default=[0.1, 1.0, 10.0], help="in slots")
    parser.add_argument("--seconds", type=figures, default=[1.0, 10.0])
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--no-peer", action="store_true")
    return parser.parse_args()


def main() -> int:
    options = read_options()
    print(machine(options.cores))
    load_code()
    print(COLUMNS)
    done: list[Measured] = []
    try:
        for measured in solves(options):
            done.append(measured)
            print(measured.line(), flush=True)
    except KeyboardInterrupt:
        print("stopped; what follows counts what was done")
    for text in summary(done, options.engine):
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
