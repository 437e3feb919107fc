"""Photonic rails: the finding, what-ifs, sources and sections, one-line refusals, the iteration for the other pages."""

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import (
    address,
    bring,
    buttons,
    chart,
    charts,
    metric,
    press,
    the_error,
    turn_to,
    unbroken,
    words,
)
from topox_core.rails.delay import BOTH, Question, answer
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.text.numbers import percent
from topox_ui.rails.state import RailsState

RAILS = "Rails"
JOB = PRESETS["llama3-8b-perlmutter"]


@pytest.fixture
def page(visit):
    """Open the page with choices of a link."""

    def opened(sample: str = "", **choices: str):
        query = {f"rails.{key}": value for key, value in choices.items()}
        return visit(RAILS, **query, **({"sample": sample} if sample else {}))

    return opened


def overheads(dark_ms: float) -> tuple[str, str]:
    rail = Rail(nic_gbps=JOB.machine.nic_gbps)
    both, base = (answer(Question(BOTH, JOB, rail, dark)) for dark in (dark_ms, 0.0))
    return tuple(percent(value / base[0] - 1).replace("\u00a0", " ") for value in both)


def chosen(at, **choices):
    """Make choices on the open page."""
    at.session_state["page_states"]["RailsState"] = RailsState(**choices)
    return unbroken(at.run())


def put(boxes, label: str, value):
    """Give the box with a label a value."""
    return unbroken(next(box for box in boxes if box.label == label).set_value(value).run())


def test_the_page_opens_with_the_paper_s_job_and_the_core_s_numbers(page):
    at = page()
    on_demand, provisioned = overheads(25.0)
    finding = f"A 25 ms switch on the rail ✓ can serve this job: {provisioned} slower than the same rings with a switch"
    assert finding in words(at) and "cannot be built" not in words(at)
    assert "The slowest switch within it takes 122 ms, 85.0 ms if circuits are requested" in words(
        at
    )
    row = f"Piezo</td><td>25 ms</td><td>{provisioned}</td><td>{on_demand}</td>".replace(
        " %", "\u00a0%"
    )
    assert any(row in one.proto.body for one in at.get("html")), "the table has both controls"
    assert "A rail is the network that joins" in words(at)
    put(at.selectbox, "Rank", 1)
    assert address(at)["rails.lane"] == "1" and metric(at, "Windows per iteration") == "5"


def test_the_slowest_switch_of_a_thousand_tasks_keeps_the_limit_where_the_curve_jumps(page):
    # As ``rails delay --execution`` says; at 0.03 ms it is 8 % slower, at 0.0425 ms 6 %, at 0.1 ms 12 %.
    at = page(source="scenario", sample="moe")
    assert "The slowest switch within it takes 0.0277 ms." in words(at)


def test_a_switch_brings_its_delay_and_a_delay_of_one_s_own_lets_go_of_it(page):
    at = page()
    put(at.selectbox, "Switch (ports)", "lc")
    _, provisioned = overheads(100.0)
    assert f"A 100 ms switch on the rail ✓ can serve this job: {provisioned} slower" in words(at)
    assert address(at)["rails.switch"] == "lc"
    put(at.select_slider, "Reconfiguration delay", 10.0)
    assert address(at) == {"rails.delay_ms": "10"}
    put(at.select_slider, "Reconfiguration delay", 0.0)
    assert "The slowest switch within the 5 % limit takes 122 ms" in words(at)


def test_the_delay_begins_as_chosen_for_the_loaded_job_and_a_view_is_no_what_if(page, visit):
    at = visit(RAILS, sample="moe", reconfiguration_ms="15", **{"rails.see": "bytes"})
    delay = next(one for one in at.select_slider if one.label == "Reconfiguration delay")
    assert delay.value == 15.0 and "rails_reset" not in buttons(at)
    at = put(at.select_slider, "Reconfiguration delay", 100.0)
    assert address(at)["rails.delay_ms"] == "100"
    at = press(at, "rails_reset")
    assert "rails.delay_ms" not in address(at) and address(at)["rails.see"] == "bytes"
    # The paper's job is not the loaded one.
    assert "A 25 ms switch" in words(visit(RAILS, reconfiguration_ms="15", sample="race"))


def test_a_link_restores_every_choice_for_all_pages_and_names_what_it_cannot_read(page):
    link = {"delay_ms": "50", "link_up_ms": "100", "control": "on_demand", "limit": "1"}
    at = page(**link, see="control", colour="red")
    assert "colour=red" in at.warning[0].value
    turn_to(at, "Home")
    turn_to(at, RAILS)
    assert "A 50 ms switch with a link start-up of 100 ms" in words(at)
    assert address(at) == {f"rails.{key}": value for key, value in link.items()} | {
        "rails.see": "control"
    }


def test_rings_that_cost_more_than_an_electrical_switch_are_said_beside_the_limit(page):
    at = page(source="job", sample="moe")
    # At 90 of 100 Gbit/s, as Schedule counts the same cards.
    rings = "On rings an iteration takes 187 ms, however fast the optical switch: 40.2 % more than on an electrical switch (133 ms)."
    schedule = "On Schedule it takes 106 ms: there GPUs compute while tokens travel, and circuits join any two servers"
    serves = "During an iteration no circuit changes: a faster switch saves nothing."
    assert f"{rings} {serves} {schedule}; here GPUs wait" in words(at)
    assert "at 90 of its 100 Gbit/s as on Schedule" in words(at)
    assert "On rings an iteration takes" not in words(page())
    changing = words(page(source="mixtral-8x7b"))
    assert "880 ms with a switch that takes no time: 18.1 % more than on an electrical" in changing


@pytest.mark.long
def test_degrees_move_the_gpus_with_them_and_gpus_of_one_s_own_must_be_their_product(page):
    assert "32 GPUs: TP 4, PP 2, FSDP 4" in words(page(data="4"))
    at = chosen(page(), data=4, gpus=16)
    assert "= 32 (got 16)" in the_error(at)
    press(at, "reset_here")
    assert not at.error and "16 GPUs" in words(at)


def test_an_uploaded_list_is_read_and_asked_how_long_its_iteration_lasts(page):
    at = page(source="upload")
    box = at.file_uploader[0].key
    bring(at, box, "mine.csv", b"length_ms\nfast\n")
    assert "mine.csv, row 2, field length_ms" in the_error(at)
    bring(at, box, "mine.csv", b"length_ms\n10\n30\n60\n")
    assert not at.error and metric(at, "Windows long enough") == "66.7 %"
    assert metric(at, "Added time, provisioned") == "15 ms"
    assert "taken to end the iteration" in words(at) and "15 % slower" in words(at)
    put(at.number_input, "Iteration (ms)", 1500.0)
    assert "1 % slower" in words(at) and "iteration 1.5 s" in words(at) and address(at) == {}
    put(at.number_input, "Iteration (ms)", 50.0)
    assert "at least 100, where the last window ends (got 50)" in the_error(at)


@pytest.mark.long
def test_a_loaded_graph_is_looked_at_as_a_fabric_ran_it_and_without_one_the_page_says_where_it_is(
    page,
):
    assert "No task graph is loaded" in words(page(source="scenario"))
    at = page(source="scenario", sample="race", delay_ms="10")
    assert "no window between kinds of traffic, but circuits change within one" in words(at)
    at = page(source="scenario", sample="blackboard", delay_ms="1")
    assert "as run on: planned circuits" in words(at)
    put(at.selectbox, "As run on", "ideal")
    assert "as run on: ideal" in words(at)


def test_the_loaded_job_is_shown_at_once_and_one_that_fits_no_rail_with_the_reason(page):
    at = page(sample="moe")
    assert "a faster switch saves nothing" in words(at)
    assert "runs on the same rings: no circuit has to change" in words(at)
    # No window is held against the delay, in numbers, figures or tables.
    assert metric(at, "Windows long enough") == "none needed"
    assert "Added time, provisioned" not in {one.label for one in at.metric}
    assert "last 25 ms" not in str([one.delta for one in at.metric])
    (fold,) = [one for one in at.expander if one.label == "Windows (none has to be long)"]
    assert not fold.proto.expanded and "Windows by the traffic" not in words(at)
    assert address(at) == {"sample": "moe"} and "is not used here" not in words(at)
    # Over the delay its chart would be flat: the page shows what the wirings cost.
    assert "An iteration by the wiring" in words(at) and "Overhead of a slower" not in words(at)
    rows = list(chart(at, "rivals")["layout"]["yaxis"]["ticktext"])
    assert [row.replace("\u00a0", " ") for row in rows] == [
        "Electrical switch<br><b>133 ms</b>",
        "Rings, any switch<br><b>187 ms</b>, +40.2 %",
    ]
    # Computing between two exchanges of one kind is not painted as traffic.
    assert "data flow for" in words(at)
    assert len(chart(at, "strip")["data"][1]["x"]) > 10
    assert "Rings cost time, however fast the switch (C1)" in words(at)
    assert "✓ Enough ports for all circuits at once (C2)" in words(at)
    assert "race, is not used here: it is a task graph" in words(page(sample="race"))
    assert "How many windows?" not in words(page(sample="llama3-8b")), "counted are those of FSDP"
    paper = page(sample="moe", source="llama3-8b-perlmutter")
    assert "How many windows?" in words(paper)
    assert "moe, is not used here" in words(paper)


def test_degrees_of_one_job_are_not_those_of_the_next_one(page):
    at = put(page().number_input, "DP", 4)
    assert address(at) == {"rails.source": "llama3-8b-perlmutter", "rails.data": "4"}


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("control", "Circuits of a group change 12 times per iteration"),
        (
            "rivals",
            "Here: FSDP and PP on the rail: 4 ports needed, 2 in the NIC, so circuits change",
        ),
        ("bytes", "3,829 MiB reduce-scatter"),
        ("advice", "Table 2 of the paper"),
        ("experts", "it shares their ring"),
    ],
)
def test_every_section_opens(page, section, says):
    at = page(see=section)
    assert says in words(at)


@pytest.mark.long
def test_a_large_job_is_simulated_beside_the_page_and_what_was_stopped_goes_on_at_a_click(page):
    at = page(source="llama3.1-405b-16384")
    assert "is simulated beside this page" in words(at)
    wait_until(lambda: "cancel_rails_curve" in buttons(at), at.run)
    at = press(at, "cancel_rails_curve")
    wait_until(lambda: "rails_curve" in buttons(at), at.run)
    assert "Finished simulations are kept" in at.warning[0].value
    at = press(at, "rails_curve")
    wait_until(lambda: not {"cancel_rails_curve", "rails_curve"} & buttons(at), at.run)
    assert not at.warning and "The slowest switch within" in words(at)


@pytest.mark.long
def test_the_points_of_expert_parallelism_are_simulated_beside_the_page(page):
    at = press(page(see="experts"), "rails_experts")
    wait_until(lambda: not {"cancel_rails_experts", "rails_experts"} & buttons(at), at.run)
    assert "experts" in charts(at) and not at.error


@pytest.mark.long
def test_the_iteration_is_what_the_other_pages_show(page):
    at = press(page(), "use_rail")
    loaded = at.session_state["loaded"]
    assert loaded.cluster.servers == JOB.servers and loaded.cluster.reconfiguration_ms == 25
    turn_to(at, "Schedule")
    assert not at.exception and not at.error
