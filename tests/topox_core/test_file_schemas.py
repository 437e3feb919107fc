"""A JSON Schema of a kind of file takes what the reader takes, and refuses what it refuses of one field."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS, dump_parts, load_parts
from topox_core.errors import InputError
from topox_core.file_schemas import DOCUMENTS, json_schema
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.io.task_graph_file import dump_graph_json, load_graph
from topox_core.strategy.models import named
from topox_core.strategy.strategy import data_parallel, dump_strategy, load_strategy
from topox_core.tdm.mixes.samples import JOB_SAMPLES, load_job_sample
from topox_core.tdm.model.jobs_file import dump_jobs, load_jobs
from topox_core.training.jobs import JOBS, dump_job, load_job
from topox_core.workloads.samples import load_sample

GRAPH, CLUSTER = load_sample("moe")
FILES: dict[str, tuple[bytes, Any]] = {
    "taskgraph": (dump_graph_json(GRAPH), load_graph),
    "cluster": (dump_cluster(CLUSTER), load_cluster),
    "job": (dump_job(JOBS["llama3-8b"]), load_job),
    "jobs": (dump_jobs(load_job_sample(next(iter(JOB_SAMPLES)))), load_jobs),
    "strategy": (dump_strategy(data_parallel(named("dlrm-16").build(16), 16)), load_strategy),
    "parts": (dump_parts(PRICE_SETS[DEFAULT_SET]), load_parts),
}
# Where a kind of file is changed, and to what: beyond a range, another type, a key too many, a word of none.
WRONG: dict[str, tuple[tuple[Any, ...], ...]] = {
    "taskgraph": (("tasks", 0, "kind", "forwards"), ("tasks", 0, "server", -1), ("task", [])),
    "cluster": (("port_gbps", 0), ("servers", 2.5), ("duplex", "both"), ("ports", 3)),
    "job": (("plan", "zero", 4), ("machine", "tpu"), ("shape", "layers", 0), ("plan", "gpus", 8)),
    "jobs": (("network", "port_gbps", "fast"), ("jobs", 0, "collective", "gossip")),
    "strategy": (("servers", 0), ("operators", 0, "partitions", "two")),
    "parts": (("parts", 0, "price_usd", -1), ("based_on", "nobody"), ("currency", "EUR")),
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
    for name in DOCUMENTS.keys() - {"strategy"}:  # docs/strategy.md
        schema = json_schema(name)
        keys = {key for one in schema["$defs"].values() for key in one["properties"]}
        assert keys <= said, (name, keys - said)
