"""One setting has one number: the command, the Schedule page, the comparison and what is shipped give the same."""

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, repeat
from unittest.mock import Mock

import pytest
from streamlit.runtime.scriptrunner import StopException

from tests.conftest import long_after
from tests.patience import wait_until
from tests.topox_core.small_graphs import cluster, graph, transfer
from tools.make_answers import first_visit
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning import shipped
from topox_core.fabrics.planning.passed_plans import PassedPlan, PlanChoice
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.planning.shipped import answer_record, file_of, shipped_plan
from topox_core.fabrics.run import JobRequest
from topox_core.io.exports import cross_connects_record, tasks_csv
from topox_core.io.foreign.perfetto import perfetto_trace
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.runs.run import never
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.results.story import finding
from topox_core.schedule.settings import FREE, Settings
from topox_core.tdm.model.jobs import Reading
from topox_core.tdm.model.jobs_file import load_job_sample
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_ui.answers import contest, solving
from topox_ui.answers.contest import contest_of
from topox_ui.answers.solving import (
    FirstAnswers,
    drawn,
    first_answer,
    known_first_answer,
    prefetch,
    shipped_answer,
    token,
)
from topox_ui.jobs.solving import Case as JobsCase, at_once

SMALL = ("blackboard", "patience", "race")  # in the quick run with every delay


def files_of(name: str) -> tuple[str, str]:
    sample = SAMPLES[name]
    return str(SAMPLE_FOLDER / sample.graph_file), str(SAMPLE_FOLDER / sample.cluster_file)


@pytest.mark.parametrize(
    ("name", "delay_ms"),
    [
        pytest.param(name, delay_ms, marks=[] if name in SMALL else pytest.mark.long)
        for name in (*SMALL, *sorted(set(SAMPLES) - set(SMALL)))
        for delay_ms in (0.0, 0.01, 1.0)
    ],
)
def test_command_page_and_comparison_give_one_iteration_time(ask, name, delay_ms):
    delay = ["--reconfiguration-ms", str(delay_ms)]
    command = ask("schedule", *files_of(name), "--engine", "list", *delay)
    compared = ask("compare", *files_of(name), "--fabrics", "scheduled", *delay)
    graph, cluster = load_sample(name)
    job = JobRequest(graph, cluster.changed(reconfiguration_ms=delay_ms), Settings.of(free=FREE))
    page = first_answer(job, never)
    assert compared["fabrics"]["scheduled"]["iteration_ms"] == command["makespan_ms"]
    if (name, delay_ms) == ("moe", 0.0):  # the page has the plan that the release ships
        assert page.makespan_ms < command["makespan_ms"]
    else:
        assert command["makespan_ms"] == page.makespan_ms
    assert command["bound_ms"] == page.bound_ms


def test_command_and_page_compare_with_the_fat_tree_of_the_same_cost(ask):
    graph, cluster = load_sample("moe")
    compared = ask("compare", *files_of("moe"), "--fabrics", "ideal,fat_tree")["fabrics"]
    options = contest_of(JobRequest(graph, cluster, Settings.of(free=FREE))).options
    page = compare(graph, cluster, Settings.of(free=FREE), ["fat_tree"], options)["fat_tree"]
    alone = compare(graph, cluster, Settings.of(free=FREE), ["fat_tree"])["fat_tree"]
    assert compared["fat_tree"]["iteration_ms"] == page.iteration_ms == alone.iteration_ms
    assert compared["fat_tree"]["iteration_ms"] > 1.2 * compared["ideal"]["iteration_ms"]


def test_sessions_whose_files_have_other_names_share_no_result_and_read_no_name():
    graph, cluster = load_sample("race")
    mine, theirs = (
        JobRequest(replace(graph, name=name), replace(cluster, name=name), Settings.of(free=FREE))
        for name in ("my secret model", "their model")
    )
    assert first_answer(mine, never) is first_answer(mine, never)
    shared = first_answer(theirs, never)
    assert shared is not first_answer(mine, never)
    for job in (mine, theirs):
        shown = drawn(token(job, first_answer(job, never)), first_answer(job, never)).execution
        assert shown.cluster.name == job.cluster.name
    for export in (
        json.dumps(to_record(shared)).encode(),
        tasks_csv(shared.execution),
        json.dumps(cross_connects_record(shared.execution)).encode(),
        perfetto_trace(shared.execution, theirs.task_graph.name),
    ):
        assert b"secret" not in export


def test_a_round_that_two_sessions_share_has_the_name_of_the_jobs_that_ask():
    jobs = load_job_sample("overlap")
    mine, theirs = (
        JobsCase(replace(jobs, name=name), Reading()) for name in ("my jobs", "their jobs")
    )
    assert at_once(mine, "non-tdm").jobs.name == "my jobs"
    assert at_once(theirs, "non-tdm").jobs.name == "their jobs"
    assert at_once(theirs, "non-tdm").cycles == at_once(mine, "non-tdm").cycles


def test_what_a_session_that_has_ended_began_is_cut_short_and_shared_with_nobody():
    job = JobRequest(*load_sample("moe"), Settings.of())
    over = Mock(side_effect=chain([False, False], repeat(True)))
    with pytest.raises(StopException):
        first_answer(job, over)
    with pytest.raises(StopException):
        contest._run("a key", job, "scheduled", FabricOptions(), {}, over)
    result = first_answer(job, never)
    assert result.stopped_by != "cancelled" and result.makespan_ms
    assert contest._run("a key", job, "scheduled", FabricOptions(), {}, never).iteration_ms


def test_processes_are_started_only_when_two_ask_at_once(monkeypatch) -> None:
    answers = FirstAnswers(0)
    answers._workers = processes = Mock(ready=False)
    monkeypatch.setattr(solving, "keep_to_one_core", lambda: None)
    job = JobRequest(*load_sample("fsdp"), Settings.of())
    inside, go_on = threading.Event(), threading.Event()

    def waits(*_given: object) -> str:
        inside.set()
        go_on.wait(10)
        return "an answer"

    monkeypatch.setattr(solving, "_schedule_here", waits)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(answers.schedule, job, never)
        inside.wait(10)
        assert not processes.start.called
        two = pool.submit(answers.schedule, job, never)
        wait_until(lambda: processes.start.called or two.done())
        go_on.set()
        assert one.result(10) == two.result(10) == "an answer"
    assert processes.start.called


def test_planned_circuits_of_compare_stay_beside_those_of_the_algorithm_chosen():
    """On more servers than a layout is searched for, circuits that stay are TopologyFinder's alone."""
    jobs = graph(*(transfer(f"t{i}", i, (i + 3) % 16, 5.0 + i % 3) for i in range(16)))
    of = cluster(1_100, ports_per_server=2, switches=2, reconfiguration_ms=50.0)
    job, shown, compared = JobRequest(jobs, of, Settings.of(switching="fixed")), [], []
    for variant in ("published", "released"):
        options = FabricOptions(topology_variant=variant)
        key = contest._key(job, "scheduled", options, {})
        shown.append(contest._run(key, job, "scheduled", options, {}, never).iteration_ms)
        runs = compare(jobs, of, job.by_rules.settings, ("scheduled",), options)
        compared.append(runs["scheduled"].iteration_ms)
    assert shown == compared
    assert shown[0] != shown[1]


@pytest.mark.long
def test_what_was_scheduled_ahead_is_the_answer_when_somebody_asks(monkeypatch) -> None:
    job = JobRequest(*load_sample("race"), Settings.of())
    assert known_first_answer(job) is None
    ahead = prefetch(job).result(120)
    monkeypatch.setattr(solving, "_schedule_here", lambda *_given: 1 / 0)
    assert first_answer(job, never) is ahead is known_first_answer(job)


def untimed(record):
    """Return an answer as a file holds it, without how long it took."""
    if record is None:
        return None
    kept = json.loads(json.dumps(record)) | {"alternative": untimed(record["alternative"])}
    kept["trace"] = [point[1:] for point in kept["trace"]]
    for key in ("wall_s", "working_s"):
        del kept["result"][key]
    return kept


@pytest.mark.parametrize("name", long_after(3, list(SAMPLES)))
def test_a_shipped_answer_is_the_one_that_is_computed_else_run_tools_make_answers(
    name, monkeypatch
):
    job = first_visit(name)
    settings = job.by_rules.settings
    plan = shipped_plan(job.by_rules)
    monkeypatch.setattr("topox_core.fabrics.planning.scheduled.shipped_plan", lambda _job: None)
    made = schedule(job.task_graph, job.cluster, settings)
    if plan is not None:
        again = PassedPlan.of(schedule(job.task_graph, plan.cluster, settings))
        assert again is not None and again.lowering == plan.lowering
        assert again.end_ms == pytest.approx(plan.end_ms)
        listed = made
        made = PlanChoice(job.by_rules, listed).among([again])
        assert made.makespan_ms < listed.makespan_ms
    found = shipped_answer(job)
    assert found is not None, "none is shipped"
    assert untimed(answer_record(found)) == untimed(answer_record(made))
    assert finding(found) == finding(made)


def test_another_choice_another_graph_and_a_broken_schedule_have_no_shipped_answer(
    monkeypatch, tmp_path
):
    job = first_visit("blackboard")
    assert shipped_answer(job) is not None
    assert shipped_answer(job.at_delay(3.0)) is None
    on_trees = replace(job.settings.lowering, algorithm=(("all_reduce", "tree"),))
    by_hand = replace(first_visit("llama3-8b"), settings=replace(job.settings, lowering=on_trees))
    assert shipped_answer(by_hand) is None, "its all-reduces run on rings"
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    assert shipped_answer(job) is None
    record = answer_record(schedule(job.task_graph, job.cluster, job.by_rules.settings))
    for task in record["result"]["tasks"]:
        task["start_ms"], task["end_ms"] = 0.0, task["end_ms"] - task["start_ms"]
    file_of(job.task_graph).write_bytes(gzip.compress(json.dumps(record).encode()))
    assert shipped_answer(job) is None, "its tasks do not wait for one another"
