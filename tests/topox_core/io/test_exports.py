"""Files for other tools: tables, the cross-connect program, a Perfetto trace."""

import csv
import io
import json

from topox_core.io.exports import (
    cross_connects,
    cross_connects_csv,
    cross_connects_json,
    tasks_csv,
)
from topox_core.io.tables import as_meant, harmless, harmless_on_screen, table_bytes
from topox_core.io.task_graph_file import dump_graph_csv, load_graph
from topox_core.io.task_graph_rules import validated
from topox_core.model.task_graph import Task


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
    switches = json.loads(cross_connects_json(pipeline))["switches"]
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
    tasks = [Task("=A1", "barrier"), Task("'@x", "barrier", ("=A1",))]
    graph = validated("g", [*tasks, Task("-7", "barrier", ("'@x", "=A1"))])
    written = dump_graph_csv(graph)
    assert b"\n=" not in written
    assert load_graph(written, "g.csv").tasks == graph.tasks
