"""Clusters survive their file; bad input gets one clear line naming file, item and field, and never anything but an InputError."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.refusal import refusal
from topox_core.errors import InputError, errors_in_file
from topox_core.io import task_graph_rules as validation
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json, load_graph
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import KINDS, Task

Load = Callable[[bytes, str], object]


def compute(**changes: Any) -> dict[str, Any]:
    return {"id": "f0", "kind": "forward", "server": 0, "duration_ms": 1.0, **changes}


def transfer(**changes: Any) -> dict[str, Any]:
    ends = {"source": 0, "destination": 1}
    entry = {"id": "c", "kind": "communication", **ends, "size_bytes": 8, **changes}
    return {key: value for key, value in entry.items() if value != "drop"}


def collective(kind: str = "all_reduce", **changes: Any) -> dict[str, Any]:
    return {"id": "g", "kind": kind, "members": [0, 1], "size_bytes": 8, **changes}


def file_of(*tasks: Any, **changes: Any) -> bytes:
    return json.dumps(
        {"format": "topox-taskgraph", "version": 1, "name": "g", "tasks": list(tasks), **changes}
    ).encode()


def line_of(data: bytes, file: str = "g.json", load: Load = load_graph) -> str:
    line = refusal(load, data, file)
    assert line.startswith(file), "with its file"
    return line.removeprefix(file)


ring = [compute(id=f"f{i}", dependencies=[f"f{(i - 1) % 20}"]) for i in range(20)]


@pytest.mark.parametrize(
    ("tasks", "line"),
    [
        ([compute(server="3")], "task f0, field server: must be a whole number (got '3')"),
        ([compute(server=True)], "task f0, field server: must be a whole number (got True)"),
        (
            [compute(server=3.0)],
            "task f0, field server: must be a whole number without a decimal point (got 3.0)",
        ),
        ([compute(server=-1)], "task f0, field server: must be from 0 to 99,999 (got -1)"),
        (
            [compute(server=10**30)],
            f"task f0, field server: must be from 0 to 99,999 (got {10**30})",
        ),
        ([compute(device=4096)], "task f0, field device: must be from 0 to 4,095 (got 4096)"),
        ([compute(duration_ms="3")], "task f0, field duration_ms: must be a number (got '3')"),
        ([compute(duration_ms=True)], "task f0, field duration_ms: must be a number (got True)"),
        ([compute(duration_ms=-1)], "task f0, field duration_ms: must be at least 0 (got -1)"),
        (
            [compute(duration_ms=1e13)],
            "task f0, field duration_ms: must be at most 1e+12 (got 10000000000000)",
        ),
        (
            [compute(duration_ms=float("nan"))],
            "task f0, field duration_ms: must be a finite number (got nan)",
        ),
        (
            [compute(), compute(id="f1", duration_ms=float("nan"))],
            "task f1, field duration_ms: must be a finite number (got nan)",
        ),
        (
            [compute(duration_ms=float("inf"))],
            "task f0, field duration_ms: must be a finite number (got inf)",
        ),
        (
            [compute(duration_ms=10**400)],
            "task f0, field duration_ms: must be a number (got a number of more than 60 digits)",
        ),
        (
            [compute(duration_ms=None)],
            "task f0, field duration_ms: is missing (forward needs server, duration_ms)",
        ),
        (
            [compute(kind="update", server=None)],
            "task f0, field server: is missing (update needs server, duration_ms)",
        ),
        (
            [compute(duration=1)],
            "task f0, field duration: unknown key (did you mean 'duration_ms'?)",
        ),
        (
            [compute(size_bytes=1)],
            "task f0, field size_bytes: is not a key of kind forward (it has server, duration_ms, device)",
        ),
        (
            [{"id": "j", "kind": "barrier", "duration_ms": 1}],
            "task j, field duration_ms: is not a key of kind barrier (it has none of its own)",
        ),
        (
            [{"id": "j", "kind": "barrier", "duration_ms": float("nan")}],
            "task j, field duration_ms: is not a key of kind barrier (it has none of its own)",
        ),
        (
            [compute(kind="fwd")],
            f"task f0, field kind: must be one of {', '.join(KINDS)} (got 'fwd')",
        ),
        ([{"id": "a"}], "task a, field kind: is missing"),
        ([{"kind": "barrier"}], "entry 1, field id: is missing"),
        ([compute(), 5], "entry 2: must be an object (got 5)"),
        ([compute(), [[]]], "entry 2: must be an object (got a list of 1 entries)"),
        ([compute(id=7)], "entry 1, field id: must be text in quotes (got 7)"),
        (
            [compute(id="")],
            "entry 1, field id: must be 1 to 200 printable characters without spaces (got '')",
        ),
        (
            [compute(id="a b")],
            "entry 1, field id: must be 1 to 200 printable characters without spaces (got 'a b')",
        ),
        (
            [compute(id="a\nb")],
            r"entry 1, field id: must be 1 to 200 printable characters without spaces (got 'a\nb')",
        ),
        (
            [compute(), compute()],
            "task f0 (entry 2), field id: is used twice (the first time by entry 1)",
        ),
        (
            [compute(dependencies=["f9"])],
            "task f0, field dependencies: names 'f9', which is not the id of a task",
        ),
        ([compute(dependencies=["f0"])], "task f0, field dependencies: names the task itself"),
        (
            [compute(), transfer(dependencies=["f0", "f0"])],
            "task c, field dependencies: names f0 twice",
        ),
        (
            [compute(dependencies="f1")],
            "task f0, field dependencies: must be a list in brackets (got 'f1')",
        ),
        (
            [compute(dependencies=["a", 1])],
            "task f0, field dependencies[1]: must be text in quotes (got 1)",
        ),
        (
            [compute(dependencies=["c"]), transfer(dependencies=["f0"])],
            "task f0, field dependencies: is in a cycle of 2 tasks, each waiting for the one before: f0 -> c -> f0",
        ),
        (
            [compute(id="start"), *ring, compute(id="end", dependencies=["f3"])],
            "task f0, field dependencies: is in a cycle of 20 tasks, each waiting for the one before: "
            "f0 -> f1 -> f2 -> f3 -> f4 -> f5 -> ... 13 more ... -> f19 -> f0",
        ),
        (
            [transfer(size_bytes="drop")],
            "task c, field size_bytes: is missing (communication needs size_bytes or duration_ms)",
        ),
        (
            [transfer(duration_ms=1)],
            "task c, field duration_ms: must not stand beside size_bytes: give one of the two",
        ),
        (
            [transfer(destination=0)],
            "task c, field destination: must differ from source (both are server 0); "
            "use a barrier for mere ordering",
        ),
        (
            [transfer(source="drop")],
            "task c, field source: is missing (communication needs source, destination)",
        ),
        ([transfer(size_bytes=-8)], "task c, field size_bytes: must be at least 0 (got -8)"),
        (
            [transfer(server=1)],
            "task c, field server: is not a key of kind communication "
            "(it has source, destination, size_bytes, duration_ms)",
        ),
        ([collective(members=[])], "task g, field members: must name at least one server"),
        (
            [collective(members=[0, 1, 0])],
            "task g, field members: must name each server once (server 0 is there twice)",
        ),
        (
            [collective(members=[0, -1])],
            "task g, field members[1]: must be from 0 to 99,999 (got -1)",
        ),
        (
            [collective(members=[0, "1"])],
            "task g, field members[1]: must be a whole number (got '1')",
        ),
        (
            [collective(root=0)],
            "task g, field root: is not a key of kind all_reduce (it has members, size_bytes)",
        ),
        (
            [collective("broadcast")],
            "task g, field root: is missing (broadcast needs members, size_bytes, root)",
        ),
        ([collective("broadcast", root=2)], "task g, field root: must be one of members (got 2)"),
        (
            [compute(parallelism="zero")],
            "task f0, field parallelism: must be one of dp, fsdp, tp, sp, pp, cp, ep, mp (got 'zero')",
        ),
        (
            [compute(group="")],
            "task f0, field group: must be 1 to 200 printable characters without outer spaces (got '')",
        ),
        (
            [compute(microbatch=-1)],
            "task f0, field microbatch: must be from 0 to 1,000,000,000 (got -1)",
        ),
        ([], "field tasks: must hold at least one task"),
    ],
)
def test_a_bad_task_is_named_with_its_field(tasks: list[Any], line: str) -> None:
    assert line_of(file_of(*tasks)) == f", {line}"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", ": is empty"),
        (b" \r\n\t", ": is empty"),
        (gzip.compress(b"", mtime=0), ": is empty"),
        (b"[]", ": must be one JSON object in braces (got a list of 0 entries)"),
        (
            b"{",
            ": is not valid JSON at line 1, column 2: Expecting property name enclosed in double quotes",
        ),
        (b'{"tasks":\n [1, 2,}', ": is not valid JSON at line 2, column 8: Expecting value"),
        (
            b"[" * 10_000 + b"]" * 10_000,
            ": is nested too deeply (a file of ours has at most four levels)",
        ),
        (
            b'{"tasks": ' + b'[{"a":' * 10_000,
            ": is nested too deeply (a file of ours has at most four levels)",
        ),
        (b'{"name": ' + b"9" * 5000 + b"}", ": is not valid JSON: a number has too many digits"),
        (
            b'{"name": "a",\n "tasks": ["caf\xe9"]}',
            ": is not UTF-8 text (byte 0xE9 in line 2); save it as UTF-8",
        ),
        ('{"name": "a"}'.encode("utf-16"), ": is UTF-16 text; save it as UTF-8"),
        (b"\x00\x01\x02", ": is not valid JSON at line 1, column 1: Expecting value"),
        (b'{"version": 1}', ", field format: must be 'topox-taskgraph' (is missing)"),
        (
            file_of(compute(), format="topox-cluster"),
            ", field format: must be 'topox-taskgraph' (got 'topox-cluster': this is a cluster file)",
        ),
        (
            file_of(compute(), format=[[]]),
            ", field format: must be 'topox-taskgraph' (got a list of 1 entries)",
        ),
        (
            file_of(compute(), version=2),
            ", field version: 2 is newer than this program, which reads up to version 1; update the program",
        ),
        (
            file_of(compute(), version=True),
            ", field version: must be the whole number 1 (got True)",
        ),
        (
            file_of(compute(), comment="x"),
            ", field comment: unknown key (expected one of format, version, name, tasks)",
        ),
        (
            file_of(compute(), name=3),
            ", field name: must be printable text of at most 200 characters (got 3)",
        ),
        (file_of(tasks={}), ", field tasks: must be a list of tasks in brackets (got an object)"),
        (
            b'{"format": "topox-taskgraph", "version": 1}',
            ", field tasks: must be a list of tasks in brackets (is missing)",
        ),
        (
            b'{"tasks": [{"id": "a", "server": 1, "server": 2}]}',
            ", task a, field server: is given twice in one object",
        ),
        (b'{"tasks": [], "tasks": []}', ", field tasks: is given twice in one object"),
        (file_of(compute()) + b" {}", ": is not valid JSON at line 1, column 135: Extra data"),
    ],
)
def test_a_bad_file_is_told_as_a_whole(data: bytes, line: str) -> None:
    assert line_of(data) == line


def test_the_first_error_is_told_and_the_others_are_counted() -> None:
    assert line_of(
        file_of(compute(server="x"), compute(server="y"), transfer(source=None, size_bytes=[]))
    ) == (", task f0, field server: must be a whole number (got 'x') (and 3 more)")
    assert line_of(file_of(compute(server=-1, duration_ms=-1), transfer(destination=0))).endswith(
        "(got -1) (and 2 more)"
    )
    assert line_of(
        file_of(compute(dependencies=["x"]), transfer(dependencies=["y", "z"]))
    ).endswith("a task (and 1 more)")


HEAD = "id,kind,server,duration_ms,source,destination,size_bytes,members,dependencies\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HEAD, ", field tasks: must hold at least one task"),
        (
            "one,two\n1,2\n",
            ", first row: must name the columns, separated by comma, semicolon or tab, such as "
            "id,kind,server,duration_ms,dependencies (got 'one,two')",
        ),
        ("id,server\nf0,1\n", ", first row, field kind: is missing: every table needs this column"),
        ("id,kind,Server\n", ", first row, field Server: unknown column (did you mean 'server'?)"),
        ("id,kind,id\n", ", first row, field id: is the name of two columns"),
        (
            HEAD + "f0,forward,zero,1\n",
            ", row 2, field server: must be a whole number (got 'zero')",
        ),
        (HEAD + "f0,forward,1_0,1\n", ", row 2, field server: must be a whole number (got '1_0')"),
        (HEAD + "f0,forward,0.5,1\n", ", row 2, field server: must be a whole number (got '0.5')"),
        (
            HEAD + 'f0,forward,0,"1,5"\n',
            ", row 2, field duration_ms: must be a number with a decimal point, such as 3.5 (got '1,5')",
        ),
        (
            HEAD + "f0,forward,0,NaN\n",
            ", row 2, field duration_ms: must be a finite number (got 'NaN')",
        ),
        (
            HEAD + "f0,forward,0,-inf\n",
            ", row 2, field duration_ms: must be a finite number (got '-inf')",
        ),
        (
            HEAD + "f0,forward,0,1e999\n",
            ", row 2 (task f0), field duration_ms: must be a finite number (got inf)",
        ),
        (
            HEAD + "\n\nf0,forward,0,-1\n",
            ", row 4 (task f0), field duration_ms: must be at least 0 (got -1)",
        ),
        (
            HEAD + "f0,forward,0,1,,,,,,,9\n",
            ", row 2: has '9' in cell 11, for which the first row names no column",
        ),
        (
            HEAD + "f0,forward,0,1\nf0,forward,0,1\n",
            ", row 3 (task f0), field id: is used twice (the first time by row 2)",
        ),
        (
            HEAD + 'f0,forward,0,1,,,,,"a,b"\n',
            ", row 2 (task f0), field dependencies: names 'a,b', which is not the id of a task; ids in a cell are separated by spaces",
        ),
        (
            HEAD + "g,all_reduce,,,,,1,0;1\n",
            ", row 2, field members: must be whole numbers separated by spaces (got '0;1')",
        ),
        (
            HEAD + "a b,forward,0,1\n",
            ", row 2, field id: must be 1 to 200 printable characters without spaces (got 'a b')",
        ),
        (HEAD + ",forward,0,1\n", ", row 2, field id: is missing"),
        (HEAD + "f0,,0,1\n", ", row 2, field kind: is missing"),
        (
            HEAD + "f0,forward,x,y\nf1,forward,z,1\n",
            ", row 2, field server: must be a whole number (got 'x') (and 2 more)",
        ),
        (HEAD + 'f0,"forward\n', ", row 2: cannot be read as a table: unexpected end of data"),
        (
            HEAD.replace(",", ";") + "c;communication;;;0;1;524,288\n",
            ", row 2, field size_bytes: must be a number without separators, such as 67108864 (got '524,288')",
        ),
        (
            HEAD.replace(",", ";") + "f0;forward;0;1.234,5\n",
            ", row 2, field duration_ms: must be a number such as 3.5 or 3,5 (got '1.234,5')",
        ),
        (
            HEAD + "a,barrier,,,,,,,b\nb,barrier,,,,,,,a\n",
            ", row 2 (task a), field dependencies: is in a cycle of 2 tasks, each waiting for the one before: a -> b -> a",
        ),
    ],
)
def test_a_bad_row_is_named_as_the_spreadsheet_counts(text: str, line: str) -> None:
    assert line_of(text.encode(), "g.csv") == line


def test_damaged_gzip_is_told() -> None:
    whole = gzip.compress(file_of(compute()))
    for cut in range(2, len(whole)):
        assert "is damaged or cut short as gzip" in line_of(whole[:cut], "g.json.gz")
    assert line_of(b"{}", "g.json.gz") == (
        ": is not gzip data although its name ends in .gz (rename it if it was unpacked on its way)"
    )


def test_a_file_name_cannot_break_the_line_and_says_the_type() -> None:
    assert refusal(load_graph, b"", "a\nb.json") == "'a\\nb.json': is empty"
    assert line_of(b"PK\x03\x04", "g.xlsx").startswith(
        ": is of no type we read (expected .json, .csv or .fbuf"
    )


def test_an_error_keeps_the_name_of_the_file_that_it_is_in() -> None:
    """A study that names a graph tells of the graph what is wrong there."""
    with pytest.raises(InputError, match=r"^outer\.json: is wrong$"), errors_in_file("outer.json"):
        raise InputError("is wrong")
    with pytest.raises(InputError, match=r"^inner\.json: is wrong$"), errors_in_file("outer.json"):
        raise InputError("is wrong", file="inner.json")


def test_more_tasks_dependencies_or_members_than_the_limit_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = [
        Task("a", "barrier"),
        Task("b", "barrier", dependencies=("a",)),
        Task("c", "barrier", dependencies=("a", "b")),
        Task("g", "all_reduce", members=(0, 1, 2), size_bytes=1.0),
    ]
    for limit, most, what in (
        ("MAX_TASKS", 3, "tasks"),
        ("MAX_DEPENDENCIES", 2, "dependencies"),
        ("MAX_MEMBERS", 2, "members"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(validation, limit, most)
            with pytest.raises(
                InputError, match=f"^g: holds more than the {most} {what} a graph may have$"
            ):
                validated("g", tasks, "g")


@pytest.mark.parametrize("depth", [5, 100, 500, 900, 950, 980, 990, 1000, 3000])
def test_nesting_of_any_depth_and_place_is_told(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    for data in (
        deep,
        b'{"format": ' + deep + b"}",
        file_of(compute(server="@")).replace(b'"@"', deep),
        file_of("@").replace(b'"@"', deep),
        file_of(compute(), name="@").replace(b'"@"', deep),
    ):
        assert line_of(data)


def test_five_thousand_tasks_in_a_row_are_no_recursion() -> None:
    chain = [
        Task(f"t{i}", "barrier", dependencies=(f"t{i - 1}",) if i else ()) for i in range(5_000)
    ]
    assert len(validated("chain", chain[::-1]).tasks) == 5_000
    assert "is in a cycle of 5000 tasks" in refusal(
        validated, "ring", [Task("t0", "barrier", dependencies=("t4999",)), *chain[1:]]
    )


SOUND = {
    "g.json": file_of(compute(), transfer(dependencies=["f0"]), collective(dependencies=["c"])),
    "g.csv": (
        HEAD + "f0,forward,0,1\nc,communication,,,0,1,8,,f0\ng,all_reduce,,,,,8,0 1,f0 c\n"
    ).encode(),
}


@examples(150)
@given(st.sampled_from(sorted(SOUND)), st.data())
def test_a_damaged_file_gives_a_graph_or_a_clear_line(file: str, data: st.DataObject) -> None:
    sound = SOUND[file]
    at = data.draw(st.integers(0, len(sound)))
    until = data.draw(st.integers(at, min(at + 6, len(sound))))
    damaged = sound[:at] + data.draw(st.binary(max_size=4)) + sound[until:]
    try:
        graph = load_graph(damaged, file)
    except InputError as error:
        assert str(error).isprintable() and error.file == file
    else:
        dump = dump_graph_json if file == "g.json" else dump_graph_csv
        assert load_graph(dump(graph), file).digest == graph.digest


GOOD = {
    "format": "topox-cluster",
    "version": 1,
    "servers": 16,
    "ports_per_server": 4,
    "switches": 4,
    "ports_per_switch": 16,
    "port_gbps": 100,
}
counts = st.integers(1, 4096)


def cluster_bytes(without: str = "", **changes: Any) -> bytes:
    return json.dumps({k: v for k, v in {**GOOD, **changes}.items() if k != without}).encode()


@examples(40)
@given(
    st.builds(
        Cluster,
        servers=counts,
        ports_per_server=counts,
        switches=counts,
        ports_per_switch=counts,
        port_gbps=st.floats(1e-3, 1e6),
        slot_ms=st.floats(1e-6, 1e6),
        reconfiguration_ms=st.floats(0, 1e3),
        duplex=st.sampled_from(["full", "half"]),
        latency_us=st.floats(0, 1e6),
        devices_per_server=counts,
        name=st.sampled_from(["", "16 servers", "Übung 3 – „Schalter“"]),
    )
)
def test_any_cluster_survives_its_file(cluster: Cluster) -> None:
    written = dump_cluster(cluster)
    assert load_cluster(written, "c.json") == cluster
    assert load_cluster(gzip.compress(written), "c.json.gz").digest == cluster.digest


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (cluster_bytes(servers="16"), "field servers: must be a whole number (got '16')"),
        (cluster_bytes(servers=True), "field servers: must be a whole number (got True)"),
        (
            cluster_bytes(servers=16.0),
            "field servers: must be a whole number without a decimal point (got 16.0)",
        ),
        (cluster_bytes(servers=0), "field servers: must be from 1 to 100,000 (got 0)"),
        (cluster_bytes(switches=-4), "field switches: must be from 1 to 4,096 (got -4)"),
        (
            cluster_bytes(port_gbps=float("nan")),
            "field port_gbps: must be a finite number (got nan)",
        ),
        (
            cluster_bytes(port_gbps=float("inf")),
            "field port_gbps: must be a finite number (got inf)",
        ),
        (cluster_bytes(port_gbps=0), "field port_gbps: must be from 1e-06 to 1e+12 (got 0)"),
        (cluster_bytes(slot_ms=None), "field slot_ms: must be a number (got None)"),
        (cluster_bytes(latency_us=-1), "field latency_us: must be at least 0 (got -1)"),
        (
            cluster_bytes(duplex="simplex"),
            "field duplex: must be one of full, half (got 'simplex')",
        ),
        (
            cluster_bytes(name="a\nb"),
            r"field name: must be printable text of at most 200 characters (got 'a\nb')",
        ),
        (cluster_bytes(port_gbit=1), "field port_gbit: unknown key (did you mean 'port_gbps'?)"),
        (
            cluster_bytes(servers="16", port_gbps="100"),
            "field servers: must be a whole number (got '16')",
        ),
        (
            cluster_bytes(version=2),
            "field version: 2 is newer than this program, which reads up to version 1; update the program",
        ),
        (cluster_bytes(version=0), "field version: must be 1 (got 0)"),
        (cluster_bytes(version="1"), "field version: must be the whole number 1 (got '1')"),
        (
            cluster_bytes(format="topox-taskgraph"),
            "field format: must be 'topox-cluster' (got 'topox-taskgraph': this is a taskgraph file)",
        ),
        (cluster_bytes(without="format"), "field format: must be 'topox-cluster' (is missing)"),
        (
            cluster_bytes(without="version"),
            "field version: must be the whole number 1 (is missing)",
        ),
        (cluster_bytes(without="port_gbps"), "field port_gbps: is missing"),
        (
            b'{"format": "topox-cluster", "servers": 1, "servers": 2}',
            "field servers: is given twice in one object",
        ),
        (b"[1, 2]", "must be one JSON object in braces (got a list of 2 entries)"),
        (b"", "is empty"),
    ],
)
def test_a_bad_cluster_is_told_in_one_line(data: bytes, line: str) -> None:
    assert line_of(data, "c.json", load_cluster)[2:] == line
