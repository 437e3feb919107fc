"""Circuits: one slot at a time, the same result as on Schedule."""

import numpy as np

from tests.topox_ui.conftest import CIRCUITS, address, chart, control, words
from topox_core.fabrics.scheduled import schedule
from topox_core.figures.slot_state import ports_busy, slot_state, slots
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample


def test_the_headline_counts_the_ports_of_the_slot(visit):
    graph, cluster = load_sample("moe")
    run = schedule(graph, cluster, Settings.of(engine="list", free=FREE)).execution
    carrying = ports_busy(run.circuits, slot_state(run, 24).carrying)
    at = visit(CIRCUITS, sample="moe", slot="24")
    assert not at.exception and not at.error
    assert f"At 24.5 ms, {carrying} of 16 out-ports carry data" in words(at)


def test_the_slot_slider_moves_the_matrix_and_the_address(visit):
    at = visit(CIRCUITS, sample="moe", slot="24")
    before = chart(at, "matrix")
    at.slider[0].set_value(30).run()
    assert not at.exception
    assert chart(at, "matrix") != before
    assert address(at)["slot"] == "30"


def test_the_page_opens_at_the_busiest_slot_and_its_figures_are_those_of_the_slot_in_view(
    visit, downloads
):
    """A download is built when it is asked for, where no session is: it has the slot chosen last."""
    graph, cluster = load_sample("moe")
    run = schedule(graph, cluster, Settings.of(engine="list", free=FREE)).execution
    busy = [ports_busy(run.circuits, slot_state(run, slot).carrying) for slot in range(slots(run))]
    at = visit(CIRCUITS, sample="moe")
    assert busy[at.slider[0].value] == max(busy)
    assert "slot" not in address(at)
    opened = downloads["Figures (HTML, with PNG and SVG)"]()
    at.slider[0].set_value(30).run()
    assert downloads["Figures (HTML, with PNG and SVG)"]() != opened


def test_it_plays_slot_by_slot_and_steps(visit):
    at = visit(CIRCUITS, sample="blackboard", slot="3")
    at.button(key="step_on").click().run()
    assert address(at)["slot"] == "4"
    at.button(key="play").click().run()
    assert at.button(key="play").label == "Stop"
    at.run()
    assert not at.exception and int(address(at)["slot"]) > 4
    at.button(key="play").click().run()
    assert at.button(key="play").label == "Play"


def test_a_slot_beyond_the_end_is_the_last_one(visit):
    at = visit(CIRCUITS, sample="blackboard", slot="5000")
    assert not at.exception
    assert at.slider[0].value == 9


def test_the_cross_connects_of_the_slot_are_a_table(visit):
    at = visit(CIRCUITS, sample="moe", slot="24")
    table = at.dataframe[0].value
    assert list(table.columns) == ["Server", "Switch 0", "Switch 1"]
    assert np.isin("–", table.to_numpy())


def test_one_switch_alone_names_destinations(visit):
    at = visit(CIRCUITS, sample="moe", slot="24")
    control(at, "switch").set_value(1).run()
    assert address(at)["switch"] == "1"
    assert not at.exception
    assert chart(at, "over_time")["data"][0]["type"] == "bar"


def test_circuits_drawn_afresh_each_slot_are_shown_too(visit):
    at = visit(CIRCUITS, sample="moe", model="paper")
    assert not at.exception and not at.error


def test_a_contradiction_is_one_line(visit):
    at = visit(CIRCUITS, sample="moe", tick="0.0371")
    assert not at.exception
    assert len(at.error) == 1
