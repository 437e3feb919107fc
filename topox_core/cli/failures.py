"""``failures``: one element after the other taken out; how fixed and planned circuits go on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read_graph_and_cluster
from topox_core.cli.options import (
    FABRICS,
    fabric_options,
    FILES,
    JSON,
    SOLVE,
    Option,
    cluster_overrides,
    number,
    planner,
    settings,
    wrong_option,
)
from topox_core.cli.printing import ctrl_c_stops, figure, note, table
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


def failure_of(text: str) -> Failure:
    """Return the failure that an option names.

    Raises
    ------
    InputError
        If it is written otherwise.
    """
    from topox_core.topology.failures import Failure

    kind, _, where = text.partition(":")
    numbers = (
        [int(part) for part in where.split("-")]
        if re.fullmatch(r"\d{1,9}(-\d{1,9})?", where)
        else []
    )
    if kind not in KINDS or len(numbers) != KINDS[kind][1]:
        expected = "; ".join(
            f"{name}:{'-'.join('AB'[:count])} ({words})" for name, (words, count) in KINDS.items()
        )
        raise wrong_option("--fail", f"must be {expected} (got {printable(text)[:80]})")
    makers: dict[str, Callable[..., Failure]] = {
        "fibre": Failure.fibre,
        "port": Failure.of_port,
        "switch": Failure.of_switch,
        "server": Failure.of_server,
    }
    return makers[kind](*numbers)


@command(
    "failures",
    "take out a fibre, port, switch or server: forwarding, repair, a new plan",
    "Say what an iteration takes after a failure: fixed circuits with traffic forwarded and repaired, planned circuits "
    "planned again for the rest of this iteration and for the next ones.",
    *FILES,
    Option(
        "--fail KIND:WHERE",
        str,
        "fibre:A-B, port:SERVER-PORT, switch:N or server:A-B (B takes over); may be repeated",
        [],
        dest="failures",
        repeated=True,
        needed="is needed: what fails",
    ),
    Option(
        "--at-percent X",
        number,
        "when it fails, as a share of the planned iteration (default 0)",
        0.0,
    ),
    *planner("list|auto|highs", "who plans (default list)"),
    JSON,
    FABRICS,
    *SOLVE,
)
def run(options: Arguments) -> Answer:
    """Run fixed and planned circuits, then each failure on them; 1 if nothing goes on after one."""
    from topox_core.fabrics.compare import compare
    from topox_core.fabrics.failures import FixedCircuits, after_failure
    from topox_core.fabrics.run import JobRequest

    if not 0 <= options.at_percent < 100:
        raise wrong_option(
            "--at-percent", f"must be from 0 to below 100 (got {options.at_percent:g})"
        )
    failures = {text: failure_of(text) for text in options.failures}
    asked = settings(options, engine="list")
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, cluster_overrides(options)
    )
    fabric = fabric_options(options, cluster)
    found: dict[str, tuple[FailureOutcome, ...]] = {}
    with ctrl_c_stops() as stop:
        runs = compare(graph, cluster, asked, ("static", "scheduled"), fabric, stop)
        if "scheduled" not in runs:
            return Answer(status=1)
        job = JobRequest(graph, cluster, asked, fabric, runs)
        fixed = FixedCircuits.of(job)
        for text, failure in failures.items():
            if stop():
                break
            note(text)
            found[text] = after_failure(job, fixed, failure, options.at_percent / 100)
    record = {
        text: [
            record_of(one, "label fabric before_ms after_ms") | {"done": list(one.done)}
            for one in outcomes
        ]
        for text, outcomes in found.items()
    }
    rows = (_row(text, one) for text, outcomes in found.items() for one in outcomes)
    lines = table(("failure", "goes on", "before", "after", "over", "how"), *rows)
    goes_on = all(any(one.after_ms is not None for one in outcomes) for outcomes in found.values())
    return Answer(record, [lines], 0 if goes_on and len(found) == len(failures) else 1)


def _row(text: str, one: FailureOutcome) -> tuple[str, ...]:
    over = "-" if one.after_ms is None else f"{one.after_ms / one.before_ms - 1:+.1%}"
    times = figure(one.before_ms, "ms"), "-" if one.after_ms is None else figure(one.after_ms, "ms")
    return (text, one.label, *times, over, " ".join(one.done))
