"""What cannot be asked of fabrics is told in one line that names its field."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.refusal import refusal
from tests.topox_core.fabrics.asked import run
from tests.topox_core.fabrics.exact_layout import exact_direct_layout
from tests.topox_core.fabrics.test_collectives import alone
from tests.topox_core.fabrics.test_links import layout, ring
from tests.topox_core.fabrics.test_regional import two_exchanges
from tests.topox_core.small_graphs import cluster, compute, graph, transfer
from topox_core.fabrics.controllers.one_collective import OneCollective
from topox_core.fabrics.crossover.verdict import verdict
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Layout
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph

JOB = graph(transfer("a", 0, 1, 1.0), compute("long", 0, 50.0))
TWO_PORTS = {"ports_per_server": 2, "switches": 2}
UNEVEN = cluster(2, ports_per_server=3, switches=2)
APART = {"job": two_exchanges(1.0), "regional_packet_ports": 0}


def on(
    fabric: str, of: Cluster | None = None, job: TaskGraph = JOB, **options: Any
) -> Callable[[], object]:
    """Return a call that asks a fabric to run a job, of itself a transfer from server 0 to 1."""
    return lambda: run(fabric, job, of or cluster(3, **TWO_PORTS), **options)


def regional(**options: Any) -> Callable[[], object]:
    return on("regional", **options)


def laid(circuits: Layout) -> Callable[[], object]:
    return on("static", cluster(min(circuits.servers, 4), **TWO_PORTS), layout=circuits)


def many(transfers: int, duplex: str) -> Callable[[], object]:
    job = graph(*(transfer(f"t{k}", 0, 1, 1.0) for k in range(transfers)))
    return lambda: exact_direct_layout(lower(job), cluster(2, duplex=duplex), 20.0)


def steps(kind: str, name: str, n: int) -> Callable[[], object]:
    return lambda: OneCollective(kind, name, n, 2, 8.0, 0.0, 1.0)


def parts(word: str) -> Callable[[], object]:
    return lambda: lower(alone("all_to_all", 4), Lowering(algorithm={"all_to_all": word}))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (on("fat_tree", oversubscription=0.5), "field oversubscription: must be from 1 to 1e+12"),
        (
            on("fat_tree", oversubscription=float("nan")),
            "oversubscription: must be a finite number",
        ),
        (on("fat_tree", servers_per_rack=-1), "field servers_per_rack: must be from 0"),
        (on("fat_tree", servers_per_rack=1.5), "field servers_per_rack: must be a whole number"),
        (on("fat_tree", equivalent_gbps=0.0), "field equivalent_gbps: must be from 1e-06 to 1e+12"),
        (on("fat_tree", equivalent_gbps=float("inf")), "field equivalent_gbps: must be"),
        *(
            (on(name, UNEVEN), "field ports_per_server: must be a multiple of switches (2)")
            for name in ("reactive", "provisioned", "scheduled")
        ),
        (on("reevaluated", reevaluate_ms=0.0), "field reevaluate_ms: must be from 0.001"),
        (on("reevaluated", reevaluate_ms=float("nan")), "field reevaluate_ms: must be a finite"),
        (on("reevaluated", pause="some"), "field pause: must be one of all, changed"),
        (on("reevaluated", reevaluate_ms=0.001), "more than 5,000 times"),
        (regional(regional_packet_ports=3), "_ports: must be a whole number from 0 to 2"),
        (regional(regional_packet_ports="third"), "regional_packet_ports: must be"),
        (regional(region_servers=-1), "region_servers: must be from 0 to"),
        (regional(regional_circuits="soon"), "must be one of gate, foreseen, fixed"),
        (regional(regional_dealt="luck"), "regional_dealt: must be one of bottleneck, bytes"),
        (regional(gating="coin"), "gating: must be one of given, walk, dirichlet, zipf"),
        (regional(gating_skew=float("nan")), "gating_skew: must be a finite number"),
        (regional(gating_persistence=1.5), "gating_persistence: must be from 0 to 1"),
        (regional(gating_iterations=0), "gating_iterations: must be from 1 to 1,000"),
        (
            regional(**APART, of=cluster(4, **TWO_PORTS), region_servers=2),
            "server 0 sends to server 2",
        ),
        # With one port a server no fixed circuit joins the pairs of both exchanges.
        (
            regional(**APART, of=cluster(4), regional_circuits="fixed"),
            "never gets a circuit to server",
        ),
        # Layouts by hand.
        (laid(layout(3, {(0, 1): 3})), "3 circuits out of server 0, which has 2 ports"),
        (
            laid(layout(4, {(0, 3): 1, (1, 3): 1, (2, 3): 1})),
            "3 circuits into server 3, which has 2 ports",
        ),
        (
            laid(layout(3, {(0, 2): 1}, (0, 2, 1))),
            "uses a circuit from server 2 to server 1, which is not there",
        ),
        (
            laid(Layout(layout(3, {(0, 2): 1}).circuits, {(0, 1): ((0, 2),)})),
            "does not lead from server 0 to server 1",
        ),
        (laid(layout(2, {(1, 0): 1})), "server 0 sends to server 1, but has no route to it"),
        (laid(layout(5, ring(5))), "joins 5 servers, but the cluster has 4"),
        # Layouts searched.
        (on("static", layout_by="chance"), "layout_by: must be one of topoopt, matrix, graph"),
        (
            on("static", layout_by="graph", layout_steps=-1),
            "layout_steps: must be from 0 to 1,000,000",
        ),
        (on("static", cluster(2_000), layout_by="matrix"), "servers: must be at most 1,024"),
        (on("static", cluster(2_000), layout_by="graph"), "servers: must be at most 1,024"),
        (many(13, "full"), "13 transfers with bytes, more than the 12"),
        (many(12, "half"), "field duplex: must be full"),
        (lambda: verdict(JOB, cluster(3), effort="much"), "effort: must be"),
        # Collectives whose circuits change inside.
        (steps("all_to_all", "direct", 8), "a member sends or receives twice in a step"),
        (steps("reduce_scatter", "halving", 6), "needs 2, 4, 8, ... members (got 6)"),
        (steps("all_reduce", "magic", 8), "must be one of ring, direct"),
        (steps("all_reduce", "ring", 1000), "from 2 to 256"),
        (parts("pairwise[1:0|1]"), "uneven parts are above 0"),
        (parts("pairwise[1|1]"), "has 3 steps (uneven parts for 2)"),
        (parts("pairwise[]"), "must be one of"),
        (parts("pairwise[1:x|1]"), "must be one of"),
        (parts("default[1]"), "uneven parts are above 0"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    asked: Callable[[], object], words: str
) -> None:
    assert words in refusal(asked)
