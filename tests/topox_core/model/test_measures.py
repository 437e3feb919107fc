"""Measures of an execution, and the chain that sets its length."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topox_core.conftest import build
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import critical_path
from topox_core.model.measures import (
    circuit_lives_ms,
    covered_ms,
    measures,
    port_table,
    ports_in_use,
)


def test_shares_are_of_the_whole_cluster_over_the_whole_iteration(pipeline):
    now = measures(pipeline)
    assert now.makespan_ms == 37
    assert now.device_busy == pytest.approx((9 + 8 + 16) / (3 * 37))
    assert now.port_carrying == pytest.approx(14 / (3 * 2 * 37))
    assert now.port_dark == pytest.approx(2 / (3 * 2 * 37))
    assert now.circuits_changed == 4


def test_a_kept_circuit_lives_from_its_first_use_to_its_last(pipeline):
    circuits = pipeline.circuits
    assert sorted(circuit_lives_ms(circuits)) == [3, 3, 6, 6]
    assert measures(pipeline).mean_life_ms == 4.5
    # One that stood before the iteration has a life of its own on each port.
    standing = replace(circuits, changed=np.zeros(len(circuits), bool))
    assert sorted(circuit_lives_ms(standing)) == [3, 3, 6, 6]


def test_tasks_that_share_a_device_are_counted_once():
    cluster = Cluster(servers=1, ports_per_server=1, switches=1, ports_per_switch=1, port_gbps=1)
    both = build(
        [("a", "forward", "", 0, 0, 6, []), ("b", "forward", "", 0, 3, 10, [])], [], cluster
    )
    assert measures(both).device_busy == 1.0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 9)), max_size=25))
def test_covered_time_is_the_measure_of_the_union(rows):
    group, start, length = (
        (np.array(column, float) for column in zip(*rows, strict=True))
        if rows
        else (np.zeros(0),) * 3
    )
    cells = {(g, t) for g, s, n in rows for t in range(s, s + n)}
    assert covered_ms(group.astype(np.int64), start, start + length) == pytest.approx(len(cells))


def test_the_critical_chain_has_no_hole_and_ends_with_the_iteration(pipeline):
    chain = critical_path(pipeline)
    names = [pipeline.graph.ids[i] for i in chain.nodes]
    assert names == ["f0s0", "f1s0", "a1", "f1s1", "b1", "f1s2", "B2", "g2", "g1", "u0"]
    ends = [0, *pipeline.end_ms[chain.nodes]]
    assert ends[-1] == pipeline.makespan_ms
    assert chain.begin_ms.tolist() == ends[:-1]
    # The dark stretch lies on the chain where the port was what held up: from g1's set-up at 31.
    assert (chain.waits[-2], chain.begin_ms[-2]) == ("port", 31)


def test_a_transfer_that_waits_for_its_slot_still_hangs_on_its_predecessor():
    cluster = Cluster(
        servers=2, ports_per_server=1, switches=1, ports_per_switch=2, port_gbps=1, slot_ms=1.0
    )
    run = build(
        [("f", "forward", "", 0, 0, 2.25, []), ("x", "communication", "pp", (0, 1), 3, 5, ["f"])],
        [(0, 0, 1, 3, 3, 5, "x", False)],
        cluster,
    )
    chain = critical_path(run)
    assert chain.waits == ("start", "dependency")
    assert chain.slack_ms[1] == pytest.approx(0.75)


def test_ports_in_use_is_exact_between_edges(pipeline):
    circuits = pipeline.circuits
    mean = ports_in_use(circuits.start_ms, circuits.end_ms, np.array([0.0, 4, 6, 28, 31, 37]))
    assert mean == pytest.approx([0, 1, 6 / 22, 1, 0.5])


def test_the_port_table_adds_up_to_the_measures(pipeline):
    table, now = port_table(pipeline), measures(pipeline)
    assert sum(table["carrying (ms)"]) == pytest.approx(now.port_carrying * 3 * 2 * 37)
    assert sum(table["dark (ms)"]) == pytest.approx(now.dark_ms)
    assert sum(table["circuit changes"]) == now.circuits_changed
