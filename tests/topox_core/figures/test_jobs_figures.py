"""Rounds on one clock, links with their ports, rings, and the study: what is drawn is what was decided."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from topox_core.figures.jobs.links import link_matrix
from topox_core.figures.jobs.rounds import pod_view, timeline
from topox_core.figures.palette import DARK, LIGHT
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.bottleneck import link_view
from topox_core.tdm.model.jobs import (
    DRAFT,
    NOBODY,
    PULL,
    PUSH,
    Cycle,
    Job,
    Jobs,
    Phase,
    PodNetwork,
    Reading,
    Round,
    RoundBound,
)
from topox_core.tdm.model.rounds import bars

NETWORK = PodNetwork(1, 4, 8, 100.0, 800.0, 500.0)
JOBS = Jobs(
    "three jobs",
    NETWORK,
    (
        Job("ring", "ring_all_reduce", 0, (1, 1, 1, 1), 200.0, 5.0),
        Job(
            "server",
            "parameter_server",
            0,
            (0, 1, 2, 0),
            100.0,
            8.0,
            server_pod=0,
            aggregate_s=0.25,
        ),
        Job("experts", "all_to_all", 0, (0, 0, 1, 1), 50.0, 6.0),
    ),
)
# Group A: the ring and the experts; group B: the parameter server. Every change of circuits takes
# 0.5 s.
LINKS = np.zeros((1, 2, 4, 4), np.int32)
for here, after in ((0, 1), (1, 2), (2, 3), (3, 0)):
    LINKS[0, 0, here, after] = 2
LINKS[0, 0, 3, 2] = 1
LINKS[0, 1, 1, 0], LINKS[0, 1, 2, 0] = 2, 4
# A pushes 250 Gbit over 2 links of 100 Gbit/s: 1.25 s. B pushes 200 Gbit over 4 links: 0.5 s.
PHASES = (
    Phase(0, PUSH, 0.0, 8.5, 0.5, 1.25, 8.0),
    Phase(1, PUSH, 8.5, 15.0, 0.5, 0.5, 6.0),
    Phase(0, PULL, 15.0, 16.75, 0.5, 1.25, 0.25),
    Phase(1, PULL, 16.75, 23.25, 0.5, 0.5, 6.0),
)
ROUND = Round(
    JOBS,
    Reading(),
    DRAFT,
    (0, 1, 0),
    ((0, 1, 2, 3), (), ()),
    LINKS,
    np.array([[1.25, 0.5]]),
    (Cycle((0,), PHASES),),
    "hill-climbing",
    bound=RoundBound(20.0, "training", "two groups"),
    wall_s=0.01,
)
# All jobs in A, nobody in B: communicate, train, communicate, train.
TOGETHER = replace(
    ROUND,
    algorithm="non-tdm",
    group=(0, 0, 0),
    communication_s=np.array([[2.0, 0.0]]),
    cycles=(
        Cycle(
            (0,),
            (
                Phase(0, PUSH, 0.0, 2.5, 0.5, 2.0, 0.0),
                Phase(1, PUSH, 2.5, 8.5, 0.0, 0.0, 6.0),
                Phase(0, PULL, 8.5, 11.0, 0.5, 2.0, 0.0),
                Phase(1, PULL, 11.0, 19.0, 0.0, 0.0, 8.0),
            ),
        ),
    ),
)


def test_a_group_computes_from_the_barrier_after_its_stage_while_the_other_communicates() -> None:
    drawn = {
        (bar.group, bar.kind, bar.start_s): bar.length_s for bar in bars(ROUND, ROUND.cycles[0])
    }
    assert drawn == {
        (0, "push", 0.5): 1.25,
        (0, "pull", 15.5): 1.25,
        (1, "push", 9.0): 0.5,
        (1, "pull", 17.25): 0.5,
        (0, "train", 9.0): 6.0,
        (0, "train", 17.25): 6.0,  # ring and experts train twice a round
        (1, "aggregate", 15.5): 0.25,
        (1, "train", 0.5): 8.0,
    }  # the parameter server once, after its pull


def test_a_telephone_hides_all_of_a_label_but_its_number() -> None:
    """What stands in <span> goes there; the number of a stage stays, since the round's name stands above them."""
    figure = timeline([("Hill climbing", ROUND)], LIGHT)
    texts = [text for trace in figure.data for text in (trace.text or ()) if text]
    left = {re.sub("<span>.*?</span>", "", text) for text in texts}
    assert left == {"8", "6", "1", "2", "3", "4", ""}
    assert {"stage 1", "push"} <= {re.sub("</?span>", "", text) for text in texts}


def trains_of_the_parameter_server(round_: Round) -> list[tuple[float, float]]:
    drawn = bars(round_, round_.cycles[0])
    return [(b.start_s, b.length_s) for b in drawn if (b.group, b.kind) == (1, "train")]


def test_the_printed_equation_lets_a_parameter_server_train_in_both_stages() -> None:
    literal = replace(ROUND, reading=Reading(eq3_literal=True))
    assert {0.5, 15.5} <= dict(trains_of_the_parameter_server(literal)).keys()


@pytest.mark.parametrize("round_", [ROUND, TOGETHER], ids=["in turns", "together"])
def test_no_bar_of_a_lane_covers_another(round_: Round) -> None:
    drawn = [bar for bar in bars(round_, round_.cycles[0]) if bar.kind != "aggregate"]
    for group in (0, 1):
        lane = sorted((bar for bar in drawn if bar.group == group), key=lambda bar: bar.start_s)
        assert all(a.start_s + a.length_s <= b.start_s + 1e-9 for a, b in itertools.pairwise(lane))


def test_computing_that_goes_on_in_the_next_round_is_drawn_at_its_beginning() -> None:
    cycle = Cycle(
        (0,),
        (
            Phase(0, PUSH, 0.0, 1.25, 0.0, 1.25, 0.0),
            Phase(1, PUSH, 1.25, 1.75, 0.0, 0.5, 0.0),
            Phase(NOBODY, PUSH, 1.75, 7.25, 0.0, 0.0, 5.5),
            Phase(0, PULL, 7.25, 8.5, 0.0, 1.25, 0.0),
            Phase(1, PULL, 8.5, 9.0, 0.0, 0.5, 0.0),
            Phase(NOBODY, PULL, 9.0, 14.5, 0.0, 0.0, 5.5),
        ),
    )
    server = trains_of_the_parameter_server(replace(ROUND, cycles=(cycle,)))
    assert server == [(9.0, 5.5), (0.0, 2.5)]


def test_links_carry_what_is_sent_and_take_a_port_at_both_ends() -> None:
    view = link_view(ROUND, 0, 0)
    assert view.demand_gbit[2, 3] == 250.0  # the ring's arc and the experts' pair
    assert view.time_s[2, 3] == 1.25 and view.worst == (2, 3)
    assert view.ports.tolist() == [4, 4, 5, 5]
    physical = replace(ROUND, reading=Reading(physical_ring=True))  # twice the volume less one part
    assert link_view(physical, 0, 0).demand_gbit[0, 1] == pytest.approx(300.0)


def test_the_matrix_outlines_the_slowest_pair() -> None:
    (outline,) = link_matrix(link_view(ROUND, 0, 0), LIGHT).layout.shapes
    assert (outline.x0, outline.y0) == (3 - 0.47, 2 - 0.47)
    quiet = link_view(replace(ROUND, group=(1, 1, 1), links=np.zeros_like(LINKS)), 0, 0)
    assert quiet.worst is None and not link_matrix(quiet, LIGHT).layout.shapes


# -- one pod on the common clock -------------------------------------------------------------------------

EXECUTION = execution_of(ROUND, 0)
NAMES = [job.id for job in JOBS.jobs]


def test_a_pod_shows_its_own_jobs_and_the_ports_it_uses() -> None:
    """Pod 0 has a unit of the ring, and aggregates; 4 ports serve the ring (2 links in, 2 out), 6 the parameter server."""
    *_, lanes = pod_view(EXECUTION, 0, NAMES)
    assert lanes.names()[:2] == ["ring", "server"] and len(lanes.ports) == 6


def test_what_arrives_is_drawn_on_the_port_it_arrives_at() -> None:
    """Every link into a pod takes one of its ports too: busy port time in and out are all there."""
    for pod in range(4):
        _, bars, lanes = pod_view(EXECUTION, pod, NAMES)
        circuits = EXECUTION.circuits
        touching = (circuits.source == pod) | (circuits.destination == pod)
        ports = np.where(circuits.source == pod, circuits.source_port, circuits.destination_port)
        links = (bars.circuit >= 0) & (bars.category != DARK)
        on_port = [lanes.ports[row - lanes.devices][1] for row in bars.row[links]]
        assert sorted(on_port) == sorted(ports[touching])
        on_ports = bars.circuit >= 0
        drawn = (bars.end_ms - bars.start_ms)[on_ports].sum()
        assert drawn == pytest.approx((circuits.end_ms - circuits.setup_ms)[touching].sum())
