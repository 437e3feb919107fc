"""``failures``: one element after the other taken out; how fixed and planned circuits go on."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.fabric_options import add_fabric_options, fabric_options
from topox_core.cli.files import read_graph_and_cluster
from topox_core.cli.options import JSON, Option, number, wrong_option
from topox_core.cli.printing import ctrl_c_stops, figure, note, show, table
from topox_core.errors import printable
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.fabrics.failures import FailureOutcome
    from topox_core.topology.failures import Failure

# What each kind is followed by, and how many numbers that is.
KINDS = {
    "fibre": ("the circuit from server A to B", 2),
    "port": ("server and port", 2),
    "switch": ("switch", 1),
    "server": ("server, and the one that takes its tasks over", 2),
}


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "failures",
        run,
        "take out a fibre, port, switch or server: forwarding, repair, a new plan",
        "Say what an iteration takes after a failure: fixed circuits with traffic forwarded and repaired, planned circuits "
        "planned again for the rest of this iteration and for the next ones.",
        given.add_files,
        Option(
            "--fail KIND:WHERE",
            str,
            "fibre:A-B, port:SERVER-PORT, switch:N or server:A-B (B takes over); may be repeated",
            [],
            dest="failures",
            repeated=True,
        ),
        Option(
            "--at-percent X",
            number,
            "when it fails, as a share of the planned iteration (default 0)",
            0.0,
        ),
    )
    given.add_planner(command, "list|auto|highs", "who plans (default list)")
    JSON.add_to(command)
    add_fabric_options(command)
    given.add_solve(command)


def failure_of(text: str) -> Failure:
    """Return the failure that an option names.

    Raises
    ------
    InputError
        If it is written otherwise.
    """
    from topox_core.topology.failures import Failure

    kind, _, where = text.partition(":")
    expected = "; ".join(
        f"{name}:{'-'.join('AB'[:count])} ({words})" for name, (words, count) in KINDS.items()
    )
    numbers = (
        [int(part) for part in where.split("-")]
        if re.fullmatch(r"\d{1,9}(-\d{1,9})?", where)
        else []
    )
    if kind not in KINDS or len(numbers) != KINDS[kind][1]:
        raise wrong_option("--fail", f"must be {expected} (got {printable(text)[:80]})")
    if kind == "switch":
        return Failure.of_switch(numbers[0])
    first, second = numbers
    if kind == "fibre":
        return Failure.fibre(first, second)
    return Failure.of_port(first, second) if kind == "port" else Failure.of_server(first, second)


def run(options: argparse.Namespace) -> int:
    """Run fixed and planned circuits, then each failure on them; 1 if nothing goes on after one."""
    from topox_core.fabrics.compare import compare
    from topox_core.fabrics.failures import FixedCircuits, after_failure
    from topox_core.fabrics.run import JobRequest

    if not options.failures:
        raise wrong_option("--fail", "is needed: what fails")
    if not 0 <= options.at_percent < 100:
        raise wrong_option(
            "--at-percent", f"must be from 0 to below 100 (got {options.at_percent:g})"
        )
    failures = {text: failure_of(text) for text in options.failures}
    settings = given.settings(options)
    if options.engine is None:
        settings = replace(settings, engine="list")
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, given.cluster_overrides(options)
    )
    fabric = fabric_options(options, cluster)
    found: dict[str, tuple[FailureOutcome, ...]] = {}
    with ctrl_c_stops() as stop:
        runs = compare(graph, cluster, settings, ("static", "scheduled"), fabric, stop)
        if "scheduled" not in runs:
            return 1
        job = JobRequest(graph, cluster, settings, fabric, runs)
        fixed = FixedCircuits.of(job)
        for text, failure in failures.items():
            if stop():
                break
            note(text)
            found[text] = after_failure(job, fixed, failure, options.at_percent / 100)
    show(
        options,
        {text: [_record(one) for one in outcomes] for text, outcomes in found.items()},
        lambda: _print(found),
    )
    goes_on = all(any(one.after_ms is not None for one in outcomes) for outcomes in found.values())
    return 0 if goes_on and len(found) == len(failures) else 1


def _record(one: FailureOutcome) -> dict[str, Any]:
    return record_of(one, "label fabric before_ms after_ms") | {"done": list(one.done)}


def _print(found: dict[str, tuple[FailureOutcome, ...]]) -> None:
    rows = [("failure", "goes on", "before", "after", "over", "how")]
    for text, outcomes in found.items():
        for one in outcomes:
            over = "-" if one.after_ms is None else f"{one.after_ms / one.before_ms - 1:+.1%}"
            rows.append(
                (
                    text,
                    one.label,
                    figure(one.before_ms, "ms"),
                    "-" if one.after_ms is None else figure(one.after_ms, "ms"),
                    over,
                    " ".join(one.done),
                )
            )
    table(*rows)
