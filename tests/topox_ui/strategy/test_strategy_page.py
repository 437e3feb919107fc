"""Strategy: a search beside the page, plans of a transformer, files in and out, and the graph for the other pages."""

from dataclasses import replace

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import address, chart, control, metric, words
from topox_core.strategy.evaluator import FastEvaluator
from topox_core.strategy.models import MODELS
from topox_core.strategy.moves import SearchSettings
from topox_core.strategy.network import non_blocking
from topox_core.strategy.plans import best_plans
from topox_core.strategy.search import search
from topox_core.strategy.strategy_file import dump_strategy
from topox_core.training.graph import task_graph
from topox_core.training.machines import MACHINES
from topox_core.training.shapes import SHAPES

STRATEGY = "pages/5_Strategy.py"


@pytest.fixture
def page(visit):
    """Open the page on a model with a small budget."""

    def opened(model: str = "bert-16", servers: int = 4, budget: int = 100):
        at = visit(
            STRATEGY,
            **{
                "strategy.model": model,
                "strategy.servers": str(servers),
                "strategy.budget": str(budget),
            },
        )
        assert not at.exception
        return at

    return opened


def searched(at):
    at.button(key="search").click().run()
    return answered(at)


def answered(at):
    """Run the page again until its search has ended."""
    wait_until(
        lambda: bool(at.error) or any(m.label == "Iteration time" for m in at.metric), at.run
    )
    assert not at.exception
    return at


def table(at, column: str):
    return next(frame.value for frame in at.dataframe if column in frame.value.columns)


@pytest.mark.long
def test_the_page_opens_with_a_search_that_wins_and_shows_the_iteration_before_and_after(visit):
    at = answered(visit(STRATEGY, sample="blackboard"))
    assert "less than plain data parallelism" in words(at)
    assert "62 of 71 operators in 8 parts, not 16" in words(at) and "waits less" in words(at)
    assert "plays no part here" in words(at)
    before, after = (
        note["text"] for note in chart(at, "before_and_after")["layout"]["annotations"]
    )
    assert metric(at, "Data parallelism") in before.replace("\u00a0", " ")
    assert metric(at, "Iteration time") in after.replace("\u00a0", " ")
    assert address(at) == {"sample": "blackboard"}


def test_before_a_search_the_costs_are_there_and_name_their_source(page):
    at = page()
    assert "25 operators be split over 4 servers" in words(at)
    assert "This is a sample model" in words(at)
    assert any("strategy.model=bert-16" in code.value for code in at.code)
    costs = table(at, "cost from")
    assert set(costs["cost from"]) <= {"measured", "roofline", "measured and roofline"}
    assert list(costs.columns)[-3:] == ["in 1", "in 2", "in 4"]


def test_a_search_ends_with_what_the_core_finds(page):
    at = searched(page())
    graph = MODELS["bert-16"].build(4)
    found = search(
        graph,
        4,
        FastEvaluator(graph, non_blocking(4)),
        SearchSettings(100, memory_gb=graph.memory_gb),
    )
    assert metric(at, "Strategies tried") == f"{found.tried:,}"
    assert f"Of {found.tried:,} strategies tried" in words(at)
    assert chart(at, "walk")["layout"]["xaxis"]["range"] == [0, found.tried]
    assert ("none beats" in words(at)) == (found.speed_up <= 1.0005)
    rows = table(at, "first server").set_index("operator")
    assert {p.operator: p.partitions for p in found.strategy.placements} == rows[
        "partitions"
    ].to_dict()
    assert (
        chart(at, "placements")["layout"]["yaxis"]["ticktext"][0]
        == found.strategy.placements[0].operator[:20]
    )


def test_an_answer_is_kept_when_a_choice_is_taken_back(page):
    at = searched(page())
    control(at, "strategy_budget").set_value(300).run()
    assert not any(m.label == "Iteration time" for m in at.metric)
    control(at, "strategy_budget").set_value(100).run()
    assert any(m.label == "Iteration time" for m in at.metric)


def test_choices_survive_a_visit_to_another_page(page):
    at = page()
    at.switch_page("app.py").run()
    at.switch_page(STRATEGY).run()
    assert control(at, "strategy_model").value == "bert-16"
    assert control(at, "strategy_budget").value == 100


def test_a_search_that_is_cancelled_keeps_its_best(page):
    at = page("candle-16", 16, 30_000)
    at.button(key="search").click().run()
    at.button(key="cancel_search").click().run()
    answered(at)
    assert not at.exception
    assert any(m.delta == "stopped by you" for m in at.metric)


def test_a_memory_that_nothing_fits_is_one_line(page):
    at = page()
    control(at, "strategy_memory_gb").set_value(0.001).run()
    at = searched(at)
    assert len(at.error) == 1 and "memory" in at.error[0].value and "\n" not in at.error[0].value


def test_no_memory_at_all_is_one_line(page):
    at = page()
    control(at, "strategy_memory_gb").set_value(0.0).run()
    assert not at.exception
    at = searched(at)
    assert len(at.error) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"not json", "mine.strategy.json"),
        (
            b'{"format": "topox-strategy", "version": 1, "model": "other", "servers": 4, '
            b'"operators": []}',
            "must be bert-16",
        ),
    ],
)
def test_a_bad_strategy_file_is_one_line(page, content, says):
    at = page()
    at.file_uploader[0].upload("mine.strategy.json", content).run()
    assert not at.exception
    assert len(at.error) == 1 and says in at.error[0].value


@pytest.mark.long
def test_a_good_strategy_file_leaves_nothing_to_choose(page):
    at = page()
    graph = MODELS["bert-16"].build(4)
    best = search(graph, 4, FastEvaluator(graph, non_blocking(4)), SearchSettings(0)).strategy
    at.file_uploader[0].upload("mine.strategy.json", dump_strategy(best)).run()
    assert not at.exception and not at.error
    at = searched(at)
    assert any(m.delta == "nothing left to choose" for m in at.metric)
    # On another page the box is empty, as after a reload; the file is kept until it is left out.
    at.switch_page("pages/10_Learn.py").run()
    at.switch_page(STRATEGY).run()
    assert at.session_state["strategy_file"][1] == "mine.strategy.json"
    at.button(key="drop_strategy").click().run()
    assert not at.exception and "strategy_file" not in at.session_state


@pytest.mark.long
def test_the_graph_of_a_strategy_is_what_the_other_pages_show(page):
    at = searched(page())
    at.button(key="use_graph").click().run()
    assert not at.exception
    assert "is loaded" in at.info[0].value
    loaded = at.session_state["loaded"]
    assert loaded.cluster.servers == 4 and loaded.cluster.ports_per_server == 4
    at.switch_page("pages/3_Compare.py").run()
    assert not at.exception and not at.error
    assert len(at.dataframe[0].value) == 6


def test_plans_are_ranked_and_the_best_is_the_headline(page):
    at = page("llama3-8b", 4)
    found = best_plans(SHAPES["llama3-8b"], MACHINES["h100"], 4, 512)
    assert found.best.words in words(at)
    assert metric(at, "Do not fit") == f"{found.too_large:,}"
    assert len(table(at, "TP")) == min(300, found.fitting)


def test_a_memory_limit_that_no_plan_fits_is_one_line(page):
    at = page("llama3-8b", 2)
    control(at, "strategy_gpu_memory_gb").set_value(1.0).run()
    assert not at.exception
    assert len(at.error) == 1 and "none of" in at.error[0].value


def test_zero_memory_of_a_gpu_is_one_line(page):
    at = page("llama3-8b", 2)
    control(at, "strategy_gpu_memory_gb").set_value(0.0).run()
    assert not at.exception
    assert len(at.error) == 1 and "field memory_gb: must be a number from" in at.error[0].value


def test_another_machine_brings_its_own_figures_and_another_ranking(page):
    at = page("llama3-8b", 2)
    control(at, "strategy_gpu_memory_gb").set_value(60.0).run()
    fewer = best_plans(SHAPES["llama3-8b"], replace(MACHINES["h100"], memory_gb=60.0), 2, 512)
    assert metric(at, "Do not fit") == f"{fewer.too_large:,}"
    assert "Its figures are your own" in words(at)
    control(at, "strategy_machine").set_value("h200").run()
    assert not at.exception
    assert control(at, "strategy_gpu_memory_gb").value == 141.0
    found = best_plans(SHAPES["llama3-8b"], MACHINES["h200"], 2, 512)
    assert found.best.words in words(at)
    assert "expect errors up to 25 %" in words(at)
    assert address(at)["strategy.machine"] == "h200"
    assert "strategy.gpu_memory_gb" not in address(at)


def test_an_old_link_with_figures_of_its_gpus_still_holds(visit):
    choices = {
        "model": "llama3-8b",
        "servers": "2",
        "gpus": "4",
        "gpu_memory_gb": "64",
        "gpu_gbps": "200",
    }
    at = visit(STRATEGY, **{f"strategy.{key}": value for key, value in choices.items()})
    machine = replace(MACHINES["h100"], gpus_per_server=4, memory_gb=64.0, nic_gbps=200.0)
    assert best_plans(SHAPES["llama3-8b"], machine, 2, 512).best.words in words(at)


def test_the_columns_of_a_plan_add_up_to_its_iteration(page):
    plans = table(page("llama3-8b", 4), "TP")
    parts = plans.loc[:, "compute":]
    assert parts.sum(axis=1).to_numpy() == pytest.approx(plans["iteration (ms)"].to_numpy())


def test_the_graph_of_a_plan_is_what_the_other_pages_show(page):
    at = page("llama3-8b", 2)
    at.button(key="use_plan").click().run()
    assert not at.exception
    loaded = at.session_state["loaded"]
    assert loaded.cluster.servers == 2 and loaded.cluster.ports_per_server == 2
    best = best_plans(SHAPES["llama3-8b"], MACHINES["h100"], 2, 512).best
    assert loaded.graph.tasks == task_graph(best.job).tasks
    at.switch_page("pages/3_Compare.py").run()
    assert not at.exception and not at.error
