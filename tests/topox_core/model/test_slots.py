"""What circuits do at one moment of each slot."""

from dataclasses import replace

import numpy as np

from topox_core.model.measures import (
    busiest_slot,
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
        unchanged = replace(run, circuits=replace(moved, changed=np.zeros(6, bool)))
        assert busy[busiest_slot(unchanged)] == max(busy) > 0
    assert ports_busy(circuits, np.array([4, 5]), inwards=True) == 1


def test_the_busiest_slot_is_that_of_the_traffic_that_changes_most_circuits(pipeline):
    """An all-reduce fills every port with circuits that stay: at its height both switches look alike."""
    circuits, changes = pipeline.circuits, np.array([False] * 5 + [True])
    start_ms = np.where(changes, 7.2, 0.2)
    moved = replace(
        circuits, setup_ms=start_ms, start_ms=start_ms, end_ms=start_ms + 0.5, changed=changes
    )
    kinds = ["dp"] * len(pipeline.graph)
    kinds[circuits.node[5]] = "ep"
    run = replace(pipeline, circuits=moved, graph=replace(pipeline.graph, parallelism=tuple(kinds)))
    busy = ports_carrying_a_slot(run)
    assert busiest_slot(run) == 7 and busy[0] > busy[7] == 1
