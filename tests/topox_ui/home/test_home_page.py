"""Home: samples, uploads that cost nothing when they fail, generated workloads."""

import pytest

from tests.topox_ui.conftest import address, chart, metric, words
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json
from topox_core.workloads.samples import SAMPLES, load_sample


def test_an_empty_home_asks_the_question_and_offers_every_sample(visit):
    at = visit()
    assert not at.exception
    assert "What would optical circuit switches do for your training job?" in words(at)
    assert {b.label for b in at.button} >= {sample.title for sample in SAMPLES.values()}


def test_a_card_loads_its_sample_and_writes_the_address(visit):
    at = visit()
    at.button(key="open_blackboard").click().run()
    assert not at.exception
    assert metric(at, "Tasks") == "6"
    assert address(at) == {"sample": "blackboard"}
    assert "6 tasks on 3 servers" in words(at)


@pytest.mark.parametrize("as_bytes", [dump_graph_json, dump_graph_csv])
def test_an_uploaded_graph_gets_a_cluster_that_fits(visit, as_bytes):
    graph, _ = load_sample("fsdp")
    at = visit()
    name = "mine.csv" if as_bytes is dump_graph_csv else "mine.taskgraph.json"
    at.file_uploader(key="up_graph").upload(name, as_bytes(graph)).run()
    assert not at.exception and not at.error
    assert at.session_state["loaded"].graph.digest == graph.digest
    assert at.session_state["loaded"].cluster.servers == 8
    assert not at.query_params


def test_a_bad_file_is_one_line_and_what_was_loaded_stays(visit):
    at = visit(sample="blackboard")
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
    at = visit(sample="blackboard")
    at.file_uploader(key="up_cluster").upload(
        "fast.cluster.json", dump_cluster(cluster.changed(port_gbps=80.0))
    ).run()
    assert not at.error
    assert at.session_state["loaded"].cluster.port_gbps == 80.0
    assert at.session_state["loaded"].graph.digest == graph.digest


def test_a_graph_that_does_not_fit_is_told_and_offered_a_cluster(visit):
    big, _ = load_sample("fsdp")
    at = visit(sample="blackboard")
    at.file_uploader(key="up_graph").upload("big.json", dump_graph_json(big)).run()
    assert len(at.error) == 1
    assert "which the cluster lacks" in at.error[0].value
    assert at.session_state["loaded"].title == "blackboard"
    at.button(key="use_fitting").click().run()
    assert not at.exception and not at.error
    assert at.session_state["loaded"].cluster.servers == 8


def test_a_cluster_that_is_too_small_changes_nothing(visit):
    _, small = load_sample("blackboard")
    at = visit(sample="fsdp")
    at.file_uploader(key="up_cluster").upload("small.json", dump_cluster(small)).run()
    assert len(at.error) == 1
    assert at.session_state["loaded"].cluster.servers == 8


def test_a_workload_is_generated_with_its_parameters_in_the_address(visit):
    at = visit()
    at.selectbox(key="workload").select("pipeline").run()
    at.number_input(key="p_pipeline_stages").set_value(2)
    next(b for b in at.button if b.label == "Generate").click().run()
    assert not at.exception and not at.error
    assert address(at)["workload"] == "pipeline"
    assert address(at)["set.stages"] == "2"


def test_names_from_files_cannot_become_markup(visit):
    graph, _ = load_sample("blackboard")
    record = dump_graph_json(graph).replace(graph.name.encode(), b"<img src=x onerror=alert(1)>")
    at = visit()
    at.file_uploader(key="up_graph").upload("x.json", record).run()
    assert not at.exception
    assert not any("<img" in element.proto.body for element in at.get("html"))


def test_the_critical_path_names_the_traffic_it_waits_for(visit):
    at = visit(sample="fsdp")
    assert "sharded weights (fsdp)" in chart(at, "path")["layout"]["yaxis"]["ticktext"]


def test_a_cluster_that_comes_first_waits_for_its_graph(visit):
    graph, cluster = load_sample("blackboard")
    at = visit()
    at.file_uploader(key="up_cluster").upload(
        "first.cluster.json", dump_cluster(cluster.changed(port_gbps=80.0))
    ).run()
    assert not at.error
    assert [i.value for i in at.info] == [
        "first.cluster.json is kept: now add the task graph that should run on it."
    ]
    at.file_uploader(key="up_graph").upload("then.json", dump_graph_json(graph)).run()
    assert at.session_state["loaded"].cluster.port_gbps == 80.0
