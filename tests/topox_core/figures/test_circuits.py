"""Circuit charts: the matrix of a slot, every out-port over the iteration, changes."""

from dataclasses import replace

import numpy as np

from topox_core.figures.circuits import cross_connects_in, matrix
from topox_core.figures.palette import LIGHT
from topox_core.model.measures import (
    changes_a_slot,
    slot_state,
)


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
