"""What a page saves as a result says what made it, and is as the schema of its kind of file says."""

import json

import pytest
from jsonschema import Draft202012Validator

from tests.patience import wait_until
from topox_core.file_schemas import json_schema
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
