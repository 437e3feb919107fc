"""A JSON Schema of a kind of file takes what the reader takes, and refuses what it refuses of one field."""

import json
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from tests.refusal import refusal
from topox_core.check.schedule_file import read_linked, read_schedule
from topox_core.claims.cells import cells_of, shipped_results
from topox_core.claims.claims import as_record as claims_record
from topox_core.cli.shared.manifest import manifest_of_answer
from topox_core.demand.planning import lower_bound, plan_demand, plan_record
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS, dump_parts, load_parts
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.file_schemas import DOCUMENTS, json_schema
from topox_core.io.assertions import assertions_of
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.io.exports import cross_connects_record
from topox_core.io.task_graph_file import dump_graph_json, load_graph
from topox_core.labs import lab_file
from topox_core.labs.classroom.answers import (
    Answers,
    Attempt,
    Explained,
    Locked,
    Prediction,
    Worked,
    dump_answers,
    load_answers,
)
from topox_core.labs.classroom.leaderboard import load_entry
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import preset
from topox_core.rails.window_lengths import dump_windows_json, load_windows
from topox_core.runs.run import finish
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.strategy.models import named
from topox_core.strategy.strategy import data_parallel, dump_strategy, load_strategy
from topox_core.studies.buying.offers import OFFERS, dump_offers, load_offers, offer_of
from topox_core.studies.buying.question import Question
from topox_core.studies.buying.run import buying_run
from topox_core.studies.buying.words import as_record as buying_record
from topox_core.studies.ready import READY
from topox_core.studies.study import dump_study, load_study
from topox_core.studies.subject import Subject, resolve
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.model.jobs import TdmSettings
from topox_core.tdm.model.jobs_file import JOB_SAMPLES, dump_jobs, load_job_sample, load_jobs
from topox_core.tdm.model.round_file import to_record as round_record
from topox_core.traces.chakra.astra_sim import import_text
from topox_core.traces.chakra.nodes import groups_of_text
from topox_core.traces.chakra.reading import import_chakra
from topox_core.traces.chakra.writing import ChakraFiles
from topox_core.traces.importing import import_kineto
from topox_core.traces.source import ImportSettings, Source
from topox_core.training.job import JOBS, dump_job, load_job
from topox_core.workloads.samples import load_sample

GRAPH, CLUSTER = load_sample("moe")
RESULT = schedule(*load_sample("patience"), Settings.of(engine="list", switching="planned"))
CROSSOVER = READY["crossover-map"].study()
ASSERTED = assertions_of(["gap <= 0.05"], ["gap"])
WINDOWS = dump_windows_json(
    "w", 9.0, load_windows(b"length_ms,before,after\n2,dp,pp\n", "w.csv").windows
)


def of_command(record: dict[str, Any], **more: Any) -> bytes:
    """Return a result as its command prints it."""
    options = Namespace(written=(), command="schedule", part=None, seed=3, file="CHANGELOG.md")
    found = record | {"manifest": manifest_of_answer(options, record, {"h100.tflops": "published"})}
    return json.dumps(found | more).encode()


SHARED = load_job_sample("four-pods")
ROUND = round_record(
    solve(SHARED, TdmSettings()), non_tdm_s=solve(SHARED, TdmSettings("non-tdm")).round_s
)
DEMAND = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [3.0, 0.0, 0.0]])
PLAN = plan_record(plan_demand(DEMAND, 1, 0.5), lower_bound(DEMAND, 1, 0.5, first_free=False))
LAYERS = b"DATA\n1\nhead -1 500000 NONE 0 700000 NONE 0 300000 ALLREDUCE 100000000 0\n"
TEXT = import_text(Source.of_bytes("w.txt", LAYERS), ImportSettings(), 4).report
LINK = {"format": "topox-link", "version": 1, "link": {"sample": "patience"}, "graph_digest": "d"}
CHECKED = {"checked": True, "violations": []}
AT = "2026-10-05T09:00:12Z"
ANSWERS = Answers(
    *("price-tag", "0123456789abcdef", "NET-401", "s1234567", 7, {"price": 1}, AT, ""),
    {
        "P1": Prediction(AT, 3, Locked(AT, [4])),
        "W1": Worked((Attempt(AT, "a", 2.0),), AT),
        "E1": Explained(AT, "because"),
    },
)
ENTRY = {
    "format": "topox-entry",
    "version": 1,
    "board": "six-tasks",
    "alias": " Ada ",
    "starts_ms": {"t0": 0},
    "makespan_ms": 9,
}
RAIL_RUN = simulate(build(preset("llama3-8b-perlmutter")), Rail(200.0, reconfiguration_ms=5.0))
OFFERED = (offer_of(OFFERS, "rotornet"),)
BOUGHT = finish(
    buying_run(Question(resolve(Subject("sample", {"name": "blackboard"})), OFFERED), executor=1)
)
CELLS = cells_of(shipped_results())
LAB_KEYS = {
    "format": "topox-lab-keys",
    "version": 1,
    "lab": "price-tag",
    "digest": "d",
    "seeds": [{"student": None, "seed": 7, "keys": {"W1": 2.0}, "mistakes": {"W1": []}}],
}
# What is written of each kind, and what reads it; results of which nothing reads have none.
FILES: dict[str, tuple[bytes, Any]] = {
    "taskgraph": (dump_graph_json(GRAPH), load_graph),
    "cluster": (dump_cluster(CLUSTER), load_cluster),
    "job": (dump_job(JOBS["llama3-8b"]), load_job),
    "jobs": (dump_jobs(load_job_sample(next(iter(JOB_SAMPLES)))), load_jobs),
    "strategy": (dump_strategy(data_parallel(named("dlrm-16").build(16), 16)), load_strategy),
    "parts": (dump_parts(PRICE_SETS[DEFAULT_SET]), load_parts),
    "schedule": (of_command(to_record(RESULT)), read_schedule),
    "link": (json.dumps(to_record(RESULT) | LINK).encode(), read_linked),
    "round": (of_command(ROUND, **CHECKED), None),
    "plan": (of_command(PLAN, **CHECKED, baselines_ms={"a": 9.0}), None),
    "cross-connects": (of_command(cross_connects_record(RESULT.execution)), None),
    "report": (of_command(TEXT, output="a.json"), None),
    "lab": ((lab_file.READY / "price-tag.lab.json").read_bytes(), lab_file.load_lab),
    "answers": (dump_answers(ANSWERS, {"worked": 3}, b"here"), load_answers),
    "entry": (json.dumps(ENTRY).encode(), load_entry),
    "rail-run": (of_command(RAIL_RUN.as_record()), None),
    "buying": (of_command(buying_record(BOUGHT)), None),
    "claims": (of_command(claims_record(CELLS)), None),
    "lab-keys": (of_command(LAB_KEYS), None),
    "manifest": (json.dumps(json.loads(of_command({"gap": 0.1}))["manifest"]).encode(), None),
    "study": (dump_study(replace(CROSSOVER, assertions=ASSERTED)), load_study),
    "windows": (WINDOWS, load_windows),
    "offers": (dump_offers(OFFERS), load_offers),
}
ASKING = next(
    n for n, one in enumerate(lab_file.ready_labs()["price-tag"].screens) if one.questions
)
# Where a kind of file is changed, and to what: beyond a range, another type, a key too many, a word of none.
ASKED = ("screens", ASKING, "questions", 0)
WRONG: dict[str, tuple[tuple[Any, ...], ...]] = {
    "taskgraph": (("tasks", 0, "kind", "forwards"), ("tasks", 0, "server", -1), ("task", [])),
    "cluster": (("port_gbps", 0), ("servers", 2.5), ("duplex", "both"), ("ports", 3)),
    "job": (("plan", "zero", 4), ("machine", "tpu"), ("shape", "layers", 0), ("plan", "gpus", 8)),
    "jobs": (("network", "port_gbps", "fast"), ("jobs", 0, "collective", "gossip")),
    "strategy": (("servers", 0), ("operators", 0, "partitions", "two")),
    "parts": (("parts", 0, "price_usd", -1), ("based_on", "nobody"), ("currency", "EUR")),
    "schedule": (
        *(("status", "proved"), ("gap", "none"), ("makespan", 1.0), ("circuits", 0, "switch", -1)),
        ("tasks", 0, "start_ms", "0"),
    ),
    "link": (("link", "sample", 1), ("graph_digest", 2), ("status", "proved"), ("shared", True)),
    "round": (
        *(("round_s", "1"), ("cycles", 0, "stages", 0, "stages", 2), ("groups", 0, 0, 1)),
        *(("jobs", 0, "ring", 0.5), ("status", "proved"), ("bottlenecks", 0, "cause", None)),
        *(("links", 0, "from", -1), ("manifest", "seeds", 1), ("rounds", [])),
    ),
    "plan": (
        *(("switches", 0, 0, "circuits", 0, 0), ("switches", 0, 0, "end_ms", 1.0)),
        *(("delay_ms", -1), ("first_free", "no"), ("version", 1)),
    ),
    "cross-connects": (
        *(("switches", 0, "connections", 0, "slot", 0.5), ("switches", 0, "switches", [])),
        *(("slot_ms", None), ("switches", 0, "connections", 0, "transfers", "a b"), ("gap", 0.0)),
    ),
    "report": (
        *(("groups", 0, "calls", "9"), ("checks", 0, "word", ""), ("checks", 0, "status", None)),
        *(("calls_by_kind", "all_reduce", 0.5), ("inside_servers", "servers", 1), ("rank", [])),
    ),
    "rail-run": (
        *(("circuits", 0, "changed", 1), ("messages", 0, "at_ms", "now"), ("stall_ms", -1)),
        *(("messages", 0, "from_", "a"), ("messages_sent", 0.5), ("format", "topox-rails")),
    ),
    "buying": (
        *(("networks", 0, "saves (%)", "0"), ("networks", 0, "ports", 1), ("complete", "yes")),
        *(("networks", 0, "nothing beats it", "no"), ("details", "Price of a port", 520)),
        *(("hangs_on", 0, "saves (%)", None), ("could_turn", 0), ("caveat", [])),
    ),
    "claims": (
        *(("claims", 0, "verdict", "holds"), ("claims", 0, "share", "0.5"), ("claim", [])),
        *(("cells", 0, "ports", 1.5), ("cells", 0, "times_ms", "fat_tree", None)),
    ),
    "lab-keys": (
        *(("seeds", 0, "seed", -1), ("seeds", 0, "keys", []), ("seeds", 0, "name", "a")),
        ("seeds", 0, "mistakes", "W1", 0),
    ),
    "lab": (
        *(("id", "A"), ("minutes", 0), ("goals", []), ("screens", []), ("instances", {})),
        *(("instances", "Rail", {"generator": "price"}), ("plan", 0, "till", 3), ("tags", [])),
        ("instances", "mine", {"files": {"graph": "../secret"}}),
        ("instances", "mine", {"generator": "dice", "generator_version": 1, "seed": 0}),
        ("instances", "mine", {"generator": "price", "generator_version": 1, "seed": "mine"}),
        ("instances", "mine", {"generator": "price", "generator_version": 0, "seed": "class"}),
        *(("screens", 0, "stage", "sleep"), ("screens", 0, "show", ["nothing"])),
        *(("screens", 0, "slider", {"key": "ports", "step": 0}), ("screens", 0, "id", "1")),
        *((*ASKED, "points", 21), (*ASKED, "id", "P100"), (*ASKED, "type", "riddle")),
        *((*ASKED, "key", "load"), (*ASKED, "key", {"value": 1}), (*ASKED, "key", {"call": "tdm"})),
        (*ASKED, "key", {"call": "shell", "field": "a"}),
        (*ASKED, "key", {"call": "tdm", "field": "a", "bands": [{"below": 1}]}),
        *((*ASKED, "tolerance", {"absolute": -1}), (*ASKED, "feedback", [{"value": "a"}])),
        *((*ASKED, "options", [{"id": "a"}]), (*ASKED, "digits", 7), (*ASKED, "text", "")),
    ),
    "answers": (
        *(("seed", -1), ("started", "today"), ("answers", "P1", "value2", 1), ("answers", [])),
        *(("answers", "P1", "locked", "2026"), ("answers", "P1", "second", {"value": 1})),
        *(("answers", "W1", "attempts", 0, "points", -1), ("answers", "E1", "value", 3)),
        *(("generator_versions", {"price": "1"}), ("student", "s" * 201), ("scores", {})),
    ),
    "entry": (("board", "chess"), ("alias", " "), ("alias", 21 * "a"), ("starts", {})),
    "manifest": (("inputs", []), ("seed", "3"), ("validity", "gap"), ("host", "mine")),
    "study": (("budget", {"points": 0}), ("measures", "gap"), ("assert", [1]), ("axis", [])),
    "windows": (("windows", 0, "length_ms", "long"), ("iteration_ms", "1"), ("window", [])),
    "offers": (("offers", 0, "price", 1), ("offers", 0, "delay_ms", "fast"), ("offer", [])),
}


def refused(schema: Any, record: Any) -> bool:
    return not Draft202012Validator(schema).is_valid(record)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_written_is_as_its_schema_says(name: str) -> None:
    schema = json_schema(name)
    Draft202012Validator.check_schema(schema)
    content, load = FILES[name]
    assert load is None or load(content, "file")
    assert not refused(schema, json.loads(content))
    for path in Path("sample_data").rglob(f"*{DOCUMENTS[name].ending}"):
        assert not refused(schema, json.loads(path.read_bytes())), path


@pytest.mark.parametrize(
    ("name", "change"), [(name, one) for name, changes in WRONG.items() for one in changes]
)
def test_schema_and_reader_refuse_alike(name: str, change: tuple[Any, ...]) -> None:
    content, load = FILES[name]
    record = json.loads(content)
    *path, key, value = change
    inner = record
    for part in path:
        inner = inner[part]
    inner[key] = value
    assert refused(json_schema(name), record)
    if load is not None:
        refusal(load, json.dumps(record).encode(), "file")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_without_what_it_needs_is_refused_by_both(name: str) -> None:
    content, load = FILES[name]
    for key in (*DOCUMENTS[name].needed, "format"):
        record = {one: value for one, value in json.loads(content).items() if one != key}
        assert refused(json_schema(name), record)
        if load is not None:
            assert key in refusal(load, json.dumps(record).encode(), "file")


def test_each_importer_reports_as_the_schema_says() -> None:
    ranks = sorted(Path("sample_data").glob("recorded-run_rank*.json.gz"))
    run = [Source.of_bytes(path.name, path.read_bytes()) for path in ranks]
    made, settings = ChakraFiles(load_sample("blackboard")[0]), ImportSettings()
    files = [Source.of_bytes(f"x.{server}.et", data) for server, data in made.files.items()]
    chakra = import_chakra(files, settings, groups_of_text(json.loads(made.groups)))
    for found in (import_kineto(run, settings), chakra):
        report = json.loads(json.dumps(found.report))
        assert not refused(json_schema("report"), report), found.report.keys()


def test_the_document_names_every_key_that_a_file_may_hold() -> None:
    text = Path("docs/files.md").read_text()
    said = set(re.findall(r"`([a-z_]+)`", text)) | set(re.findall(r'"([a-z_]+)":', text))
    # strategy.md, studies.md, buying.md, and labs.md
    elsewhere = {"strategy", "study", "offers", "lab", "answers", "entry"}
    for name in DOCUMENTS.keys() - elsewhere:
        schema = json_schema(name)
        keys = {
            key for one in schema["$defs"].values() for key in one["properties"] if " " not in key
        }
        assert keys <= said, (name, keys - said)
