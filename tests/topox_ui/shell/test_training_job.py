"""A training job that was picked on one page is the job on the others."""

from urllib.parse import parse_qs

import pytest

from tests.topox_ui.conftest import address, metric, press, the_error, words
from topox_core.rails.presets import PRESETS
from topox_core.text.numbers import time
from topox_core.training.iteration import iteration
from topox_core.training.jobs import JOBS

RAILS, STRATEGY, HOME = "pages/7_Rails.py", "pages/5_Strategy.py", "app.py"
JOB = {"workload": "llama3-8b", "set.data": "4"}
TOTAL = time(iteration(JOBS["llama3-8b"].changed(plan__data=4)).total_ms).replace("\u00a0", " ")


def ways_with_links(at) -> dict[str, dict[str, str]]:
    """Return where the links of a page lead, by their labels."""
    return {
        one.label: {key: values[0] for key, values in parse_qs(one.proto.query_string).items()}
        for one in at.get("page_link")
    }


def test_what_a_link_to_a_page_asks_for_wins_over_what_was_chosen_there_before(visit):
    ways = ways_with_links(visit(**JOB, **{"strategy.model": "bert-16", "cost.pue": "2"}))
    plans = ways["Other plans of this model"]
    assert (plans["strategy.model"], plans["cost.pue"]) == ("llama3-8b", "2")


@pytest.mark.long
def test_home_leads_to_the_job_on_rails_and_among_the_plans_of_its_model(visit):
    at = visit(**JOB)
    assert TOTAL in words(at)
    ways = ways_with_links(at)
    at = visit(STRATEGY, **ways["Other plans of this model"])
    assert not at.error
    assert f"takes {TOTAL}" in words(at) and "than the fastest" in words(at)
    at = visit(RAILS, **ways["Its windows on rails"])
    assert not at.error and "128 GPUs: TP 8, PP 4, DP 4" in words(at)


def test_a_plan_of_strategy_is_the_job_of_all_pages(visit):
    at = visit(STRATEGY, **{"strategy.model": "llama3-8b", "strategy.way": "plans"})
    shown = metric(at, "Iteration time")
    press(at, "use_plan")
    assert not at.error and address(at)["workload"] == "llama3-8b"
    assert f"takes {shown}" in words(at) and "0 % longer than the fastest" in words(at)
    at.switch_page(HOME).run()
    assert not at.exception and shown in words(at)


@pytest.mark.long
def test_a_preset_of_rails_is_the_job_of_all_pages(visit):
    at = press(visit(RAILS, **{"rails.source": "mixtral-8x7b"}), "use_job")
    assert not at.error and address(at)["workload"] == "mixtral-8x7b"
    at.switch_page(HOME).run()
    expected = time(iteration(PRESETS["mixtral-8x7b"].job).total_ms).replace("\u00a0", " ")
    assert expected in words(at)


def test_rails_take_the_loaded_job_or_its_graph_and_say_in_a_line_what_they_cannot_hold(visit):
    job = {"rails.source": "job"}
    refused = visit(RAILS, workload="llama3-8b", **job, **{"set.tensor": "4"})
    assert "must be gpus_per_server" in the_error(refused)
    assert not visit(RAILS, workload="gpt-small", **job).error, "its tables of words are one"
    at = visit(RAILS, sample="race", **job)
    assert not at.error and "4 servers, as run on" in words(at)
