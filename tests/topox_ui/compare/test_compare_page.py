"""Compare: every fabric on one clock, who wins, the map beside the page, and what breaks."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import address, chart, control, words
from topox_core.fabrics.compare import compare, run_freely
from topox_core.fabrics.passed_plans import Passed, PassedPlan
from topox_core.fabrics.registry import FABRICS, SPOKEN, USUAL
from topox_core.fabrics.run import FabricOptions, JobRequest
from topox_core.fabrics.sweep import DELAYS_MS, SPEEDS_GBPS
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import time as words_of
from topox_core.workloads.samples import load_sample

COMPARE = "pages/3_Compare.py"


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.fixture(scope="module")
def moe():
    return compare(
        *load_sample("moe"), Settings.of(engine="list", free=FREE), options=FabricOptions()
    )


def test_bars_and_table_have_every_fabric_in_the_one_order(visit, moe):
    at = visit(COMPARE, sample="moe", fat_tree="full")
    assert not at.exception and not at.error
    labels = [FABRICS[name] for name in USUAL]
    labels[1] = "Fat-tree, full"
    rows = chart(at, "iterations")["layout"]["yaxis"]["ticktext"]
    assert [row.removeprefix("<b>").partition("</b>")[0] for row in rows] == labels
    assert [k for k, row in enumerate(rows) if "fastest that can be built" in row] == [5]
    table = at.dataframe[0].value
    assert list(table["Fabric"]) == labels
    assert [plain(t) for t in table["Iteration time"]] == [
        plain(words_of(run.iteration_ms)) for run in moe.values()
    ]


def test_the_headline_names_the_winner(visit, moe):
    best = min(
        (run for name, run in moe.items() if name != "ideal"), key=lambda run: run.iteration_ms
    )
    assert best.fabric == "scheduled"
    assert f"Planned circuits are fastest: {plain(words_of(best.iteration_ms))}," in words(
        visit(COMPARE, sample="moe")
    )


def test_the_parts_of_a_bar_add_up_to_the_iteration(visit, moe):
    at = visit(COMPARE, sample="moe", fat_tree="full")
    bars = [trace for trace in chart(at, "iterations")["data"] if trace["type"] == "bar"]
    for k, run in enumerate(moe.values()):
        assert sum(float(bar["customdata"][k][2]) for bar in bars) == pytest.approx(
            run.iteration_ms, rel=1e-4
        )


def test_a_fat_tree_of_the_same_cost_is_no_faster_than_a_full_one(visit):
    def fat_tree(**query):
        at = visit(COMPARE, sample="moe", fabrics="fat_tree", **query)
        assert not at.exception and not at.error
        return sum(
            float(t["customdata"][0][2])
            for t in chart(at, "iterations")["data"]
            if t["type"] == "bar"
        )

    assert fat_tree(fat_tree="cost") > fat_tree(fat_tree="full")
    assert fat_tree(fat_tree="cost", cost_ratio="1") == pytest.approx(fat_tree(fat_tree="full"))


def test_the_delay_slider_moves_the_schedule_and_not_the_static_circuits(visit):
    at = visit(COMPARE, sample="moe", fabrics="static,scheduled")
    before = list(at.dataframe[0].value["Iteration time"])
    control(at, "reconfiguration_ms").set_value(5.0).run()
    assert not at.exception
    after = list(at.dataframe[0].value["Iteration time"])
    assert before[0] == after[0] and before[1] != after[1]
    assert address(at)["reconfiguration_ms"] == "5"


def test_a_microsecond_is_a_delay_one_can_choose(visit):
    at = visit(COMPARE, sample="race")
    control(at, "reconfiguration_ms").set_value(0.001).run()
    assert not at.exception and not at.error
    assert "0.001" in address(at)["reconfiguration_ms"]


def test_fabrics_that_are_taken_out_leave_every_figure(visit):
    at = visit(COMPARE, sample="moe")
    control(at, "fabrics").set_value(["static", "scheduled"]).run()
    assert not at.exception
    assert address(at)["fabrics"] == "static,scheduled"
    assert chart(at, "strips")["layout"]["yaxis"]["ticktext"] == [
        "Fixed circuits",
        "Planned circuits",
    ]


def test_a_bad_choice_in_a_link_is_named_and_the_page_goes_on(visit):
    at = visit(COMPARE, sample="moe", fabrics="token_ring")
    assert not at.exception
    assert "fabrics=token_ring" in at.warning[0].value
    assert len(at.dataframe[0].value) == 6


@pytest.mark.parametrize("query", [{"reconfiguration_ms": "1e12"}, {"tick": "0.0371"}])
def test_a_setting_that_cannot_be_is_one_line(visit, query):
    at = visit(COMPARE, sample="moe", **query)
    assert not at.exception
    assert len(at.error) == 1 and "\n" not in at.error[0].value


def test_a_fabric_that_cannot_run_is_a_line_and_the_others_are_compared(visit):
    at = visit(COMPARE, sample="moe", reconfiguration_ms="1000000")
    assert not at.exception
    assert len(at.error) == 1 and at.error[0].value.startswith(
        "Planned circuits cannot run: cluster, field reconfiguration_ms"
    )
    assert len(at.dataframe[0].value) == 5


def test_schedule_shows_the_plan_that_compare_found(visit):
    at = visit(COMPARE, sample="moe")
    found = plain(at.dataframe[0].value["Iteration time"].iloc[-1])
    at.switch_page("pages/1_Schedule.py").run()
    assert plain(at.metric[0].value) == found


def test_one_fabric_can_be_seen_lane_by_lane(visit):
    at = visit(COMPARE, sample="race")
    for name in ("static", "scheduled"):
        control(at, "lanes").set_value(name).run()
        assert not at.exception
        assert any(trace["type"] == "bar" for trace in chart(at, "lanes_gantt")["data"])


@pytest.fixture
def map_beside(monkeypatch):
    """Compute maps by themselves, as a visitor has them, in a thread of this process."""
    monkeypatch.setattr("topox_ui.compare.map.AUTOMATIC", True)
    with ThreadPoolExecutor(1) as one:
        monkeypatch.setattr("topox_ui.compare.map.map_workers", lambda: one)
        yield


def computed(at):
    wait_until(lambda: not any(b.key == "cancel_map" for b in at.button), at.run)
    return at


def test_the_map_is_computed_beside_the_page_without_being_asked_for(visit, map_beside):
    at = computed(visit(COMPARE, sample="race", fabrics="static,provisioned"))
    assert not at.exception and not at.error and not at.warning
    assert not any(b.key == "compute_map" for b in at.button)
    figure = chart(at, "map")
    clicks = next(t for t in figure["data"] if t["type"] == "scatter" and t.get("customdata"))
    assert len(clicks["customdata"]) == len(DELAYS_MS) * len(SPEEDS_GBPS)
    between = [row for row in clicks["customdata"] if "not computed" in row[3]]
    assert 0 < len(between) < len(clicks["customdata"])
    assert len(figure["layout"]["shapes"]) == 1
    assert chart(at, "cut")["layout"]["yaxis"]["type"] == "log"
    # Who has no pointer chooses a point from a list, and the sliders go there as after a click.
    point = control(at, "map_point")
    places = [one for one in point.options if one[0].isdigit()]
    assert len(places) == len(clicks["customdata"])
    point.select(next(one for one in places if one.startswith("800G, 50 ms: "))).run()
    assert not at.exception
    assert (control(at, "port_gbps").value, control(at, "reconfiguration_ms").value) == (
        800.0,
        50.0,
    )


def test_the_page_is_drawn_before_the_map_is_started(visit, map_beside, monkeypatch):
    """What the map starts must not hold up what is above and below it."""
    seen = []

    def started(sweep):
        seen.append([name for name in ("failures", "lanes") if name in drawn])

    drawn = []
    monkeypatch.setattr("topox_ui.compare.map._start", started)
    for name in ("failures", "lanes"):
        module = f"topox_ui.compare.{name}.{name}"
        monkeypatch.setattr(module, lambda *_args, name=name: drawn.append(name))
    visit(COMPARE, sample="race", fabrics="static,provisioned")
    assert [sorted(one) for one in seen] == [["failures", "lanes"]]


def test_a_map_that_is_cancelled_keeps_its_points_and_goes_on_only_when_asked(visit, map_beside):
    at = visit(COMPARE, sample="moe", fabrics="reactive,provisioned")
    at.button(key="cancel_map").click().run()
    assert not at.exception
    assert "kept" in at.warning[0].value
    at.run()
    assert not any(b.key == "cancel_map" for b in at.button)
    at.button(key="compute_map").click().run()
    assert any(b.key == "cancel_map" for b in at.button)
    at.button(key="cancel_map").click().run()


def test_a_map_that_another_session_has_computed_is_there_at_once(visit, map_beside):
    computed(visit(COMPARE, sample="race", fabrics="static,provisioned"))
    at = visit(COMPARE, sample="race", fabrics="static,provisioned")
    assert not any(b.key in ("cancel_map", "compute_map") for b in at.button)
    assert chart(at, "map")


@pytest.mark.long
def test_a_failure_is_repaired_and_told(visit):
    at = visit(COMPARE, sample="moe", fabrics="static,scheduled")
    at.session_state["failures"] = True
    at.run()
    assert not at.exception
    for kind in ("fibre", "port", "switch", "server"):
        control(at, "fails").set_value(kind).run()
        assert not at.exception and not at.error
        bars = [t for t in chart(at, "failure")["data"] if t["type"] == "bar"]
        assert {t["name"].split()[1] for t in bars} == {"undisturbed", "degraded"}


def test_a_failure_that_leaves_nothing_is_told_in_a_line(visit):
    at = visit(COMPARE, sample="race", fabrics="static,scheduled")
    at.session_state["failures"] = True
    at.run()
    control(at, "fails").set_value("switch").run()
    assert not at.exception
    assert "no switch would be left" in words(at)


def test_on_the_map_a_fat_tree_of_the_same_cost_follows_speed_and_ports():
    from topox_core.fabrics.map_cells import run_call
    from topox_core.fabrics.run import FabricOptions
    from topox_core.fabrics.sweep import Cell
    from topox_ui.answers.case import Case
    from topox_ui.answers.contest import Contest
    from topox_ui.answers.known_maps import sweep_of

    graph, cluster = load_sample("race")
    full = cluster.ports_per_server * cluster.port_gbps
    contest = Contest(("fat_tree",), FabricOptions(equivalent_gbps=full / 4), FABRICS, SPOKEN)
    case = Case(graph, cluster, Settings.of(free=FREE))
    for by, value, faster in (
        ("port_gbps", cluster.port_gbps, cluster.port_gbps * 4),
        ("degree", 1.0, 4.0),
    ):
        sweep = sweep_of(case, contest, by)
        cells = [run_call(sweep.job.value(), Cell(v, None)) for v in (value, faster)]
        slow, fast = (cell.outcomes["fat_tree"].iteration_ms for cell in cells)
        alone = compare(
            graph, cluster, Settings.of(engine="list", free=FREE), ("fat_tree",), contest.options
        )["fat_tree"].iteration_ms
        four_times = FabricOptions(equivalent_gbps=full)
        assert slow == pytest.approx(alone)
        assert fast == pytest.approx(
            compare(
                graph, cluster, Settings.of(engine="list", free=FREE), ("fat_tree",), four_times
            )["fat_tree"].iteration_ms
        )


def test_a_plan_of_the_map_that_is_better_is_what_every_page_shows(visit, monkeypatch):
    """The map has a plan for a longer delay: Compare takes it over, and Schedule shows the same."""
    graph, cluster = load_sample("moe")
    settings = Settings.of(engine="list", free=FREE)
    slow = run_freely("scheduled", JobRequest(graph, cluster, settings))
    plan = PassedPlan.of(slow)
    assert plan is not None
    monkeypatch.setattr(
        "topox_ui.answers.running.map_plans",
        lambda case, _contest: (replace(plan, delay_ms=9.0),) if case.cluster == cluster else (),
    )
    shorter_ms = 0.9 * slow.iteration_ms  # as if planning alone had found less
    monkeypatch.setattr(
        "topox_core.fabrics.passed_plans.best_passed",
        lambda job, plans, than_ms: (
            Passed(plan, shortened(slow.execution, 0.9), Bound(1.0, "x")) if plans else None
        ),
    )
    at = visit(COMPARE, sample="moe", fabrics="static,scheduled")
    assert not at.exception
    shown = plain(at.dataframe[0].value["Iteration time"].iloc[-1])
    assert shown == plain(words_of(shorter_ms))
    at.switch_page("pages/1_Schedule.py").run()
    assert plain(at.metric[0].value) == shown


def shortened(execution, share):
    """Return an execution that runs faster by a share: only its length matters here."""
    circuits = execution.circuits
    return replace(
        execution,
        start_ms=execution.start_ms * share,
        end_ms=execution.end_ms * share,
        circuits=replace(
            circuits,
            setup_ms=circuits.setup_ms * share,
            start_ms=circuits.start_ms * share,
            end_ms=circuits.end_ms * share,
        ),
    )
