"""A training job that was picked on one page is the job on the others."""

from urllib.parse import parse_qs

import pytest

from tests.topox_ui.conftest import address, press, spoken, the_error, turn_to, words
from topox_core.rails.presets import PRESETS
from topox_core.training.iteration import iteration

RAILS, STRATEGY, HOME = "Rails", "Plans", "Home"


def test_what_a_link_to_a_page_asks_for_wins_over_what_was_chosen_there_before(visit):
    at = visit(workload="llama3-8b", **{"strategy.model": "bert-16", "strategy.seed": "7"})
    way = next(one for one in at.get("page_link") if one.label == "Other plans of this job")
    query = parse_qs(way.proto.query_string)
    assert (query["strategy.model"], query["strategy.seed"]) == (["loaded"], ["7"])


@pytest.mark.long
def test_a_preset_of_rails_is_the_job_of_all_pages(visit):
    at = press(visit(RAILS, **{"rails.source": "mixtral-8x7b"}), "use_job")
    assert not at.error and address(at)["workload"] == "mixtral-8x7b"
    turn_to(at, HOME)
    assert spoken(iteration(PRESETS["mixtral-8x7b"]).total_ms) in words(at)


def test_rails_take_the_loaded_job_or_its_graph_and_say_in_a_line_what_they_cannot_hold(visit):
    job = {"rails.source": "job"}
    refused = visit(RAILS, workload="llama3-8b", **job, **{"set.tensor": "4"})
    assert "must be gpus_per_server" in the_error(refused)
    assert not visit(RAILS, workload="gpt-small", **job).error, "its tables of words are one"
    at = visit(RAILS, sample="race", **job)
    assert not at.error and "4 servers, as run on" in words(at)
