"""A training job that was picked on one page is the job on the others."""

from urllib.parse import parse_qs

import pytest

from tests.topox_ui.conftest import address, metric, words
from topox_core.rails.presets import PRESETS
from topox_core.text.numbers import time
from topox_core.training.iteration import iteration
from topox_core.training.jobs import JOBS

RAILS, STRATEGY, HOME = "pages/7_Rails.py", "pages/5_Strategy.py", "app.py"
JOB = {"workload": "llama3-8b", "set.data": "4"}
TOTAL = time(iteration(JOBS["llama3-8b"].changed(plan__data=4)).total_ms).replace("\u00a0", " ")


@pytest.mark.long
def test_home_leads_to_the_job_on_rails_and_among_the_plans_of_its_model(visit):
    at = visit(**JOB)
    assert TOTAL in words(at)
    ways = {one.label: one.proto for one in at.get("page_link")}
    assert {"Its windows on rails", "Other plans of this model"} <= ways.keys()
    query = parse_qs(ways["Other plans of this model"].query_string)
    at = visit(STRATEGY, **{key: values[0] for key, values in query.items()})
    assert not at.exception and not at.error
    assert f"takes {TOTAL}" in words(at) and "than the fastest" in words(at)
    query = parse_qs(ways["Its windows on rails"].query_string)
    at = visit(RAILS, **{key: values[0] for key, values in query.items()})
    assert not at.exception and not at.error
    assert "128 GPUs: TP 8, PP 4, DP 4" in words(at)


def test_a_plan_of_strategy_is_the_job_of_all_pages(visit):
    at = visit(STRATEGY, **{"strategy.model": "llama3-8b", "strategy.way": "plans"})
    shown = metric(at, "Iteration time")
    at.button(key="use_plan").click().run()
    assert not at.exception and not at.error
    assert address(at)["workload"] == "llama3-8b"
    assert f"takes {shown}" in words(at) and "0 % longer than the fastest" in words(at)
    at.switch_page(HOME).run()
    assert not at.exception and shown in words(at)


@pytest.mark.long
def test_a_preset_of_rails_is_the_job_of_all_pages(visit):
    at = visit(RAILS, **{"rails.source": "mixtral-8x7b"})
    at.button(key="use_job").click().run()
    assert not at.exception and not at.error
    assert address(at)["workload"] == "mixtral-8x7b"
    at.switch_page(HOME).run()
    expected = time(iteration(PRESETS["mixtral-8x7b"].job).total_ms).replace("\u00a0", " ")
    assert expected in words(at)


def test_a_job_that_rails_cannot_hold_is_one_line_there(visit):
    at = visit(RAILS, workload="llama3-8b", **{"set.tensor": "4", "rails.source": "job"})
    assert not at.exception
    assert len(at.error) == 1 and "must be gpus_per_server" in at.error[0].value


def test_a_job_with_a_tied_table_is_carried_by_rails(visit):
    at = visit(RAILS, workload="gpt-small", **{"rails.source": "job"})
    assert not at.exception and not at.error


def test_without_a_training_job_the_rails_show_the_loaded_graph(visit):
    at = visit(RAILS, sample="race", **{"rails.source": "job"})
    assert not at.exception and not at.error
    assert "4 servers, as run on" in words(at)
