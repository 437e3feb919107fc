"""Schedule: sliders answer, links restore, contradictions are told, a proof replaces the list schedule."""

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import (
    CIRCUITS,
    SCHEDULE,
    address,
    chart,
    choose,
    control,
    metric,
    press,
    the_error,
    turn_to,
    unbroken,
    words,
)
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.run import JobRequest
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample
from topox_ui.answers import solving
from topox_ui.runs.results import shared


def test_the_page_shows_what_the_scheduler_says_and_what_a_slider_does_to_it(visit):
    at = visit(SCHEDULE, sample="blackboard")
    assert metric(at, "Iteration time") == "10 ms" and metric(at, "Gap to bound") == "0 %"
    assert "Proved optimal" in words(at) and "✗" not in words(at)
    assert words(at).count("Along the critical path of this plan") == 1
    pictures = "Pictures for print (PNG, SVG)"
    assert pictures in {one.label for one in at.expander}
    in_columns = {one.label for column in at.columns for one in column.expander}
    assert "Rule by rule" in in_columns and pictures not in in_columns, "as wide as the page"
    before = chart(at, "gantt")
    choose(at, port_gbps=100.0)
    assert metric(at, "Iteration time") != "10 ms" and chart(at, "gantt") != before
    assert address(at)["port_gbps"] == "100"
    choose(at, port_gbps=200.0)
    against = "Changes are against the values of the sample: 10 ms."
    assert against in words(at), "not against the move before"
    unbroken(next(b for b in at.button if b.label == "Reset what-ifs").click().run())
    assert metric(at, "Iteration time") == "10 ms" and address(at) == {"sample": "blackboard"}
    expected = schedule(*load_sample("race"), Settings.of(engine="list", free=FREE)).makespan_ms
    at = visit(SCHEDULE, sample="race")
    assert metric(at, "Iteration time") == f"{expected:.3g} ms" and "Feasible" in words(at)


def test_where_circuits_that_change_are_ruled_out_headline_seal_and_button_agree(visit):
    """moe at 15 ms: fixed circuits take 165 ms, no plan that changes circuits less than 432 ms."""
    at = visit(SCHEDULE, sample="moe", reconfiguration_ms="15")
    said = words(at)
    assert (
        "Changing circuits cannot be faster (proved): the best plan that changes them takes" in said
    )
    assert said.count("at most 47.2 % can be saved, only by other fixed circuits") == 1
    button = at.button(key="prove")
    assert button.disabled and button.label == "No engine can prove more"
    assert "Lower bound, the lower of both" in said


def test_the_table_of_a_search_fits_a_narrow_window_and_a_fold_has_the_rest(visit):
    at = visit("Proof", sample="moe")
    (found,) = [one.value for one in at.dataframe]
    assert list(found.columns) == ["after (s)", "schedule (ms)", "by"]
    assert found["schedule (ms)"].is_monotonic_decreasing and found["by"].str.len().max() <= 24
    assert "Every step, with bounds" in {one.label for one in at.expander}


def test_port_speeds_and_the_delay_of_a_real_switch_are_a_click_each(visit):
    own = load_sample("race")[1].port_gbps
    at = press(visit(SCHEDULE, sample="race"), "schedule_2_times")
    assert address(at)["port_gbps"] == f"{2 * own:g}" == f"{control(at, 'port_gbps').value:g}"
    assert address(press(at, "schedule_1_times")) == {"sample": "race"}
    assert "for free at this setting" in words(at) and "A real switch takes" in words(at)
    press(at, "real_mems")
    assert address(at)["reconfiguration_ms"] == "15" and "for free" not in words(at)
    assert "for free" in words(press(at, "real_none"))


def test_a_link_restores_what_goes_together_and_names_the_rest_in_one_line(visit):
    window = {"port_gbps": "100", "from_ms": "1", "to_ms": "4"}
    at = visit(SCHEDULE, sample="blackboard", **window)
    assert not at.warning and control(at, "port_gbps").value == 100.0
    assert chart(at, "gantt")["layout"]["xaxis"]["range"] == [1.0, 4.0]
    at = visit(SCHEDULE, sample="blackboard", port_gbps="abc", threads="100000")
    [line] = [w.value for w in at.warning]
    assert line.startswith(
        "Ignored in the link: port_gbps=abc (must be a number (got 'abc')), threads=100000 (must be from 1 to"
    )
    at = visit(SCHEDULE, sample="fsdp", ports_per_server="7", rings="2")
    assert not at.error and at.warning[0].value.startswith(
        "Ignored in the link: ports_per_server=7 (must be a multiple of switches"
    )
    assert address(at) == {"sample": "fsdp", "rings": "2"}


def test_a_contradiction_is_one_line_and_reset_mends_it(visit):
    at = visit(SCHEDULE, sample="race", tick="0.0371")
    assert "must divide the slot" in the_error(at)
    press(at, "reset_here")
    assert not at.error and metric(at, "Iteration time")


def test_the_printed_model_and_back_and_every_engine(visit):
    at = choose(visit(SCHEDULE, sample="patience", reconfiguration_ms="1"), model="paper")
    assert not at.error and address(at)["model"] == "paper"
    assert control(at, "reconfiguration_ms").disabled
    for toggle in ("exclusive_devices", "share_circuits", "any_port"):
        assert not choose(at, **{toggle: not control(at, toggle).value}).error
    choose(at, circuits="continuous")
    assert not at.error and control(at, "any_port").disabled
    choose(at, model="physical", engine="cpsat", threads=1)
    link = {"sample": "patience", "reconfiguration_ms": "1"}
    assert address(at) == link | {"engine": "cpsat", "threads": "1"}
    assert address(choose(at, threads=2, engine="auto")) == link


def test_what_limits_a_job_is_said_without_a_click_and_differs_by_job(visit):
    for sample, verdict in (
        (
            "race",
            "Computing limits this job: computing alone takes at least 45.3 ms of the 70.4 ms",
        ),
        (
            "fsdp",
            "Ports limit this job: the out-ports of server 0 are busy for 177 ms of the 182 ms",
        ),
        (
            "moe",
            "Computing and ports limit this job alike: the out-ports of server 6 are busy for 74.9 ms",
        ),
    ):
        said = words(visit(SCHEDULE, sample=sample))
        assert verdict in said and "What sets the lower bound" not in said


def test_the_menu_says_which_what_ifs_count_and_what_the_files_have(visit):
    at = visit(SCHEDULE, sample="race", reconfiguration_ms="5", port_gbps="100")
    told = "what if: port speed 100G instead of 40G and reconfiguration delay 5 ms instead of 0 ms"
    assert told in words(at)
    assert "0 ms and 1 other setting" in words(choose(at, clock="slots"))
    (reset,) = [one for one in at.button if one.label == "Reset what-ifs"]
    assert "what if:" not in words(unbroken(reset.click().run()))


def under(at, label: str) -> str:
    """Return the line under a key figure."""
    return next(one.delta for one in at.metric if one.label == label)


def test_a_first_plan_is_shown_until_all_choices_are_tried_and_the_page_says_what_they_gained(
    visit,
):
    """moe at 400 Gbit/s and 0.5 ms: what all rings and algorithms give is 1 % shorter."""
    at = visit(SCHEDULE, sample="moe", port_gbps="400", reconfiguration_ms="0.5")
    assert "A first plan. Other rings and algorithms" in words(at)
    first_ms = metric(at, "Iteration time")
    assert under(at, "Iteration time").startswith("first plan, ")
    graph, cluster = load_sample("moe")
    cluster = cluster.changed(port_gbps=400.0, reconfiguration_ms=0.5)
    job = JobRequest(graph, cluster, Settings.of(engine="list", free=FREE))
    whole = schedule(graph, cluster, job.settings)
    shared(solving.LISTED).keep(job.key, whole)  # as the process beside the page does
    assert "A first plan" not in words(unbroken(at.run()))
    assert f"shorter than the first plan, {first_ms}" in words(at)
    assert metric(at, "Iteration time") == f"{whole.makespan_ms:.3g} ms" != first_ms
    # Plans for other delays may still be shorter here.
    assert under(at, "Iteration time").startswith("so far, ")
    assert "Plans for other delays are being made" in words(at)


@pytest.mark.long
def test_a_proof_replaces_the_list_schedule_on_every_page(visit):
    at = visit(SCHEDULE, sample="patience", clock="slots")
    assert "Feasible" in words(at)
    press(at, "prove")
    wait_until(lambda: "Proved optimal" in words(at), at.run)
    assert metric(at, "Iteration time") == "14 ms"
    turn_to(at, CIRCUITS)
    turn_to(at, SCHEDULE)
    assert "Proved optimal" in words(at)


@pytest.mark.long
def test_a_graph_too_large_for_an_engine_is_refused_in_one_line_and_stays_scheduled(visit):
    at = visit(SCHEDULE, sample="dlrm-16", engine="printed")
    press(at, "prove")
    wait_until(lambda: "No exact solve: the printed model would have" in words(at), at.run)
    assert metric(at, "Iteration time")
