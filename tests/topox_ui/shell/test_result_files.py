"""What a page saves as a result says what made it, and is as the schema of its kind of file says."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.patience import wait_until
from tests.real_inputs import ROOT
from tests.topox_ui.conftest import bring, turn_to
from topox_core.file_schemas import json_schema
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.workloads.samples import load_sample

SCHEDULE = "Schedule"

GRAPH, _ = load_sample("blackboard")
RESULTS = {
    "Result (JSON)": ("schedule", SCHEDULE, {"sample": "blackboard", "port_gbps": "200"}),
    "Link with result": ("link", SCHEDULE, {"sample": "blackboard", "port_gbps": "200"}),
    "Round (JSON)": ("round", "Sharing", {"jobs.algorithm": "all-train"}),
    "Circuits of each switch over time (JSON)": (
        *("cross-connects", SCHEDULE),
        {"sample": "blackboard", "port_gbps": "200"},
    ),
    "Run with its control plane (JSON)": (
        "rail-run",
        "Rails",
        {"rails.see": "control"},
    ),
    "Cells and verdicts (JSON)": ("claims", "Claims against each other", {}),
    "Report (JSON)": ("report", "Your trace", {"recorded.example": "yes"}),
}


@pytest.mark.parametrize("label", RESULTS)
def test_a_result_that_a_page_saves_has_its_manifest(visit, downloads, label):
    kind, page, link = RESULTS[label]
    at = visit(page, **link)
    wait_until(lambda: label in downloads, at.run)
    saved = json.loads(downloads[label]())
    assert Draft202012Validator(json_schema(kind)).is_valid(saved)
    made = saved["manifest"]
    assert made["command"] == f"page {page}" and made["inputs"]
    assert made["options"].items() >= link.items()
    if link.get("sample"):
        assert made["inputs"]["graph"] == GRAPH.digest


def test_a_citation_has_the_headline_the_job_what_differs_and_the_program_as_the_citation_file_names_it(
    visit, monkeypatch
):
    at = visit(SCHEDULE, sample="blackboard", port_gbps="200", rings="2")
    sentence, entry = (one.value.replace("\u00a0", " ") for one in at.code[-2:])
    assert (
        f"digest {GRAPH.digest[:12]}; cluster: 3 servers with 1 port of 200 Gbit/s each" in sentence
    )
    assert "defaults: port speed 200G instead of 8G, rings=2" in sentence
    assert "localhost" not in sentence + entry and "?sample=blackboard" in sentence
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f"{{{{{about['title']}}}}}" in entry and about["license"] in entry
    assert about["authors"] == [{"name": "TOPO-X Workbench contributors"}]
    assert f"version = {{{about['version']}+" in entry and about["authors"][0]["name"] in entry
    # Where others reach the server its address is given; of a reader's own files there is none.
    monkeypatch.setattr("topox_ui.shell.downloads.only_this_machine", lambda _host: False)
    assert "  url = {" in visit(SCHEDULE, sample="blackboard").code[-1].value
    own = bring(visit(way="files"), "up_graph", "mine.json", dump_graph_json(GRAPH))
    for page in (SCHEDULE, "Studies"):
        sentence = turn_to(own, page).code[-2].value
        assert "address" not in sentence and "job: blackboard" in sentence.lower()
