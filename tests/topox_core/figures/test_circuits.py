"""Circuit charts: the matrix of a slot, every out-port over the iteration, changes."""

from dataclasses import replace

import numpy as np

from topox_core.figures.circuit_matrix import matrix
from topox_core.figures.circuit_timeline import changes, ports_over_time
from topox_core.figures.palette import LIGHT, VERMILION
from topox_core.figures.slot_state import (
    busiest_slot,
    changes_a_slot,
    cross_connects_in,
    ports_busy,
    ports_carrying_a_slot,
    slot_state,
    slots,
)


def test_a_moment_shows_one_circuit_a_port_where_two_follow_one_another_within_the_slot(pipeline):
    """Shown together they would look as if the port had two partners at a time."""
    start, end = np.array([0.0, 0.3, 0.6]), np.array([0.3, 0.6, 0.9])
    circuits = pipeline.circuits
    n = len(circuits)
    moved = replace(
        circuits,
        source=np.zeros(n, np.int32),
        switch=np.zeros(n, np.int32),
        setup_ms=np.resize(start, n) + 10 * (np.arange(n) // 3),
        start_ms=np.resize(start, n) + 10 * (np.arange(n) // 3),
        end_ms=np.resize(end, n) + 10 * (np.arange(n) // 3),
    )
    state = slot_state(replace(pipeline, circuits=moved), 0)
    assert state.at_ms == 0.5 and state.all.tolist() == [1]


def test_a_port_counts_once_at_every_moment_in_which_it_carries_whatever_lies_on_it(pipeline):
    circuits = pipeline.circuits
    n = len(circuits)
    rng = np.random.default_rng(0)
    for start in (circuits.start_ms, rng.uniform(0, 30, n)):
        moved = replace(circuits, start_ms=start, end_ms=start + rng.uniform(0, 7, n))
        run = replace(pipeline, circuits=moved)
        states = [slot_state(run, slot) for slot in range(slots(run))]
        busy = [ports_busy(moved, state.carrying) for state in states]
        assert ports_carrying_a_slot(run).tolist() == busy
        assert busy[busiest_slot(run)] == max(busy) > 0
    assert ports_busy(circuits, np.array([0, 1])) == 1
    assert ports_busy(circuits, np.array([4, 5]), inwards=True) == 1


def test_the_matrix_draws_a_cell_a_circuit_and_hatches_one_that_is_dark(pipeline):
    state = slot_state(pipeline, 4)
    (cell,) = (t for t in matrix(pipeline, state, LIGHT).data if t.type == "bar")
    assert (cell.name, cell.text[0], cell.marker.color) == (
        "switch 0",
        "<b>0</b>",
        LIGHT.switch_colour(0),
    )
    assert (cell.y[0], cell.base[0] + 0.46) == (0, 1)  # from server 0 to server 1
    state = slot_state(pipeline, 31)
    assert len(state.carrying) == 0
    assert pipeline.circuits.node[state.dark].tolist() == [pipeline.graph.ids.index("g1")]
    figure = matrix(pipeline, state, LIGHT)
    dark = next(t for t in figure.data if t.name == "dark")
    assert dark.marker.pattern.fgcolor == VERMILION
    counted = {a.text for a in figure.layout.annotations}
    assert {"<b>1</b> of 2", "<b>0</b> of 2<br>out"} <= counted  # server 1 sends


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
    left = {t.name: float(np.asarray(t.base)[0]) for t in bars}
    assert np.isclose(left["switch 1"] - left["switch 0"], 0.46)


def test_the_program_of_a_slot_reads_server_by_switch(pipeline):
    table = cross_connects_in(pipeline, slot_state(pipeline, 31))
    assert table["Server"] == ["S0", "S1", "S2"]
    assert table["Switch 1"] == ["–", "dark → S0", "–"]
    assert table["Switch 0"] == ["–"] * 3


def test_changes_are_counted_in_the_slot_of_their_set_up(pipeline):
    counts = changes_a_slot(pipeline)
    assert {slot: int(n) for slot, n in enumerate(counts) if n} == {4: 1, 10: 1, 28: 1, 31: 1}
    assert changes(pipeline, slot_state(pipeline, 31), LIGHT).layout.shapes[0].x0 == 31.5


def test_many_servers_and_ports_are_drawn_as_one_small_byte_image(crowd):
    figure = ports_over_time(crowd, slot_state(crowd, 5), None, LIGHT)
    assert np.asarray(figure.data[0].z).dtype == np.uint8
    assert len(figure.to_json()) < 150_000
    wide = replace(crowd, cluster=crowd.cluster.changed(servers=128))
    figure = matrix(wide, slot_state(wide, 4), LIGHT)
    assert figure.data[0].z.shape == (128, 128)
    assert len(figure.to_json()) < 60_000
