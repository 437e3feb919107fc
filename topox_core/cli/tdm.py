"""``tdm``: jobs that share a fabric, taking turns on its circuits."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, read, write
from topox_core.cli.options import JSON, Option, add_options, number, positive, whole, wrong_option
from topox_core.cli.printing import as_json, ctrl_c_stops, ended, figure, note, percent, show, table

if TYPE_CHECKING:
    from topox_core.check.report import CheckReport
    from topox_core.tdm.model.jobs import Jobs
    from topox_core.tdm.model.round import Round, RoundTracePoint, TdmSettings

PROGRESS_EVERY_S = 1.0
SHOWN_STAGES = 8


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "tdm",
        run,
        "share a fabric among several jobs by time-division multiplexing",
        "Deal jobs to groups that communicate in turns while the others train, and lay the circuits of every stage; "
        "print the round beside the one without turns, and a lower bound. --list shows the algorithms.",
    )
    add_options(
        command,
        Option("jobs JOBS", str, "jobs and their network: .jobs.json, may be .gz", nargs="?"),
        Option("--algorithm NAME", str, "who deals (default hill-climbing)", "hill-climbing"),
        Option("--list", bool, "show the algorithms, solve nothing", dest="listing"),
        Option("--time-limit S", number, "seconds (default 60)", 60.0, dest="time_limit_s"),
        Option("--seed N", whole, "of all random choices (default 0)", 0),
        Option("--starts N", positive, "of multi-start (default 10)", 10),
        Option("--steps N", positive, "of annealing (default 40000)", 40_000),
        Option("--output FILE", str, "write the whole round (.round.json)"),
        JSON,
    )
    reading = command.add_argument_group("how the draft is read")
    add_options(
        reading,
        Option(
            "--eq3-literal",
            bool,
            "a parameter-server job trains in both stages of the other group, as eq. 3 is printed",
        ),
        Option(
            "--physical-ring",
            bool,
            "a ring carries 2 (N - 1) / N times the volume on each arc, instead of the volume once",
        ),
        Option(
            "--delay-inside",
            bool,
            "switching is part of the communication (section II.C), not added to the stage (Algorithm 1)",
        ),
    )
    network = command.add_argument_group("network, in place of the file's")
    for key, kind, metavar in _NETWORK:
        network.add_argument(
            f"--{key.replace('_', '-')}", dest=f"network_{key}", type=kind, metavar=metavar
        )


_NETWORK: tuple[tuple[str, Callable[[str], object], str], ...] = (
    ("ports_per_pod", whole, "N"),
    ("port_gbps", number, "X"),
    ("tor_gbps", number, "X"),
    ("reconfiguration_ms", number, "X"),
)


def run(options: argparse.Namespace) -> int:
    """Solve and print; 1 if ports are too few for any round, or the checker disagrees."""
    from topox_core.check.round import check_round
    from topox_core.tdm.algorithms.catalogue import ALGORITHMS
    from topox_core.tdm.bounds.round_bounds import bounded
    from topox_core.tdm.model.traffic import TooFewPortsError
    from topox_core.tdm.solve import solve

    if options.listing:
        _list(options.json)
        return 0
    if options.jobs is None:
        raise wrong_option("JOBS", "a file must be named")
    if options.algorithm not in ALGORITHMS:
        raise wrong_option(
            "--algorithm", f"must be one of {', '.join(ALGORITHMS)} (got {options.algorithm[:80]})"
        )
    if options.output:
        must_be_writable(options.output, (options.jobs,))
    settings = _settings(options)
    jobs = _jobs(options)
    try:
        with ctrl_c_stops() as stop:
            together = _together(jobs, settings, stop)
            answer = solve(jobs, settings, stop, _Progress())
            if answer.stopped_by != "cancelled":
                answer = bounded(answer)
    except TooFewPortsError as error:
        show(
            options,
            {"status": "infeasible", "round_s": None, "message": str(error)},
            partial(print, error),
        )
        return 1
    report = check_round(answer)
    if options.output:
        write(
            options.output,
            json.dumps(_record(answer, together, settings), allow_nan=False).encode(),
        )
    show(
        options,
        _record(answer, together, settings, report),
        lambda: _print(answer, together, report),
    )
    return 0 if report.ok and answer.status != "infeasible" else 1


def _settings(options: argparse.Namespace) -> TdmSettings:
    from topox_core.tdm.model.jobs import Reading
    from topox_core.tdm.model.round import TdmSettings

    if not options.time_limit_s > 0:
        raise wrong_option("--time-limit", f"must be greater than 0 (got {options.time_limit_s:g})")
    if options.seed < 0:
        raise wrong_option("--seed", f"must be at least 0 (got {options.seed})")
    return TdmSettings(
        options.algorithm,
        Reading(options.eq3_literal, options.physical_ring, options.delay_inside),
        options.seed,
        options.time_limit_s,
        options.starts,
        options.steps,
    )


def _together(jobs: Jobs, settings: TdmSettings, stop: Callable[[], bool]) -> Round | None:
    """Return the round without turns.

    None where ports are too few for all jobs at once, while turns may still do.
    """
    from dataclasses import replace

    from topox_core.tdm.algorithms.catalogue import BASELINE
    from topox_core.tdm.model.traffic import TooFewPortsError
    from topox_core.tdm.solve import solve

    try:
        return solve(jobs, replace(settings, algorithm=BASELINE), stop)
    except TooFewPortsError:
        return None


def _saved(answer: Round, together: Round | None) -> float | None:
    return (
        1 - answer.round_s / together.round_s
        if together is not None and together.round_s > 0
        else None
    )


def _jobs(options: argparse.Namespace) -> Jobs:
    """Read the file and put the network's options on top."""
    from dataclasses import replace

    from topox_core.tdm.model.jobs_file import load_jobs, validated

    jobs = load_jobs(read(options.jobs), options.jobs)
    changes = {
        key: value
        for key, _, _ in _NETWORK
        if (value := getattr(options, f"network_{key}")) is not None
    }
    return (
        validated(jobs.name, replace(jobs.network, **changes), jobs.jobs, "command line")
        if changes
        else jobs
    )


class _Progress:
    """Progress of the search on standard error, once a second."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, point: RoundTracePoint) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_EVERY_S:
            self._last = now
            note(
                f"{point.elapsed_s:.1f} s, step {point.step:,}: best {figure(point.round_s, 's')}, bound "
                f"{figure(point.bound_s, 's')} ({point.source})"
            )


def _record(
    answer: Round, together: Round | None, settings: TdmSettings, report: CheckReport | None = None
) -> dict[str, Any]:
    """Return the round as its file has it, with the checker's verdict where there is one."""
    from topox_core.tdm.model.round_file import to_record

    record = to_record(
        answer, non_tdm_s=None if together is None else together.round_s, settings=settings
    )
    return (
        record
        if report is None
        else {**record, "checked": report.ok, "violations": list(report.lines())}
    )


def _print(answer: Round, together: Round | None, report: CheckReport) -> None:
    from topox_core.tdm.model.bottleneck import bottlenecks

    sizes = ", ".join(
        f"{chr(65 + k)} {sum(g == k for g in answer.group):,}" for k in range(answer.groups)
    )
    rows: list[tuple[str, ...]] = [
        (
            "jobs",
            f"{len(answer.jobs):,} in {answer.jobs.network.pod_groups:,} pod groups; groups {sizes}",
        ),
        (
            "round",
            f"{figure(answer.round_s, 's')} by {answer.algorithm}, {ended(answer.stopped_by, answer.wall_s)}",
        ),
        (
            "non-TDM",
            f"{figure(together.round_s, 's')}; saved: {percent(_saved(answer, together))}"
            if together
            else "ports are too few for all jobs at once",
        ),
        (
            "bound",
            f"{figure(answer.bound_s, 's')} for {answer.bound.holds_for}, gap {percent(answer.gap)}: {answer.bound.by}",
        ),
    ]
    if len(answer.cycles) > 1:
        rows.append(
            (
                "mean round",
                f"{figure(answer.mean_round_s, 's')}; every pod group has its own barrier",
            )
        )
    rows.append(("checked", "every rule holds" if report.ok else "; ".join(report.lines(3))))
    table(*rows)
    if answer.message:
        print(answer.message)
    for one in bottlenecks(answer)[:SHOWN_STAGES]:
        print(one.words(answer))


def _list(json_wanted: bool) -> None:
    from topox_core.tdm.algorithms.catalogue import ALGORITHMS

    if json_wanted:
        as_json(
            {
                "algorithms": [
                    {
                        "name": name,
                        "title": one.title,
                        "family": one.family,
                        "meaning": one.explanation,
                    }
                    for name, one in ALGORITHMS.items()
                ]
            }
        )
    else:
        table(*[(name, one.explanation) for name, one in ALGORITHMS.items()])
