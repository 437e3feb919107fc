"""``verdict``: up to which delay changing circuits pays for a job, and from which on no plan can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read_graph_and_cluster
from topox_core.cli.options import (
    CLUSTER_KEYS,
    FILES,
    ITERATION,
    JSON,
    LIMITS,
    LOWERING,
    Option,
    cluster_overrides,
    settings,
)
from topox_core.cli.printing import ctrl_c_stops, figure, note, table

if TYPE_CHECKING:
    from topox_core.fabrics.verdict import Bracket, Verdict


@command(
    "verdict",
    "say up to which delay changing circuits pays for a job",
    "Say up to which reconfiguration delay changing circuits pays for a job, against the best fixed circuits found, "
    "a fat-tree of the same cost and a full one, and from which delay on no plan can.",
    *FILES,
    Option(
        "--effort list|search|prove",
        str,
        "a few plans by rules (default), as many as the bracket needs, or exact engines besides",
        default="list",
    ),
    ITERATION,
    JSON,
    LOWERING,
    LIMITS,
    CLUSTER_KEYS,
)
def run(options: Arguments) -> Answer:
    """Find the verdict; 1 where no rival can run the job."""
    from topox_core.fabrics.verdict import verdict

    asked = settings(options)
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, cluster_overrides(options)
    )
    with ctrl_c_stops() as stop:
        found = verdict(graph, cluster, asked, options.effort, stop=stop, on_step=_note_step)
    head = ("rival", "iteration", "pays up to", "cannot pay from", "cheaper up to", "laid by")
    lines = (
        found.sentence,
        *([table(head, *map(_row, found.brackets))] if found.brackets else ()),
        *(f"{name} cannot run: {why}" for name, why in found.refused.items()),
    )
    return Answer(found.as_record(), lines, 0 if found.brackets else 1)


def _row(one: Bracket) -> tuple[str, ...]:
    usd = one.cheaper_up_to_usd
    return (
        one.name,
        figure(one.iteration_ms, "ms"),
        "never" if one.pays_up_to_ms is None else figure(one.pays_up_to_ms, "ms"),
        figure(one.cannot_pay_from_ms, "ms"),
        "-" if usd is None else f"${usd:,.0f} per port" if usd >= 0 else "not even free",
        one.laid_by or "-",
    )


def _note_step(found: Verdict) -> None:
    ends = (
        f"{one.name} {figure(one.pays_up_to_ms)} to {figure(one.cannot_pay_from_ms, 'ms')}"
        for one in found.brackets
    )
    note("; ".join(ends))
