"""The verdict on a page: one number in one sentence, and a row for each rival under it."""

import re
from dataclasses import replace

import pytest

from tests.topox_ui.conftest import SCHEDULE, metric, words
from tools.make_answers import first_visit
from topox_core.fabrics.crossover.verdict import Bracket, Verdict
from topox_core.fabrics.planning.scheduled import schedule
from topox_ui.answers import verdicts


def test_the_card_leads_with_one_number_and_lists_every_rival(visit, monkeypatch):
    found = Verdict(
        "list",
        (
            Bracket("fixed", 164.6, "search over the task graph", 1.1, 6.2),
            Bracket("fat_tree_same_cost", 366.0, "", 8.0, 16.0),
            Bracket("fat_tree_full", 119.0, "", None, 0.0),
        ),
    )
    monkeypatch.setattr("topox_ui.answers.verdicts.known_verdict", lambda _job: found)
    at = visit(SCHEDULE, sample="moe")
    (card,) = [one.proto.body for one in at.get("html") if 'class="verdict"' in one.proto.body]
    plain = re.sub(r"<[^>]*>", "|", card).replace("\u00a0", " ").replace("&nbsp;", " ")
    said = re.sub(r"\|+", "|", plain)
    lead = said.partition("|Network|")[0].replace("|", "")
    assert (
        lead
        == "Changing circuits pays at least up to a delay of 1.1 ms against the best fixed circuits found, "
        "but not against a full fat-tree whose hosts share links."
    )
    assert "|165 ms|1.1 ms|6.2 ms|unknown in between|" in said
    assert "|366 ms|8 ms|16 ms|unknown in between|" in said
    assert "|119 ms|never|any delay|proved|" in said
    # The job itself first, and last the rival that no plan on circuits can beat.
    assert f"planned circuits|{metric(at, 'Iteration time')}|" in said
    assert "in an order|≤ any plan|never|any delay|proved|" in said
    assert "laid by search over the task graph" in words(at)
    without = replace(found, brackets=found.brackets[:2])
    monkeypatch.setattr("topox_ui.answers.verdicts.known_verdict", lambda _job: without)
    assert "how sure" in card and "how sure" not in words(visit(SCHEDULE, sample="blackboard"))


@pytest.mark.parametrize(
    ("rival", "cannot_pay_from_ms", "says"),
    [
        (1.2, None, "switching pays for <b>your job</b>"),
        (1.0, None, "no plan found gains from switching for <b>your job</b> (a longer look may"),
        (
            1.0,
            3.0,
            "no plan found gains from switching for <b>your job</b> (a gain is ruled out only from 3",
        ),
        (1.0, 0.0, "switching gains <b>your job</b> nothing (proved)"),
        (0.5, None, "switching gains <b>your job</b> nothing (proved)"),
    ],
)
def test_that_switching_gains_nothing_is_said_as_a_fact_only_where_a_bound_excludes_it(
    monkeypatch, rival, cannot_pay_from_ms, says
):
    job = first_visit("race")
    plan = schedule(job.task_graph, job.cluster, job.by_rules.settings)
    fixed = Bracket("fixed", rival * plan.makespan_ms, "", None, cannot_pay_from_ms)
    # That nothing is shorter than a faster network says nothing of this one.
    full = Bracket("fat_tree_full", 0.5 * plan.makespan_ms, "", None, 0.0)
    monkeypatch.setattr(verdicts, "result_shown", lambda _job: plan)
    monkeypatch.setattr(verdicts, "known_verdict", lambda _job: Verdict("list", (fixed, full)))
    assert verdicts.does_it_pay(job).startswith(f"Without a delay {says}")


def test_a_job_that_gains_on_fixed_circuits_but_not_on_a_fat_tree_is_told_both(monkeypatch):
    job = first_visit("race")
    plan = schedule(job.task_graph, job.cluster, job.by_rules.settings)
    times = {"fixed": 1.2, "fat_tree_same_cost": 0.9}
    rivals = tuple(Bracket(name, share * plan.makespan_ms) for name, share in times.items())
    monkeypatch.setattr(verdicts, "result_shown", lambda _job: plan)
    monkeypatch.setattr(verdicts, "known_verdict", lambda _job: Verdict("list", rivals))
    said = verdicts.does_it_pay(job)
    assert "pays for <b>your job</b> against the best fixed circuits found" in said
    assert "but not against a fat-tree of the same cost" in said
