"""Task graphs survive their files, whatever the dialect; files for other tools say what they should."""

import csv
import gc
import gzip
import io
import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.real_inputs import ROOT, SUITE
from topox_core.economics.price_sets import load_parts
from topox_core.errors import InputError
from topox_core.io.cluster_file import load_cluster
from topox_core.io.exports import (
    cross_connects,
    cross_connects_csv,
    cross_connects_record,
    tasks_csv,
)
from topox_core.io.limits import MAX_DEPENDENCIES, MAX_TASKS
from topox_core.io.tables import as_meant, harmless, harmless_on_screen, table_bytes
from topox_core.io.task_graph_file import (
    check_fits,
    dump_graph_csv,
    dump_graph_json,
    load_graph,
)
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import MAX_PORTS, MAX_SERVERS, Cluster
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    KINDS,
    PARALLELISMS,
    TRANSFER_KINDS,
    Task,
    TaskGraph,
)
from topox_core.rails.window_lengths import load_windows
from topox_core.tdm.model.jobs_file import load_jobs
from topox_core.training.job import load_job

PIPELINE = validated(
    "two servers",
    [
        Task("f0", "forward", server=0, duration_ms=3.0),
        Task(
            "act",
            "communication",
            dependencies=("f0",),
            source=0,
            destination=1,
            size_bytes=67108864,
            parallelism="pp",
            group="pp 0",
            microbatch=0,
        ),
        Task("f1", "forward", dependencies=("act",), server=1, duration_ms=3.25, stage=1, layer=2),
        Task(
            "g",
            "all_reduce",
            dependencies=("f1", "f0"),
            members=(1, 0),
            size_bytes=306340000,
            parallelism="dp",
        ),
        Task("end", "barrier", dependencies=("g",), job="j0"),
    ],
)

# Everything printable (str.isprintable), drawn rather than sieved out of all characters.
UNPRINTABLE = ("C", "Z")
ids = st.text(st.characters(codec="utf-8", exclude_categories=UNPRINTABLE), min_size=1, max_size=8)
plain_text = st.lists(ids, min_size=1, max_size=2).map(" ".join)
servers = st.integers(0, 99_999)
sizes = st.one_of(st.integers(0, 10**15), st.floats(0, 1e15))
indices = st.none() | st.integers(0, 1000)
NOTES = {
    "parallelism": st.none() | st.sampled_from(PARALLELISMS),
    "group": st.none() | plain_text,
    "microbatch": indices,
    "stage": indices,
    "layer": indices,
    "job": st.none() | plain_text,
}


def fields_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    times = st.floats(0, 1e9) | st.integers(0, 1000)
    if kind in COMPUTE_KINDS:
        return st.fixed_dictionaries(
            {"server": servers, "device": st.none() | st.integers(0, 7), "duration_ms": times}
        )
    if kind in TRANSFER_KINDS:
        ends = st.lists(servers, min_size=2, max_size=2, unique=True)
        load = st.one_of(
            sizes.map(lambda s: {"size_bytes": s}), times.map(lambda t: {"duration_ms": t})
        )
        return st.tuples(ends, load).map(
            lambda p: {"source": p[0][0], "destination": p[0][1], **p[1]}
        )
    if kind in COLLECTIVE_KINDS:
        members = st.lists(servers, min_size=1, max_size=5, unique=True).map(tuple)
        return st.tuples(members, sizes).map(
            lambda p: {
                "members": p[0],
                "size_bytes": p[1],
                **({"root": p[0][-1]} if kind == "broadcast" else {}),
            }
        )
    return st.just({})


@st.composite
def graphs(draw: st.DrawFn) -> TaskGraph:
    names = draw(st.lists(ids, min_size=1, max_size=8, unique=True))
    tasks = []
    for i, name in enumerate(names):
        kind = draw(st.sampled_from(KINDS))
        dependencies = tuple(draw(st.lists(st.sampled_from(names[:i]), unique=True))) if i else ()
        fields = draw(fields_of(kind)) | draw(st.fixed_dictionaries(NOTES))
        tasks.append(Task(name, kind, dependencies=dependencies, **fields))
    return validated(draw(plain_text), draw(st.permutations(tasks)))


@examples(40)
@given(graphs())
def test_any_graph_survives_json_gzip_and_a_table(graph: TaskGraph) -> None:
    written = dump_graph_json(graph)
    assert load_graph(written, "a.taskgraph.json") == graph
    for data, file in ((gzip.compress(written), "a.json.gz"), (dump_graph_csv(graph), "a.csv")):
        again = load_graph(data, file)
        assert (again.tasks, again.digest) == (graph.tasks, graph.digest)


@pytest.mark.parametrize(
    "suffix",
    [kind + packed for kind in (".json", ".csv", ".tsv", ".txt") for packed in ("", ".gz")],
)
def test_the_ending_says_how_to_read_and_names_a_table(suffix: str) -> None:
    data = dump_graph_json(PIPELINE) if ".json" in suffix else dump_graph_csv(PIPELINE)
    packed = gzip.compress(data) if suffix.endswith(".gz") else data
    graph = load_graph(packed, f"folder/Iteration{suffix.upper()}")
    assert graph.tasks == PIPELINE.tasks
    assert graph.name == ("two servers" if ".json" in suffix else "Iteration")


def test_what_is_in_a_file_counts_more_than_its_name_and_null_is_absent() -> None:
    written = dump_graph_json(PIPELINE)
    assert load_graph(gzip.compress(written), "a.json") == load_graph(written, "download")
    entry = {"id": "a", "kind": "barrier", "server": None, "members": None, "dependencies": None}
    record = {"format": "topox-taskgraph", "version": 1, "tasks": [entry]}
    graph = load_graph(json.dumps(record).encode(), "iteration.taskgraph.json")
    assert (graph.name, graph.tasks) == ("iteration", (Task("a", "barrier"),))


def test_equal_graphs_have_equal_digests_however_numbers_are_written() -> None:
    def digest(more: str) -> str:
        task = f'{{"id": "a", "kind": "forward", "server": 0, "duration_ms": {more}}}'
        file = f'{{"format": "topox-taskgraph", "version": 1, "tasks": [{task}]}}'
        return load_graph(file.encode(), "a.json").digest

    assert len({digest("3"), digest('3.0, "device": 0'), digest("30e-1")}) == 1
    assert digest("0") == digest("-0.0")


def table(delimiter: str, *rows: str) -> bytes:
    return "\n".join(row.replace("|", delimiter) for row in rows).encode()


ROWS = (
    "id|kind|server|source|destination|size_bytes|duration_ms|members|dependencies",
    "f0|forward|0||||3.5||",
    "c|communication||0|1|1000|||f0",
    "g|all_reduce||||8||2 0|f0 c",
)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_comma_semicolon_and_tab_tables_are_told_apart(delimiter: str) -> None:
    graph = load_graph(table(delimiter, *ROWS), "a.csv")
    assert graph.tasks == (
        Task("f0", "forward", dependencies=(), server=0, device=0, duration_ms=3.5),
        Task(
            "c", "communication", dependencies=("f0",), source=0, destination=1, size_bytes=1000.0
        ),
        Task("g", "all_reduce", dependencies=("f0", "c"), members=(2, 0), size_bytes=8.0),
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"sep=;\r\n" + data,
        lambda data: data + b"\n;;;;;;;;\n\n",
        lambda data: data.replace(b"dependencies", b"dependencies;"),
        lambda data: data.replace(b"3.5", b"3,5"),
        lambda data: data.replace(b"f0;forward;0", b'"f0"; forward ; 0.0 '),
    ],
    ids=[
        "byte order mark",
        "line ends of Windows",
        "sep line",
        "blank rows",
        "nameless column",
        "decimal comma",
        "quotes and gaps",
    ],
)
def test_what_spreadsheets_do_to_a_table_is_understood(change: Any) -> None:
    data = table(";", *ROWS)
    assert load_graph(change(data), "a.csv").tasks == load_graph(data, "a.csv").tasks


def test_a_join_of_many_tasks_fits_into_one_cell() -> None:
    many = [Task(f"task-number-{i}", "barrier") for i in range(9_000)]  # 140,000 characters
    graph = validated(
        "wide", [*many, Task("join", "barrier", dependencies=tuple(task.id for task in many))]
    )
    assert load_graph(dump_graph_csv(graph), "wide.csv").tasks == graph.tasks


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("content", [dump_graph_json(PIPELINE), b"{"])
def test_garbage_is_collected_after_reading_as_it_was_before(content: bytes, before: bool) -> None:
    (gc.enable if before else gc.disable)()
    try:
        with suppress(InputError):
            load_graph(content, "mine.json")
        assert gc.isenabled() == before
    finally:
        gc.enable()


SMALL = Cluster(servers=2, ports_per_server=1, switches=1, ports_per_switch=2, port_gbps=100.0)


@pytest.mark.parametrize(
    ("task", "line"),
    [
        (
            Task("x", "forward", server=2, duration_ms=1.0),
            "a.json, task x, field server: names server 2, which the cluster lacks (it has 2 servers: 0 to 1)",
        ),
        (
            Task("x", "forward", server=1, device=1, duration_ms=1.0),
            "a.json, task x, field device: names device 1, which the cluster's servers lack (each: it has 1 device: 0)",
        ),
        (
            Task("x", "communication", source=7, destination=0, size_bytes=1.0),
            "a.json, task x, field source: names server 7, which the cluster lacks (it has 2 servers: 0 to 1)",
        ),
        (
            Task("x", "nominal_communication", source=0, destination=2, size_bytes=1.0),
            "a.json, task x, field destination: names server 2, which the cluster lacks (it has 2 servers: 0 to 1)",
        ),
        (
            Task("x", "all_to_all", members=(0, 5, 1), size_bytes=1.0),
            "a.json, task x, field members: names server 5, which the cluster lacks (it has 2 servers: 0 to 1)",
        ),
    ],
)
def test_a_server_or_device_that_is_not_there_is_named(task: Task, line: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
        check_fits(validated("g", [task]), SMALL, "a.json")


@pytest.mark.long
@pytest.mark.usefixtures("real_inputs")
def test_every_instance_of_the_suite_loads_and_fits_its_cluster() -> None:
    found = sorted(SUITE.glob("*.taskgraph.json*"))
    assert len(found) == 31
    for path in found:
        cluster = path.with_name(path.name.split(".")[0] + ".cluster.json")
        graph = load_graph(path.read_bytes(), path.name)
        check_fits(graph, load_cluster(cluster.read_bytes(), cluster.name), path.name)


PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")


def test_the_examples_of_the_documentation_are_valid_files() -> None:
    graph, rows, cluster, _paths, jobs, job, parts, windows = re.findall(
        r"^```(?:json|csv)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE
    )
    loaded = load_graph(graph.encode(), "example.json")
    check_fits(loaded, load_cluster(cluster.encode(), "example.cluster.json"))
    assert len(load_jobs(jobs.encode(), "example.jobs.json")) == 2
    assert load_job(job.encode(), "example.job.json").plan.gpus == 64
    assert load_parts(parts.encode(), "example.parts.json").name == "our quote"
    assert len(load_windows(windows.encode(), "example.windows.json").windows) == 2
    assert {task.id for task in load_graph(rows.encode(), "example.csv").tasks} < {
        task.id for task in loaded.tasks
    }


@pytest.mark.parametrize("limit", [MAX_TASKS, MAX_DEPENDENCIES, MAX_SERVERS - 1, MAX_PORTS - 1])
def test_the_limits_of_the_documentation_are_those_of_the_code(limit: int) -> None:
    assert f"| {limit:,} |" in PAGE.split("## Limits")[1]


def test_every_task_is_a_row_with_its_place_and_time(pipeline):
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(tasks_csv(pipeline).decode()))}
    assert rows.keys() == set(pipeline.graph.ids)
    g1 = [rows["g1"][key] for key in ("source", "destination", "switch", "start_ms", "critical")]
    assert g1 == ["1", "0", "1", "33.0", "yes"]


def test_the_program_connects_each_circuit_once_however_many_transfers_use_it(pipeline):
    program = cross_connects(pipeline)
    assert [row["transfers"] for row in program] == ["a0 a1", "b0 b1", "g2", "g1"]
    turned = [program[-1][key] for key in ("switch", "slot", "setup_ms", "usable_ms", "until_ms")]
    assert turned == [1, 31, 31, 33, 36]
    rows = list(csv.DictReader(io.StringIO(cross_connects_csv(pipeline).decode())))
    switches = cross_connects_record(pipeline)["switches"]
    assert sum(len(switch["connections"]) for switch in switches) == len(rows) == 4
    assert switches[0]["connections"][0]["transfers"] == ["a0", "a1"]


FORMULAS = ("=1+1", "@SUM(1+1)", "+cmd|' /C calc'!A0", "-2+3", "\tx", "＝1", "'=1", "''@a")


def test_no_cell_of_a_table_is_a_formula_and_numbers_stay_numbers():
    rows = [[text, -1.5, "-3", "+2e5", "a=b"] for text in FORMULAS]
    for row in csv.reader(io.StringIO(table_bytes(["=a", "b", "c", "d", "e"], rows).decode())):
        assert row[0].startswith("'")
        assert row[1:] in (["-1.5", "-3", "+2e5", "a=b"], ["b", "c", "d", "e"])
    for text in (*FORMULAS, "-3", "'", "'a", "a", ""):
        assert as_meant(harmless(text)) == text
    for text in (*FORMULAS, "+3 %", "-1.5 ms", "-", "-12"):  # differences stay on screen
        shown = harmless(text) if text in FORMULAS else text
        assert harmless_on_screen(text) == shown


def test_tasks_named_like_formulas_come_back_from_a_table():
    tasks = [Task("=A1", "barrier"), Task("'@x", "barrier", dependencies=("=A1",))]
    graph = validated("g", [*tasks, Task("-7", "barrier", dependencies=("'@x", "=A1"))])
    written = dump_graph_csv(graph)
    assert b"\n=" not in written
    assert load_graph(written, "g.csv").tasks == graph.tasks
