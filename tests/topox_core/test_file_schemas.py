"""A JSON Schema of a kind of file takes what the reader takes, and refuses what it refuses of one field."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from topox_core.check.schedule_file import read_schedule
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS, dump_parts, load_parts
from topox_core.errors import InputError
from topox_core.fabrics.scheduled import schedule
from topox_core.file_schemas import DOCUMENTS, json_schema
from topox_core.io.assertions import assertions_of
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.io.task_graph_file import dump_graph_json, load_graph
from topox_core.rails.window_lengths import dump_windows_json, load_windows
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.strategy.models import named
from topox_core.strategy.strategy import data_parallel, dump_strategy, load_strategy
from topox_core.studies.offers import OFFERS, dump_offers, load_offers
from topox_core.studies.ready import READY
from topox_core.studies.study import dump_study, load_study
from topox_core.tdm.model.jobs_file import JOB_SAMPLES, dump_jobs, load_job_sample, load_jobs
from topox_core.training.job import JOBS, dump_job, load_job
from topox_core.workloads.samples import load_sample

GRAPH, CLUSTER = load_sample("moe")
SCHEDULE = json.dumps(
    to_record(schedule(*load_sample("patience"), Settings.of(engine="list")))
).encode()
CROSSOVER = READY["crossover-map"].study()
ASSERTED = assertions_of(["gap <= 0.05"], ["gap"])
WINDOWS = dump_windows_json(
    "w", 9.0, load_windows(b"length_ms,before,after\n2,dp,pp\n", "w.csv").windows
)
FILES: dict[str, tuple[bytes, Any]] = {
    "taskgraph": (dump_graph_json(GRAPH), load_graph),
    "cluster": (dump_cluster(CLUSTER), load_cluster),
    "job": (dump_job(JOBS["llama3-8b"]), load_job),
    "jobs": (dump_jobs(load_job_sample(next(iter(JOB_SAMPLES)))), load_jobs),
    "strategy": (dump_strategy(data_parallel(named("dlrm-16").build(16), 16)), load_strategy),
    "parts": (dump_parts(PRICE_SETS[DEFAULT_SET]), load_parts),
    "schedule": (SCHEDULE, read_schedule),
    "study": (dump_study(replace(CROSSOVER, assertions=ASSERTED)), load_study),
    "windows": (WINDOWS, load_windows),
    "offers": (dump_offers(OFFERS), load_offers),
}
# Where a kind of file is changed, and to what: beyond a range, another type, a key too many, a word of none.
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
    assert load(content, "file")
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
    with pytest.raises(InputError):
        load(json.dumps(record).encode(), "file")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_without_what_it_needs_is_refused_by_both(name: str) -> None:
    content, load = FILES[name]
    for key in (*DOCUMENTS[name].needed, "format"):
        record = {one: value for one, value in json.loads(content).items() if one != key}
        assert refused(json_schema(name), record)
        with pytest.raises(InputError, match=key):
            load(json.dumps(record).encode(), "file")


def test_the_document_names_every_key_that_a_file_may_hold() -> None:
    text = Path("docs/files.md").read_text()
    said = set(re.findall(r"`([a-z_]+)`", text)) | set(re.findall(r'"([a-z_]+)":', text))
    for name in DOCUMENTS.keys() - {
        "strategy",
        "study",
        "offers",
    }:  # strategy.md, studies.md, buying.md
        schema = json_schema(name)
        keys = {key for one in schema["$defs"].values() for key in one["properties"]}
        assert keys <= said, (name, keys - said)
