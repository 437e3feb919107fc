"""Schedule: sliders answer, links restore, contradictions are told, a proof replaces the list schedule."""

import pytest

from tests.conftest import long_after
from tests.patience import wait_until
from tests.topox_ui.conftest import CIRCUITS, SCHEDULE, address, chart, control, metric, words
from topox_core.fabrics.scheduled import schedule
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample
from topox_ui.state import what_ifs as what_if


def test_a_cold_link_shows_the_sample_scheduled_and_checked(visit):
    at = visit(SCHEDULE, sample="blackboard")
    assert not at.exception and not at.error
    assert metric(at, "Iteration time") == "10 ms"
    assert metric(at, "Gap to bound") == "0 %"
    assert "Proved optimal" in words(at)
    assert "no schedule can be shorter." in words(at)
    assert "✗" not in words(at)


def test_the_page_shows_what_the_scheduler_says(visit):
    graph, cluster = load_sample("patience")
    expected = schedule(graph, cluster, Settings.of(engine="list", free=FREE))
    at = visit(SCHEDULE, sample="patience")
    assert metric(at, "Iteration time") == f"{expected.makespan_ms:g} ms"
    assert "Feasible" in words(at)


def test_a_slider_changes_the_answer_the_gantt_chart_and_the_address(visit):
    at = visit(SCHEDULE, sample="blackboard")
    before = chart(at, "gantt")
    control(at, "port_gbps").set_value(100.0).run()
    assert not at.exception
    assert metric(at, "Iteration time") != "10 ms"
    assert chart(at, "gantt") != before
    assert address(at)["port_gbps"] == "100"
    assert "shorter" in next(m.delta for m in at.metric if m.label == "Iteration time")
    assert "Changes are against the values of the sample: 10 ms." in words(at)
    control(at, "port_gbps").set_value(200.0).run()
    assert "against the values of the sample: 10 ms." in words(at), "not against the move before"


def test_a_link_restores_sliders_and_window(visit):
    at = visit(SCHEDULE, sample="blackboard", port_gbps="100", from_ms="1", to_ms="4")
    assert control(at, "port_gbps").value == 100.0
    low, high = chart(at, "gantt")["layout"]["xaxis"]["range"]
    assert (low, high) == (1.0, 4.0)


def test_garbage_in_the_link_is_one_line(visit):
    at = visit(SCHEDULE, sample="blackboard", port_gbps="abc", nonsense="1")
    assert not at.exception
    assert [w.value for w in at.warning] == ["Ignored in the link: port_gbps=abc, nonsense=1"]
    assert metric(at, "Iteration time") == "10 ms"


def test_a_contradiction_is_one_line_and_reset_mends_it(visit):
    at = visit(SCHEDULE, sample="moe", tick="0.0371")
    assert not at.exception
    assert len(at.error) == 1 and "must divide the slot" in at.error[0].value
    at.button(key="reset_here").click().run()
    assert not at.error
    assert metric(at, "Iteration time")


def test_a_link_says_which_choices_do_not_go_together_and_applies_the_rest(visit):
    at = visit(SCHEDULE, sample="moe", ports_per_server="7", rings="2")
    assert not at.exception and not at.error
    assert at.warning[0].value.startswith(
        "Ignored in the link: ports_per_server=7 (must be a multiple of switches"
    )
    assert address(at) == {"sample": "moe", "rings": "2"}
    assert control(at, "rings").value == 2 and control(at, "ports_per_server").value == 2


def test_reset_goes_back_to_the_files_values(visit):
    at = visit(SCHEDULE, sample="blackboard", port_gbps="100", reconfiguration_ms="2")
    next(b for b in at.button if b.label == "Reset what-ifs").click().run()
    assert metric(at, "Iteration time") == "10 ms"
    assert address(at) == {"sample": "blackboard"}


SLIDERS = {
    "reconfiguration_ms": what_if.DELAYS_MS,
    "port_gbps": what_if.SPEEDS_GBPS,
    "switches": what_if.SWITCHES,
    "slot_ms": what_if.SLOTS_MS[3:],
    "rings": what_if.RINGS,
}


@pytest.mark.parametrize("key", long_after(2, SLIDERS))
def test_both_ends_of_every_slider_give_a_schedule(visit, key):
    at = visit(SCHEDULE, sample="patience")
    for end in (-1, 0):
        control(at, f"{key}").set_value(SLIDERS[key][end]).run()
        assert not at.exception and not at.error
        assert metric(at, "Iteration time")
    assert address(at).get(key) in (f"{SLIDERS[key][0]:g}", None)


def choice(at, key):
    return control(at, key)


def test_the_printed_model_and_back(visit):
    at = visit(SCHEDULE, sample="patience", reconfiguration_ms="1")
    choice(at, "model").set_value("paper").run()
    assert not at.exception and not at.error
    assert address(at)["model"] == "paper"
    assert control(at, "reconfiguration_ms").disabled
    assert "The delay of 1 ms counts again when they stay." in at.sidebar.caption[0].value
    for toggle in ("exclusive_devices", "share_circuits", "any_port"):
        control(at, f"{toggle}").set_value(not control(at, f"{toggle}").value).run()
        assert not at.exception and not at.error
    choice(at, "circuits").set_value("continuous").run()
    assert not at.exception and not at.error
    assert control(at, "any_port").disabled
    choice(at, "model").set_value("physical").run()
    assert address(at) == {"sample": "patience", "reconfiguration_ms": "1"}


@pytest.mark.long
def test_rings_and_algorithms_are_open_until_they_are_chosen(visit):
    at = visit(SCHEDULE, sample="fsdp")
    assert "Chosen for this plan: collectives on 2" in words(at)
    assert control(at, "rings").value == 0 and control(at, "all_gather").value == "auto"
    control(at, "rings").set_value(2).run()
    control(at, "all_gather").set_value("bruck").run()
    assert not at.exception and not at.error
    assert metric(at, "Iteration time")
    assert address(at) == {"sample": "fsdp", "rings": "2", "all_gather": "bruck"}
    again = visit(SCHEDULE, **address(at))
    assert control(again, "all_gather").value == "bruck"
    control(again, "all_gather").set_value("auto").run()
    control(again, "rings").set_value(0).run()
    assert address(again) == {"sample": "fsdp"}


@pytest.mark.long
def test_half_duplex_and_all_reduces_off_the_network(visit):
    at = visit(SCHEDULE, sample="fsdp")
    choice(at, "duplex").set_value("half").run()
    control(at, "all_reduce_on_network").set_value(False).run()
    assert not at.exception and not at.error
    assert address(at) == {"sample": "fsdp", "duplex": "half", "all_reduce_on_network": "no"}


@pytest.mark.long
def test_a_proof_replaces_the_list_schedule_on_every_page(visit):
    at = visit(SCHEDULE, sample="patience", clock="slots")
    assert "Feasible" in words(at)
    at.button(key="prove").click().run()
    assert not at.exception
    wait_until(lambda: "Proved optimal" in words(at), at.run)
    assert "Proved optimal" in words(at)
    assert metric(at, "Iteration time") == "14 ms"
    at.switch_page(CIRCUITS).run()
    at.switch_page(SCHEDULE).run()
    assert "Proved optimal" in words(at)


@pytest.mark.long
def test_a_graph_too_large_for_an_engine_is_refused_in_one_line_and_stays_scheduled(visit):
    at = visit(SCHEDULE, sample="dlrm-16", engine="printed")
    at.button(key="prove").click().run()
    wait_until(lambda: "No exact solve" in words(at), at.run)
    assert not at.exception
    assert "No exact solve: the printed model would have" in words(at)
    assert metric(at, "Iteration time")


def test_the_list_schedules_story_is_a_sentence_with_a_table_and_no_chart(visit):
    at = visit(SCHEDULE, sample="blackboard")
    assert "How this schedule was found" in words(at)
    assert "List scheduling met the bound, 10 ms" in words(at)
    assert not any(element.proto.id.endswith("-search") for element in at.get("plotly_chart"))


def test_every_engine_can_be_chosen_and_so_can_the_cores(visit):
    at = visit(SCHEDULE, sample="patience", engine="cpsat", threads="1")
    assert not at.exception and not at.warning
    assert control(at, "engine").value == "cpsat"
    assert control(at, "threads").value == 1
    control(at, "threads").set_value(2).run()
    control(at, "engine").set_value("auto").run()
    assert address(at) == {"sample": "patience"}


def test_more_cores_than_the_machine_has_are_refused_in_one_line(visit):
    at = visit(SCHEDULE, sample="blackboard", threads="100000")
    assert [w.value for w in at.warning] == ["Ignored in the link: threads=100000"]


def test_the_race_is_offered_with_its_limit_from_the_link(visit):
    at = visit(SCHEDULE, sample="patience", race_s="2")
    assert "Who finds the shortest" not in words(at), "the race is behind an expander"
    at.session_state["race_box"] = True
    at.run()
    assert not at.exception
    assert "Who finds the shortest schedule of this graph" in words(at)
    assert "At most 6 s on 2 cores" in words(at)
    assert control(at, "race_s").value == 2.0
    control(at, "race_s").set_value(5.0).run()
    assert "race_s" not in address(at)


@pytest.mark.long
def test_a_race_ends_in_a_finding_that_the_headline_agrees_with(visit):
    at = visit(SCHEDULE, sample="patience", clock="slots")
    at.session_state["race_box"] = True
    at.run().button(key="race").click().run()
    assert not at.exception
    assert next(b for b in at.button if b.key == "prove").disabled
    wait_until(
        lambda: (
            "Solid: the best schedule" in words(at)
            and not any(b.key == "cancel_race" for b in at.button)
        ),
        at.run,
    )
    assert not at.exception
    assert "prove 14 ms" in words(at)
    assert metric(at, "Iteration time") == "14 ms"
    assert "Proved optimal" in words(at)
    assert [b for b in at.button if b.key == "race"] == []
    assert chart(at, "race_chart")["data"]
    # Another limit is another race; the first is there again when one comes back.
    control(at, "race_s").set_value(2.0).run()
    assert "Who finds the shortest schedule" in words(at)
    control(at, "race_s").set_value(5.0).run()
    assert "prove 14 ms" in words(at)
