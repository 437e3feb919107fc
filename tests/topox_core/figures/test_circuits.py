"""Circuit charts: the matrix of a slot, every out-port over the iteration, changes."""

from dataclasses import replace

import numpy as np

from topox_core.figures.circuits import cross_connects_in, matrix
from topox_core.figures.palette import LIGHT
from topox_core.model.measures import (
    busiest_slot,
    changes_a_slot,
    ports_busy,
    ports_carrying_a_slot,
    slot_state,
    slots,
)


def test_a_moment_shows_one_circuit_a_port_where_two_follow_one_another_within_the_slot(pipeline):
    """Shown together they would look as if the port had two partners at a time."""
    start_ms = np.array([0.0, 0.3, 0.6, 10.0, 10.3, 10.6])
    moved = replace(
        pipeline.circuits,
        source=np.zeros(6, np.int32),
        switch=np.zeros(6, np.int32),
        setup_ms=start_ms,
        start_ms=start_ms,
        end_ms=start_ms + 0.3,
    )
    state = slot_state(replace(pipeline, circuits=moved), 0)
    assert state.at_ms == 0.5 and state.all.tolist() == [1]


def test_a_port_counts_once_at_every_moment_in_which_it_carries_whatever_lies_on_it(pipeline):
    circuits, rng = pipeline.circuits, np.random.default_rng(0)
    for start in (circuits.start_ms, rng.uniform(0, 30, 6)):
        moved = replace(circuits, start_ms=start, end_ms=start + rng.uniform(0, 7, 6))
        run = replace(pipeline, circuits=moved)
        states = [slot_state(run, slot) for slot in range(slots(run))]
        busy = [ports_busy(moved, state.carrying) for state in states]
        assert ports_carrying_a_slot(run).tolist() == busy
        assert busy[busiest_slot(run)] == max(busy) > 0
    assert ports_busy(circuits, np.array([4, 5]), inwards=True) == 1


def test_the_matrix_draws_a_cell_from_the_sender_to_the_receiver(pipeline):
    (cell,) = (t for t in matrix(pipeline, slot_state(pipeline, 4), LIGHT).data if t.type == "bar")
    assert (cell.y[0], cell.base[0] + 0.46) == (0, 1)


def test_parallel_circuits_share_their_cell(pipeline):
    circuits = replace(
        pipeline.circuits,
        destination=np.array([1, 1, 2, 2, 0, 0], np.int32),
        source=np.array([0, 0, 1, 1, 0, 0], np.int32),
        start_ms=np.zeros(6),
        setup_ms=np.zeros(6),
        end_ms=np.full(6, 5.0),
        switch=np.array([0, 1, 0, 1, 0, 1], np.int32),
    )
    crowded = replace(pipeline, circuits=circuits)
    bars = [t for t in matrix(crowded, slot_state(crowded, 0), LIGHT).data if t.type == "bar"]
    assert all(np.allclose(np.asarray(t.x, float), 0.46) for t in bars)
    assert np.isclose(abs(bars[0].base[0] - bars[1].base[0]), 0.46)


def test_a_circuit_that_is_set_up_is_dark_and_counts_as_a_change(pipeline):
    state = slot_state(pipeline, 31)
    assert state.carrying.size == 0
    assert pipeline.circuits.node[state.dark].tolist() == [pipeline.graph.ids.index("g1")]
    assert cross_connects_in(pipeline, state)["Switch 1"] == ["–", "dark → S0", "–"]
    assert np.flatnonzero(changes_a_slot(pipeline)).tolist() == [4, 10, 28, 31]
