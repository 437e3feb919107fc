"""Home: samples, uploads that cost nothing when they fail, generated workloads."""

import json
import re
from urllib.parse import parse_qs

import pytest

from tests.topox_core.io.test_infragraph import link, two_tiers
from tests.topox_ui.conftest import (
    address,
    bring,
    buttons,
    metric,
    press,
    spoken,
    the_error,
    unbroken,
    ways_on,
    words,
)
from tools.make_answers import first_visit
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json
from topox_core.training.iteration import iteration
from topox_core.training.job import JOBS, dump_job
from topox_core.training.machine import MACHINES
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_ui.answers.solving import with_plans
from topox_ui.home.view import FINDINGS


def loaded(at):
    return at.session_state["loaded"]


def bring_graph(at, graph, name: str = "mine.json"):
    return bring(at, "up_graph", name, dump_graph_json(graph))


def bring_cluster(at, cluster):
    return bring(at, "up_cluster", "mine.cluster.json", dump_cluster(cluster))


def test_a_card_leads_to_its_schedule_and_takes_no_what_if_of_another_job_along(visit):
    chosen = {"cost.prices": "opus-v1", "cost.pue": "2", "degree": "1"}
    at = visit(sample="fsdp", port_gbps="400", **chosen)
    title = SAMPLES["blackboard"].title
    (card,) = [one.proto for one in at.get("page_link") if one.proto.label == title]
    assert parse_qs(card.query_string) == {"cost.prices": ["opus-v1"], "sample": ["blackboard"]}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if SAMPLES[name].tasks > 1_000 else ())
        for name in SAMPLES
    ],
)
def test_the_finding_on_a_card_is_what_the_schedule_page_opens_with(name):
    """Cards say in bold the iteration time of the first schedule, or that it is proved best."""
    job = first_visit(name)
    result = with_plans(job, schedule(job.task_graph, job.cluster, job.by_rules.settings))
    bold = re.findall("<b>(.*?)</b>", FINDINGS[name])
    assert bold in ([], [spoken(result.execution.makespan_ms)])
    fixed = re.findall("fixed ones that were found (.+?)[.]$", FINDINGS[name])
    ways = [one.best_ms for one in result.classes if not one.changes_circuits]
    assert fixed in ([], [spoken(ways[0])])
    assert ("proved best" in FINDINGS[name]) == (
        result.status == "optimal" and name != "blackboard"
    )


@pytest.mark.parametrize("name", ["llama3-8b", "moe"])
def test_home_says_why_a_schedule_takes_another_time_than_the_closed_form(visit, name):
    said = words(visit(sample=name))
    assert ("a schedule computes another microbatch meanwhile" in said) == (name == "moe")
    assert ("there transfers wait for ports" in said) == (name != "moe")
    assert "a schedule takes longer where other tasks hold a device or a port" in said


def test_a_graph_that_was_loaded_by_mistake_is_taken_back_with_the_what_ifs_of_before(visit):
    wrong, _ = load_sample("blackboard")
    at = visit(sample="race", port_gbps="400", way="files")
    assert "go_back" not in buttons(at)
    bring_graph(at, wrong)
    assert loaded(at).graph.digest == wrong.digest and not address(at)
    press(at, "go_back")
    assert loaded(at).title == "race" and address(at) == {"sample": "race", "port_gbps": "400"}


def test_a_cluster_that_was_assumed_is_shown_as_such_and_its_values_changed_there(visit):
    def use(label: str, value: float):
        next(one for one in at.number_input if one.label == label).set_value(value)
        return unbroken(next(b for b in at.button if b.label == "Use these values").click().run())

    graph, cluster = load_sample("blackboard")
    at = bring_graph(visit(way="files"), graph)
    assert "Assumed cluster" in words(at) and "cluster assumed" in words(at)
    assert not use("Port speed (Gbit/s)", 40.0).error
    assert loaded(at).cluster.port_gbps == 40.0 and "Assumed cluster" in words(at)
    assert "lacks" in the_error(use("Servers", 1))
    bring_cluster(at, cluster)
    assert loaded(at).cluster.port_gbps == cluster.port_gbps and "ssumed" not in words(at)


def test_an_uploaded_graph_gets_a_cluster_that_fits_and_a_bad_one_is_a_line(visit):
    graph, _ = load_sample("fsdp")
    for name, content in (
        ("mine.csv", dump_graph_csv(graph)),
        ("mine.taskgraph.json", dump_graph_json(graph)),
    ):
        at = bring(visit(way="files"), "up_graph", name, content)
        assert not at.error and not at.query_params
        assert {"See its schedule", "Does switching pay?"} <= set(ways_on(at))
        assert loaded(at).graph.digest == graph.digest and loaded(at).cluster.servers == 8
    broken = b'{"format": "topox-taskgraph", "version": 1, "tasks": ['
    assert "broken.json" in the_error(bring(at, "up_graph", "broken.json", broken))
    assert loaded(at).graph.digest == graph.digest and metric(at, "Tasks") == "331"


def test_an_infragraph_file_is_a_cluster_and_the_line_says_what_was_assumed(visit):
    content = json.dumps(two_tiers(links=[link("down", 80.0), link("up", 50)])).encode()
    at = bring(visit(sample="blackboard", way="files"), "up_cluster", "nodes.json", content)
    assert not at.error and loaded(at).cluster.port_gbps == 80.0
    (line,) = [one.value for one in at.success]
    assert "nodes.json is the cluster now. It has no optical switch: 2 are assumed" in line
    assert "oversubscription above racks 3.2" in line


def test_a_cluster_alone_replaces_the_cluster_and_one_that_comes_first_waits_for_its_graph(visit):
    graph, cluster = load_sample("blackboard")
    fast = cluster.changed(port_gbps=80.0)
    at = bring_cluster(visit(sample="blackboard", way="files"), fast)
    assert not at.error and loaded(at).cluster.port_gbps == 80.0
    assert loaded(at).graph.digest == graph.digest
    at = bring_cluster(visit(way="files"), fast)
    assert not at.error and [one.value for one in at.success] == [
        "mine.cluster.json is kept: now add the task graph that should run on it."
    ]
    assert loaded(bring_graph(at, graph)).cluster.port_gbps == 80.0


def test_a_graph_that_does_not_fit_waits_for_its_cluster_or_is_offered_one(visit):
    big, cluster = load_sample("fsdp")
    for fits in (
        lambda at: bring_cluster(at, cluster),
        lambda at: press(at, "use_fitting"),
    ):
        at = bring_graph(visit(sample="blackboard", way="files"), big)
        assert [one.value for one in at.warning if "which the cluster lacks" in one.value]
        assert "Until then Blackboard stays loaded." in words(at)
        assert loaded(at).title == "blackboard"
        assert not fits(at).error and not at.warning
        assert loaded(at).graph.digest == big.digest and loaded(at).cluster.servers == 8
        assert loaded(at).assumed or loaded(at).cluster.digest == cluster.digest


def test_a_cluster_that_is_too_small_changes_nothing_and_waits_for_its_graph(visit):
    graph, small = load_sample("blackboard")
    at = bring_cluster(visit(sample="fsdp", way="files"), small)
    assert len(at.warning) == 1 and loaded(at).cluster.servers == 8
    assert loaded(bring_graph(at, graph)).cluster.digest == small.digest


def test_a_workload_is_generated_with_its_parameters_in_the_address(visit):
    at = visit(way="generate")
    at.selectbox(key="workload-0").select("llama3-8b").run()
    unbroken(at.number_input(key="p_llama3-8b_pipeline-0").set_value(33).run())
    assert "must leave every stage a layer" in the_error(at)
    assert at.button(key="generate").disabled
    at.number_input(key="p_llama3-8b_pipeline-0").set_value(2).run()
    assert "in closed form" in words(at) and "32 GPUs in 4 servers" in words(at)
    at.selectbox(key="machine_llama3-8b").select("a100").run()
    assert at.number_input(key="p_llama3-8b_tflops-1").value == MACHINES["a100"].tflops
    unbroken(at.toggle(key="p_llama3-8b_overlap_sends-0").set_value(True).run())
    given = address(press(at, "generate"))
    assert not at.error and loaded(at).cluster.servers == 4
    wanted = {"workload": "llama3-8b", "set.pipeline": "2", "set.tflops": "312.0"}
    wanted["set.overlap_sends"] = "yes"
    assert given.items() >= wanted.items()
    # The form shows what is loaded, also after a reload of the page.
    again = visit(way="generate", **given)
    assert again.number_input(key="p_llama3-8b_pipeline-0").value == 2
    assert again.toggle(key="p_llama3-8b_overlap_sends-0").value
    assert again.number_input(key="p_llama3-8b_tensor-0").label == "Tensor parallel (TP)"
    assert press(again, "reset_parameters").number_input(key="p_llama3-8b_pipeline-1").value == 4


def test_a_training_job_is_opened_from_its_file_and_saved_again(visit):
    job = JOBS["llama3-8b"].changed(plan__data=4, schedule__recompute="full", name="mine")
    at = bring(visit(way="files"), "up_graph", "mine.job.json", dump_job(job))
    assert not at.error and "mine.job.json is opened" in at.success[0].value
    parameters = dict(at.session_state["page_states"]["Scenario"].parameters)
    assert parameters == {"data": "4", "recompute": "full"}
    assert spoken(iteration(job).total_ms) in words(at)
    bring(at, "up_graph", "bad.job.json", dump_job(job)[:300])
    assert "bad.job.json" in the_error(at) and loaded(at).cluster.servers == 16
