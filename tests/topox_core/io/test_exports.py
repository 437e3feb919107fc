"""Files for other tools: tables, the cross-connect program, a Perfetto trace."""

import csv
import io
import json
from collections import defaultdict
from itertools import pairwise

from tests.topox_core.conftest import build
from topox_core.io.exports import (
    cross_connects,
    cross_connects_csv,
    cross_connects_json,
    tasks_csv,
)
from topox_core.io.perfetto import perfetto_trace
from topox_core.io.tables import as_meant, harmless, harmless_on_screen, table_bytes
from topox_core.io.task_graph_file import dump_graph_csv, load_graph
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task


def slices(execution):
    return [
        event
        for event in json.loads(perfetto_trace(execution, "an iteration"))["traceEvents"]
        if event["ph"] == "X"
    ]


def overlaps(execution):
    lanes = defaultdict(list)
    for event in slices(execution):
        lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    return [
        (a, b) for rows in lanes.values() for a, b in pairwise(sorted(rows)) if b[0] < a[1] - 1e-9
    ]


def test_every_task_is_a_row_with_its_place_and_time(pipeline):
    rows = list(csv.DictReader(io.StringIO(tasks_csv(pipeline).decode())))
    assert [row["id"] for row in rows][:2] == ["f0s0", "a0"]
    assert len(rows) == 14
    g1 = next(row for row in rows if row["id"] == "g1")
    assert (g1["source"], g1["destination"], g1["switch"], g1["start_ms"], g1["critical"]) == (
        "1",
        "0",
        "1",
        "33.0",
        "yes",
    )


def test_the_program_connects_each_circuit_once_however_many_transfers_use_it(pipeline):
    program = cross_connects(pipeline)
    assert [row["transfers"] for row in program] == ["a0 a1", "b0 b1", "g2", "g1"]
    turned = program[-1]
    assert (turned["switch"], turned["setup_ms"], turned["usable_ms"], turned["until_ms"]) == (
        1,
        31,
        33,
        36,
    )
    assert turned["slot"] == 31


def test_no_port_is_in_two_connections_at_once(pipeline):
    for side in ("source", "destination"):
        by_port = defaultdict(list)
        for row in cross_connects(pipeline):
            by_port[row["switch"], row[side], row[f"{side}_port"]].append(
                (row["setup_ms"], row["until_ms"])
            )
        for held in by_port.values():
            held.sort()
            assert all(a[1] <= b[0] for a, b in pairwise(held))


def test_program_files_agree(pipeline):
    rows = list(csv.DictReader(io.StringIO(cross_connects_csv(pipeline).decode())))
    program = json.loads(cross_connects_json(pipeline))
    assert program["format"] == "topox-cross-connects"
    assert sum(len(switch["connections"]) for switch in program["switches"]) == len(rows) == 4
    assert program["switches"][0]["connections"][0]["transfers"] == ["a0", "a1"]


def test_the_trace_shows_every_task_and_no_thread_does_two_things_at_once(pipeline):
    events = slices(pipeline)
    assert {"f0s0", "B2", "g1"} <= {event["name"] for event in events}
    dark = [event for event in events if event["cat"] == "reconfiguring"]
    assert {event["dur"] for event in dark} == {2000.0}  # 2 ms in microseconds
    assert overlaps(pipeline) == []


def test_tasks_that_share_a_device_get_threads_of_their_own():
    cluster = Cluster(servers=1, ports_per_server=1, switches=1, ports_per_switch=1, port_gbps=1)
    both = build(
        [
            ("a", "forward", "", 0, 0, 6, []),
            ("b", "forward", "", 0, 3, 10, []),
            ("c", "forward", "", 0, 6, 9, []),
        ],
        [],
        cluster,
    )
    assert overlaps(both) == []
    assert len({event["tid"] for event in slices(both)}) == 2


def test_a_large_trace_has_no_overlap(crowd):
    assert overlaps(crowd) == []


FORMULAS = ("=1+1", "@SUM(1+1)", "+cmd|' /C calc'!A0", "-2+3", "\tx", "＝1", "'=1", "''@a")


def test_no_cell_of_a_table_is_a_formula_and_numbers_stay_numbers():
    rows = [[text, -1.5, "-3", "+2e5", "a=b"] for text in FORMULAS]
    for row in csv.reader(io.StringIO(table_bytes(["=a", "b", "c", "d", "e"], rows).decode())):
        assert row[0].startswith("'")
        assert row[1:] in (["-1.5", "-3", "+2e5", "a=b"], ["b", "c", "d", "e"])
    for text in (*FORMULAS, "-3", "'", "'a", "a", ""):
        assert as_meant(harmless(text)) == text


def test_a_table_on_screen_keeps_its_differences_and_defuses_the_rest():
    for text in ("+3 %", "-1.5 ms", "-", "-12"):
        assert harmless_on_screen(text) == text
    for text in FORMULAS:
        assert harmless_on_screen(text) == harmless(text) != text


def test_tasks_named_like_formulas_come_back_from_a_table():
    tasks = [
        Task("=A1", "barrier"),
        Task("'@x", "barrier", ("=A1",)),
        Task("-7", "barrier", ("'@x", "=A1")),
    ]
    graph = validated("g", tasks)
    written = dump_graph_csv(graph)
    assert b"\n=" not in written
    assert load_graph(written, "g.csv").tasks == graph.tasks
