"""Photonic rails: the finding, what-ifs, sources and sections, one-line refusals, the iteration for the other pages."""

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import address, chart, metric, ways_on, words
from topox_core.rails.iteration import Rail
from topox_core.rails.measured import WINDOWS
from topox_core.rails.presets import PRESETS
from topox_core.rails.questions import BOTH, Question, answer
from topox_core.text.numbers import percent
from topox_ui.rails.state import RailsState

RAILS = "pages/7_Rails.py"
JOB = PRESETS["llama3-8b-perlmutter"]


@pytest.fixture
def page(visit):
    """Open the page with choices of a link; nothing may break."""

    def opened(**choices):
        at = visit(
            RAILS,
            **{
                key if key in ("sample",) else f"rails.{key}": value
                for key, value in choices.items()
            },
        )
        assert not at.exception
        return at

    return opened


def overheads(dark_ms: float) -> tuple[str, str]:
    rail = Rail(nic_gbps=JOB.nic_gbps)
    both, base = (answer(Question(BOTH, JOB, rail, dark)) for dark in (dark_ms, 0.0))
    return tuple(percent(value / base[0] - 1).replace("\u00a0", " ") for value in both)


def chosen(at, **choices):
    """Make choices on the open page."""
    at.session_state["page_states"]["RailsState"] = RailsState(**choices)
    return at.run()


def menu(at, label: str):
    return next(box for box in at.selectbox if box.label == label)


def test_the_page_opens_with_the_paper_s_job_and_the_core_s_numbers(page, downloads):
    at = page()
    on_demand, provisioned = overheads(25.0)
    assert f"makes this job {provisioned} slower ({on_demand} if circuits are requested" in words(
        at
    )
    assert metric(at, "Windows per iteration") == "7"
    assert {"strip", "cdf", "delay", "breakdown", "counts"} <= {
        e.proto.id.rpartition("-")[2] for e in at.get("plotly_chart")
    }
    page_of_figures = downloads["Figures (HTML, with PNG and SVG)"]()
    for name in (b"Pattern", b"Delay study", b"Windows"):
        assert b"<h2>%s</h2>" % name in page_of_figures


@pytest.mark.long
def test_the_match_with_the_paper_stands_beside_it_and_is_called_selected(page):
    at = page()
    on_demand, provisioned = overheads(100.0)
    assert f"100 ms, on demand{on_demand}6.5 %" in words(at)
    assert f"100 ms, provisioned{provisioned}3.5 %" in words(at)
    assert "A selected match" in words(at) and "1.7 ms that the host takes" in words(at)
    assert "selected match" not in words(page(data="4"))


def test_a_rail_wider_than_any_fast_switch_is_called_unbuildable(page):
    assert "cannot be built" not in words(page())
    assert (
        "600 servers takes 1,200 ports; no switch that turns within a second has more than 576 (piezo)"
        in words(page(data="300"))
    )


def test_a_slower_switch_is_one_move_and_goes_into_the_address(page):
    at = page()
    slider = next(s for s in at.select_slider if s.label == "Reconfiguration delay")
    slider.set_value(100.0).run()
    assert not at.exception
    on_demand, provisioned = overheads(100.0)
    assert f"{provisioned} slower ({on_demand} if circuits" in words(at)
    assert address(at) == {"rails.delay_ms": "100"}
    assert "33.3 %" in metric(at, "Windows long enough")


def test_a_link_restores_every_choice_and_names_what_it_cannot_read(page):
    at = page(
        delay_ms="50", link_up_ms="100", control="on_demand", limit="1", see="control", colour="red"
    )
    assert "colour=red" in at.warning[0].value
    assert "A 50 ms switch with a link start-up of 100 ms" in words(at)
    assert "more than the 1 % limit" in words(at)
    assert "dark 150 ms a change" in words(at)
    assert address(at) == {
        "rails.delay_ms": "50",
        "rails.link_up_ms": "100",
        "rails.control": "on_demand",
        "rails.limit": "1",
        "rails.see": "control",
    }


def test_choices_survive_a_visit_to_another_page(page):
    at = page(delay_ms="50", see="bytes")
    at.switch_page("app.py").run()
    at.switch_page(RAILS).run()
    assert "A 50 ms switch" in words(at)


def test_a_switch_brings_its_delay_and_a_delay_of_one_s_own_lets_go_of_it(page):
    at = page()
    menu(at, "Switch (ports)").set_value("lc").run()
    assert "A 100 ms switch" in words(at)
    assert address(at)["rails.switch"] == "lc"
    next(s for s in at.select_slider if s.label == "Reconfiguration delay").set_value(10.0).run()
    assert "rails.switch" not in address(at)


@pytest.mark.long
def test_degrees_move_the_gpus_with_them_and_gpus_of_one_s_own_must_be_their_product(page):
    at = page(data="4")
    assert "32 GPUs: TP 4, PP 2, FSDP 4" in words(at)
    at = chosen(page(), data=4, gpus=16)
    assert len(at.error) == 1 and "= 32 (got 16)" in at.error[0].value
    next(b for b in at.button if b.key == "reset_here").click().run()
    assert not at.exception and not at.error
    assert "16 GPUs" in words(at)


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        (
            {"source": "llama3.1-405b-8192", "switch": "sip"},
            "at most 16 servers a switch, or split the rail",
        ),
        ({"pipeline": 40}, "at most the number of layers, 32"),
        ({"microbatches": 0}, "microbatches"),
        ({"microbatches": 3, "schedule": "interleaved"}, "multiple of the pipeline's stages"),
    ],
)
@pytest.mark.long
def test_choices_that_do_not_go_together_are_one_line(page, choices, says):
    at = chosen(page(), **choices)
    assert len(at.error) == 1 and says in at.error[0].value and "\n" not in at.error[0].value


def test_a_link_with_choices_that_contradict_each_other_keeps_the_rest_and_names_them(page):
    at = page(delay_ms="50", see="bytes", pipeline="40")
    assert not at.error and "A 50 ms switch" in words(at)
    (warning,) = at.warning
    assert (
        "Ignored in the link: rails.pipeline=40 (the pipeline's stages must be at most"
        in warning.value
    )
    assert address(at) == {"rails.delay_ms": "50", "rails.see": "bytes"}


def test_the_measured_list_stalls_by_the_formula(page):
    at = page(source="measured")
    stall = sum(max(0.0, 25 - one.length_ms) for one in WINDOWS)
    assert metric(at, "Added time, provisioned") == f"{stall:.0f} ms"
    assert metric(at, "Added time, on demand") == "350 ms"
    assert metric(at, "Windows long enough") == "57.1 %"
    assert "drawn evenly" in words(at)


def test_an_uploaded_list_is_read_and_a_bad_one_costs_a_line(page):
    at = page(source="upload")
    assert "Bring a list of windows" in words(at)
    assert "Or look at the windows that the authors measured" in ways_on(at)
    at.file_uploader[0].upload("mine.csv", b"length_ms\nfast\n").run()
    assert not at.exception
    assert "mine.csv, row 2, field length_ms" in at.error[0].value
    at.file_uploader[0].upload("mine.csv", b"length_ms\n10\n30\n60\n").run()
    assert not at.exception and not at.error
    assert metric(at, "Windows long enough") == "66.7 %"
    assert metric(at, "Added time, provisioned") == "15 ms"


def test_a_table_has_no_iteration_so_the_page_asks_how_long_it_lasts(page):
    at = page(source="upload")
    at.file_uploader[0].upload("mine.csv", b"length_ms\n10\n30\n60\n").run()
    assert "taken to end the iteration" in words(at) and "15 % slower" in words(at)
    asked = next(box for box in at.number_input if box.label == "Iteration, ms")
    asked.set_value(1500.0).run()
    assert not at.exception and "1 % slower" in words(at) and "iteration 1.5 s" in words(at)
    assert address(at) == {}
    next(box for box in at.number_input if box.label == "Iteration, ms").set_value(50.0).run()
    assert (
        len(at.error) == 1
        and "at least 100, where the last window ends (got 50)" in at.error[0].value
    )


@pytest.mark.long
def test_without_a_task_graph_the_page_says_where_to_get_one(page):
    at = page(source="scenario")
    assert "No task graph is loaded" in words(at)
    assert "Go to the samples" in ways_on(at)


@pytest.mark.long
def test_one_kind_of_traffic_has_no_window_but_its_circuits_change_all_the_same(page):
    at = page(source="scenario", sample="race", delay_ms="10")
    assert (
        metric(at, "Windows per iteration") == "0" and metric(at, "Added time, on demand") != "0 ms"
    )
    assert "no window between kinds of traffic, but circuits change within one" in words(at)
    assert "nothing to switch" not in words(at)


@pytest.mark.long
def test_a_loaded_sample_is_looked_at_as_a_fabric_ran_it(page):
    at = page(source="scenario", sample="blackboard", delay_ms="1")
    assert "blackboard" in words(at)
    assert "as run on: planned circuits" in words(at)
    menu(at, "As run on").set_value("ideal").run()
    assert not at.exception
    assert "as run on: ideal" in words(at)


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("control", "12 reconfigurations of a group"),
        ("rivals", "C3 limits this job"),
        ("bytes", "3,829 MiB reduce-scatter"),
        ("advice", "Table 2 of the paper"),
        ("experts", "forwarded from neighbour to neighbour|too short for a slow switch"),
    ],
)
def test_every_section_opens(page, section, says):
    at = page(see=section)
    assert any(one in words(at) for one in says.split("|"))


def test_bytes_are_the_published_ones(page):
    at = page(see="bytes")
    table = next(
        frame.value for frame in at.dataframe if "as the paper counts" in frame.value.columns
    )
    assert {"957 MiB", "3,829 MiB", "64 MiB"} <= set(table["as the paper counts"])


@pytest.mark.long
def test_the_message_log_tells_who_asked_for_what(page):
    at = page(see="control")
    log = next(frame.value for frame in at.dataframe if "message" in frame.value.columns)
    assert {"COMM", "CONFIG_REQ", "CONFIG_ACK"} <= set(log["message"])
    assert list(log["at (ms)"]) == sorted(log["at (ms)"])


def test_the_strip_shows_the_rank_that_was_picked(page):
    at = page()
    first = chart(at, "strip")["data"][1]["name"]
    menu(at, "Rank").set_value(1).run()
    assert address(at)["rails.lane"] == "1"
    assert metric(at, "Windows per iteration") == "5"
    assert chart(at, "strip")["data"][1]["name"] != first


@pytest.mark.long
def test_a_large_job_is_simulated_beside_the_page_and_can_be_stopped(page, monkeypatch):
    monkeypatch.setattr("topox_ui.rails.runs.RUN_AT_ONCE", 10)
    at = page(source="llama3-70b")
    assert "is simulated beside this page" in words(at)
    at.button(key="cancel_rails").click().run()
    assert not at.exception
    assert "Stopped" in at.warning[0].value
    at.button(key="rails_simulate").click().run()
    wait_until(lambda: bool(at.metric or at.exception), at.run)
    assert not at.exception
    assert metric(at, "Windows per iteration") == "47"
    at.button(key="cancel_rails_curve").click().run()  # a preset's delays begin by themselves
    assert not at.exception
    # Cancel waits for a tenth of a second; a busy machine may need longer, and a quick one may have
    # been through all delays before the click.
    wait_until(lambda: all(button.key != "cancel_rails_curve" for button in at.button), at.run)
    assert not at.exception


@pytest.mark.long
def test_the_iteration_is_what_the_other_pages_show(page):
    at = page()
    at.button(key="use_rail").click().run()
    assert not at.exception
    loaded = at.session_state["loaded"]
    assert loaded.cluster.servers == JOB.ranks and loaded.cluster.reconfiguration_ms == 25
    at.switch_page("pages/1_Schedule.py").run()
    assert not at.exception and not at.error
