"""Home: samples, uploads that cost nothing when they fail, generated workloads."""

import re
from urllib.parse import parse_qs

import pytest

from tests.topox_ui.conftest import address, chart, metric, words
from topox_core.fabrics.scheduled import schedule
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import time
from topox_core.training.iteration import iteration
from topox_core.training.job_file import dump_job
from topox_core.training.jobs import JOBS
from topox_core.training.machines import MACHINES
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_ui.home.samples import FINDINGS


def links(at, page=""):
    return [one.proto for one in at.get("page_link") if one.proto.page.endswith(page)]


def test_an_empty_home_says_what_a_switch_is_and_offers_every_sample(visit):
    at = visit()
    assert not at.exception
    assert "An optical circuit switch is cheap and fast, but slow to change." in words(at)
    pictures = [one.proto.body for one in at.get("html") if "<img" in one.proto.body]
    assert len(pictures) == 2 and all('alt="' in one for one in pictures)
    assert {one.label for one in links(at, "Schedule")} >= {s.title for s in SAMPLES.values()}


def test_a_card_leads_to_its_schedule_and_takes_no_what_if_of_another_job_along(visit):
    at = visit(sample="moe", port_gbps="400", **{"cost.pue": "2", "degree": "1"})
    card = next(one for one in links(at, "Schedule") if one.label == SAMPLES["blackboard"].title)
    assert parse_qs(card.query_string) == {"cost.pue": ["2"], "sample": ["blackboard"]}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if SAMPLES[name].tasks > 5_000 else ())
        for name in SAMPLES
    ],
)
def test_the_finding_on_a_card_is_what_the_schedule_page_opens_with(name):
    """Cards say in bold the iteration time of the first schedule, or that it is proved best."""
    result = schedule(*load_sample(name), Settings.of(engine="list", free=FREE))
    bold = re.findall("<b>(.*?)</b>", FINDINGS[name])
    assert bold in ([], [time(result.execution.makespan_ms).replace("\u00a0", " ")])
    assert ("proved best" in FINDINGS[name]) == (
        result.status == "optimal" and name != "blackboard"
    )


def test_a_graph_that_was_loaded_by_mistake_is_taken_back_with_the_what_ifs_of_before(visit):
    wrong, _ = load_sample("blackboard")
    at = visit(sample="moe", port_gbps="400", way="files")
    assert not [one for one in at.button if one.key == "go_back"]
    at.file_uploader(key="up_graph").upload("wrong.json", dump_graph_json(wrong)).run()
    assert at.session_state["loaded"].graph.digest == wrong.digest
    assert not address(at)
    at.button(key="go_back").click().run()
    assert not at.exception
    assert at.session_state["loaded"].title == "moe"
    assert address(at) == {"sample": "moe", "port_gbps": "400"}


def test_a_cluster_that_was_assumed_is_shown_as_such_and_its_values_changed_there(visit):
    graph, cluster = load_sample("blackboard")
    at = visit(way="files")
    at.file_uploader(key="up_graph").upload("mine.json", dump_graph_json(graph)).run()
    assert "Assumed cluster" in words(at) and "cluster assumed" in words(at)
    box = next(one for one in at.number_input if one.label == "Port speed, Gbit/s")
    box.set_value(40.0)
    next(one for one in at.button if one.label == "Use these values").click().run()
    assert not at.exception and not at.error
    assert at.session_state["loaded"].cluster.port_gbps == 40.0
    assert "Assumed cluster" in words(at)
    few = next(one for one in at.number_input if one.label == "Servers")
    few.set_value(1)
    next(one for one in at.button if one.label == "Use these values").click().run()
    assert len(at.error) == 1 and "lacks" in at.error[0].value
    at.file_uploader(key="up_cluster").upload("c.json", dump_cluster(cluster)).run()
    assert at.session_state["loaded"].cluster.port_gbps == cluster.port_gbps
    assert "ssumed" not in words(at)


@pytest.mark.parametrize("as_bytes", [dump_graph_json, dump_graph_csv])
def test_an_uploaded_graph_gets_a_cluster_that_fits(visit, as_bytes):
    graph, _ = load_sample("fsdp")
    at = visit(way="files")
    name = "mine.csv" if as_bytes is dump_graph_csv else "mine.taskgraph.json"
    at.file_uploader(key="up_graph").upload(name, as_bytes(graph)).run()
    assert not at.exception and not at.error
    assert at.session_state["loaded"].graph.digest == graph.digest
    assert at.session_state["loaded"].cluster.servers == 8
    assert not at.query_params


def test_a_bad_file_is_one_line_and_what_was_loaded_stays(visit):
    at = visit(sample="blackboard", way="files")
    at.file_uploader(key="up_graph").upload(
        "broken.json", b'{"format": "topox-taskgraph", "version": 1, "tasks": ['
    ).run()
    assert not at.exception
    assert len(at.error) == 1
    assert "broken.json" in at.error[0].value and "\n" not in at.error[0].value
    assert at.session_state["loaded"].title == "blackboard"
    assert metric(at, "Tasks") == "6"


def test_a_cluster_alone_replaces_the_cluster(visit):
    graph, cluster = load_sample("blackboard")
    at = visit(sample="blackboard", way="files")
    at.file_uploader(key="up_cluster").upload(
        "fast.cluster.json", dump_cluster(cluster.changed(port_gbps=80.0))
    ).run()
    assert not at.error
    assert at.session_state["loaded"].cluster.port_gbps == 80.0
    assert at.session_state["loaded"].graph.digest == graph.digest


def test_a_graph_that_does_not_fit_waits_and_is_tried_again_with_its_cluster(visit):
    big, cluster = load_sample("fsdp")
    at = visit(sample="blackboard", way="files")
    at.file_uploader(key="up_graph").upload("big.json", dump_graph_json(big)).run()
    assert [one.value for one in at.warning if "which the cluster lacks" in one.value]
    assert "Until then Blackboard stays loaded." in words(at)
    assert at.session_state["loaded"].title == "blackboard"
    at.file_uploader(key="up_cluster").upload("own.json", dump_cluster(cluster)).run()
    assert not at.exception and not at.error and not at.warning
    assert at.session_state["loaded"].graph.digest == big.digest
    assert at.session_state["loaded"].cluster.digest == cluster.digest


def test_a_graph_that_does_not_fit_is_offered_a_cluster_on_which_it_does(visit):
    big, _ = load_sample("fsdp")
    at = visit(sample="blackboard", way="files")
    at.file_uploader(key="up_graph").upload("big.json", dump_graph_json(big)).run()
    at.button(key="use_fitting").click().run()
    assert not at.exception and not at.error
    assert at.session_state["loaded"].cluster.servers == 8
    assert at.session_state["loaded"].assumed


def test_a_cluster_that_is_too_small_changes_nothing_and_waits_for_its_graph(visit):
    graph, small = load_sample("blackboard")
    at = visit(sample="fsdp", way="files")
    at.file_uploader(key="up_cluster").upload("small.json", dump_cluster(small)).run()
    assert len(at.warning) == 1
    assert at.session_state["loaded"].cluster.servers == 8
    at.file_uploader(key="up_graph").upload("small.json", dump_graph_json(graph)).run()
    assert at.session_state["loaded"].cluster.digest == small.digest


def test_a_workload_is_generated_with_its_parameters_in_the_address(visit):
    at = visit(way="generate")
    at.selectbox(key="workload").select("llama3-8b").run()
    at.number_input(key="p_llama3-8b_pipeline").set_value(2).run()
    assert "in closed form" in words(at) and "32 GPUs in 4 servers" in words(at)
    at.button(key="generate").click().run()
    assert not at.exception and not at.error
    assert address(at)["workload"] == "llama3-8b"
    assert address(at)["set.pipeline"] == "2"
    assert at.session_state["loaded"].cluster.servers == 4
    # The form shows what is loaded, also after a reload of the page.
    again = visit(way="generate", **{"workload": "llama3-8b", "set.pipeline": "2"})
    assert again.number_input(key="p_llama3-8b_pipeline_1").value == 2
    again.button(key="reset_parameters").click().run()
    assert again.number_input(key="p_llama3-8b_pipeline_2").value == 4


def test_a_job_that_cannot_be_is_one_line_and_one_that_does_not_fit_is_said(visit):
    at = visit(way="generate")
    at.selectbox(key="workload").select("llama3-8b").run()
    at.number_input(key="p_llama3-8b_pipeline").set_value(33).run()
    assert len(at.error) == 1 and "must leave every stage a layer" in at.error[0].value
    assert at.button(key="generate").disabled
    at.number_input(key="p_llama3-8b_pipeline").set_value(1).run()
    at.number_input(key="p_llama3-8b_tensor").set_value(1).run()
    assert not at.error and "Does not fit" in words(at)
    assert not at.button(key="generate").disabled


def test_a_machine_puts_its_figures_into_the_fields(visit):
    at = visit(way="generate")
    at.selectbox(key="workload").select("llama3-8b").run()
    at.selectbox(key="machine_llama3-8b").select("a100").run()
    assert at.number_input(key="p_llama3-8b_tflops_1").value == MACHINES["a100"].tflops
    at.button(key="generate").click().run()
    assert loaded_parameters(at)["tflops"] == "312.0"


def loaded_parameters(at) -> dict[str, str]:
    return dict(at.session_state["page_states"]["Scenario"].parameters)


def test_a_training_job_is_opened_from_its_file_and_saved_again(visit):
    job = JOBS["llama3-8b"].changed(plan__data=4, schedule__recompute="full", name="mine")
    at = visit(way="files")
    at.file_uploader(key="up_graph").upload("mine.job.json", dump_job(job)).run()
    assert not at.exception and not at.error
    assert "mine.job.json is opened" in at.success[0].value
    assert loaded_parameters(at) == {"data": "4", "recompute": "full"}
    assert "Where the" in words(at) and time(iteration(job).total_ms).replace(
        "\u00a0", " "
    ) in words(at)
    at.file_uploader(key="up_graph").upload("bad.job.json", dump_job(job)[:300]).run()
    assert len(at.error) == 1 and "bad.job.json" in at.error[0].value
    assert at.session_state["loaded"].cluster.servers == 16


def test_names_from_files_cannot_become_markup(visit):
    graph, _ = load_sample("blackboard")
    record = dump_graph_json(graph).replace(graph.name.encode(), b"<img src=x onerror=alert(1)>")
    at = visit(way="files")
    at.file_uploader(key="up_graph").upload("x.json", record).run()
    assert not at.exception
    assert not any("<img src=x" in element.proto.body for element in at.get("html"))


def test_the_critical_path_names_the_traffic_it_waits_for(visit):
    at = visit(sample="fsdp")
    assert "sharded weights (fsdp)" in chart(at, "path")["layout"]["yaxis"]["ticktext"]


def test_a_cluster_that_comes_first_waits_for_its_graph(visit):
    graph, cluster = load_sample("blackboard")
    at = visit(way="files")
    at.file_uploader(key="up_cluster").upload(
        "first.cluster.json", dump_cluster(cluster.changed(port_gbps=80.0))
    ).run()
    assert not at.error
    assert [i.value for i in at.success] == [
        "first.cluster.json is kept: now add the task graph that should run on it."
    ]
    at.file_uploader(key="up_graph").upload("then.json", dump_graph_json(graph)).run()
    assert at.session_state["loaded"].cluster.port_gbps == 80.0
