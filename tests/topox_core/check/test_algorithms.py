"""The checker knows every algorithm from its own formulas: right results pass, slips are named."""

from collections.abc import Callable
from typing import Any

import pytest

from topox_core.check.checker import check
from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.collective_steps import ALGORITHMS
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings

CLUSTER = Cluster(8, 2, 2, 8, 100.0)
Record = dict[str, Any]


def graph_of(kind: str, n: int) -> TaskGraph:
    root = 1 if kind == "broadcast" else None
    task = Task("c", kind, ("in",), members=tuple(range(n)), size_bytes=9e7, root=root)
    return TaskGraph("one", (Task("in", "forward", (), server=0, duration_ms=1.0), task))


def result_of(kind: str, words: dict[str, str], n: int, **more: int) -> Record:
    settings = Settings.of(engine="list", lowering=Lowering(algorithm=words, **more))
    return to_record(schedule(graph_of(kind, n), CLUSTER, settings))


def faults(kind: str, n: int, record: Record) -> list[str]:
    return [
        violation.message
        for violation in check(graph_of(kind, n), CLUSTER, record).violations
        if violation.constraint == "collectives move their bytes"
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, algorithms in ALGORITHMS.items() for name in algorithms],
)
def test_every_algorithm_passes(kind: str, name: str) -> None:
    sizes = (4, 8) if ALGORITHMS[kind][name].power_of_two else (2, 6)
    for n, more in zip(sizes, ({}, {"parts": 2, "rings": 2}), strict=True):
        record = result_of(kind, {kind: name}, n, **more)
        report = check(graph_of(kind, n), CLUSTER, record)
        assert report.ok, report.lines()


@pytest.mark.parametrize("words", [{}, {"all_reduce": "ring"}])
@pytest.mark.parametrize("steps", ["fluid", "stepwise"])
def test_parallel_circuits_that_stay_carry_parallel_rings(
    words: dict[str, str], steps: str
) -> None:
    lowering, graph = Lowering(algorithm=words, steps=steps), graph_of("all_reduce", 2)
    settings = Settings.of(engine="list", switching="fixed", lowering=lowering)
    record = to_record(schedule(graph, CLUSTER, settings))
    ids = [one["id"] for one in record["transfers"]]
    assert len(set(ids)) == len(ids)
    report = check(graph, CLUSTER, record)
    assert report.ok, report.lines()


def heavier(transfers: list[Record]) -> None:
    transfers[0]["size_bytes"] *= 1.5


def elsewhere(transfers: list[Record]) -> None:
    taken = {transfers[0]["source"], transfers[0]["destination"]}
    transfers[0]["destination"] = next(i for i in range(8) if i not in taken)


def hasty(transfers: list[Record]) -> None:
    for transfer in transfers:
        transfer["dependencies"] = ["in"]


@pytest.mark.parametrize("slip", [heavier, elsewhere, hasty])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("all_reduce", "halving_doubling"),
        ("all_reduce", "two_level(4)"),
        ("all_gather", "bruck"),
        ("broadcast", "tree"),
        ("all_to_all", "bruck"),
    ],
)
def test_a_slip_in_bytes_peers_or_waits_is_found(
    kind: str, name: str, slip: Callable[[list[Record]], None]
) -> None:
    record = result_of(kind, {kind: name}, 8)
    slip(record["transfers"])
    found = faults(kind, 8, record)
    assert len(found) == 1
    assert ("a wait is missing" in found[0]) == (slip is hasty)


def test_the_algorithm_of_the_settings_is_the_one_checked() -> None:
    record = result_of("all_reduce", {"all_reduce:8:9e+07": "tree"}, 8)
    assert faults("all_reduce", 8, record) == []
    record["settings"]["algorithm"] = {"all_reduce": "halving_doubling"}
    assert "halving_doubling moves" in faults("all_reduce", 8, record)[0]
    record["settings"]["algorithm"] = {}
    assert faults("all_reduce", 8, record)
