"""Circuits: one slot at a time, the same result as on Schedule."""

import pytest

from tests.topox_ui.conftest import (
    CIRCUITS,
    address,
    chart,
    choose,
    press,
    the_error,
    unbroken,
    words,
)
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.model.execution import busiest_slot, ports_busy, slot_state, slots
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample

pytestmark = pytest.mark.usefixtures("answers_kept")


def test_the_page_opens_at_the_busiest_slot_and_its_figures_are_those_of_the_slot_in_view(
    visit, downloads
):
    """A download is built when it is asked for, where no session is: it has the slot chosen last."""
    graph, cluster = load_sample("moe")
    slow = cluster.changed(
        port_gbps=200.0
    )  # for the sample's own speed the release has a better plan
    run = schedule(graph, slow, Settings.of(engine="list", free=FREE)).execution
    busy = [ports_busy(run.circuits, slot_state(run, slot).carrying) for slot in range(slots(run))]
    at = visit(CIRCUITS, sample="moe", port_gbps="200")
    assert at.slider[0].value == busiest_slot(run) and "slot" not in address(at)
    opened, before = downloads["Figures (HTML, with PNG and SVG)"](), chart(at, "matrix")
    unbroken(at.slider[0].set_value(24).run())
    assert chart(at, "matrix") != before and address(at)["slot"] == "24"
    assert downloads["Figures (HTML, with PNG and SVG)"]() != opened
    assert address(choose(at, switch=1))["switch"] == "1"
    at = visit(CIRCUITS, sample="moe", port_gbps="200", slot="24")
    assert f"At 24.5 ms, {busy[24]} of 16 out-ports carry data" in words(at)


def test_it_plays_slot_by_slot_and_steps(visit):
    at = press(visit(CIRCUITS, sample="blackboard", slot="3"), "step_on")
    assert address(at)["slot"] == "4"
    assert press(at, "play").button(key="play").label == "Stop"
    assert int(address(unbroken(at.run()))["slot"]) > 4
    assert press(at, "play").button(key="play").label == "Play"


def test_a_slot_beyond_the_end_is_the_last_one_and_circuits_drawn_afresh_are_shown_too(visit):
    assert visit(CIRCUITS, sample="blackboard", slot="5000").slider[0].value == 9
    assert not visit(CIRCUITS, sample="race", model="paper").error
    assert "must divide the slot" in the_error(visit(CIRCUITS, sample="race", tick="0.0371"))
