"""Algorithms chosen for collectives become their messages, with sizes, ids and waits of the step list."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from topox_core.errors import InputError
from topox_core.model.collective_steps import ALGORITHMS
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering, TransferGraph

SIZE = 9_000_000.0


def one(kind: str, n: int, size: float = SIZE) -> TaskGraph:
    """One collective of n members after two tasks."""
    root = 0 if kind == "broadcast" else None
    before = [Task(f"in{i}", "forward", (), server=i, duration_ms=1.0) for i in range(2)]
    waits = tuple(task.id for task in before)
    members = tuple(range(n))
    task = Task("c", kind, waits, members=members, size_bytes=size, root=root)
    return TaskGraph("one", (*before, task))


def lowered(kind: str, n: int, name: str, **more: int) -> TransferGraph:
    return lower(one(kind, n), Lowering(algorithm={kind: name}, **more))


@pytest.mark.parametrize(
    ("kind", "name", "n", "bytes_a_member"),
    [
        ("all_reduce", "ring", 6, 2 * 5 / 6),
        ("all_reduce", "direct", 6, 2 * 5 / 6),
        ("all_reduce", "halving_doubling", 8, 2 * 7 / 8),
        ("all_reduce", "two_level(4)", 8, 2 * 7 / 8),
        ("all_gather", "doubling", 8, 7 / 8),
        ("all_gather", "bruck", 6, 5 / 6),
        ("reduce_scatter", "halving", 8, 7 / 8),
        ("all_to_all", "pairwise", 6, 5 / 6),
        ("all_to_all", "bruck", 8, 3 / 2),
        ("all_to_all", "two_level(4)", 8, 3 * 2 / 8 + 4 / 8),
    ],
)
def test_each_member_sends_what_its_algorithm_owes(
    kind: str, name: str, n: int, bytes_a_member: float
) -> None:
    for parts in (1, 3):
        sent: Counter[int] = Counter()
        for transfer in lowered(kind, n, name, parts=parts).lowered:
            sent[transfer.source] += transfer.size_bytes
        assert dict(sent) == pytest.approx(dict.fromkeys(range(n), bytes_a_member * SIZE))


def test_ids_name_algorithm_step_and_pair() -> None:
    graph = lowered("all_reduce", 4, "halving_doubling")
    assert [one.id for one in graph.lowered if one.source == 0] == [
        "c/halving_doubling/s0/0-2",
        "c/halving_doubling/s1/0-1",
        "c/halving_doubling/s2/0-1",
        "c/halving_doubling/s3/0-2",
    ]
    assert graph.lowered[0].dependencies == ("in0", "in1")
    third = {one.id: one for one in graph.lowered}["c/halving_doubling/s2/0-1"]
    assert third.dependencies == (
        "in0",
        "in1",
        "c/halving_doubling/s0/2-0",
        "c/halving_doubling/s1/1-0",
        "c/halving_doubling/s1/0-1",
    )
    assert graph.algorithm == {2: "halving_doubling"}


def test_every_chain_of_an_algorithm_ends_with_its_collective() -> None:
    for kind, algorithms in ALGORITHMS.items():
        for name, algorithm in algorithms.items():
            graph = lowered(kind, 8 if algorithm.power_of_two else 6, name)
            ends = np.setdiff1d(np.arange(len(graph)), graph.pred_idx)
            assert [graph.ids[i] for i in ends] == ["c"], (kind, name)


def test_a_ring_step_by_step_is_the_stepwise_lowering_under_other_ids() -> None:
    """Old and new pairs, sizes and waits agree: reduce-scatter then all-gather on two strides."""
    old = lower(one("all_reduce", 5), Lowering(rings=2, steps="stepwise"))
    new = lowered("all_reduce", 5, "ring", rings=2)
    names = {a.id: b.id for a, b in zip(old.lowered, new.lowered, strict=True)}
    for a, b in zip(old.lowered, new.lowered, strict=True):
        assert (a.source, a.destination) == (b.source, b.destination)
        assert a.size_bytes == pytest.approx(b.size_bytes)
        assert {names.get(d, d) for d in a.dependencies} == set(b.dependencies)


def test_parts_can_be_said_for_one_algorithm_or_for_all() -> None:
    own = lower(one("all_to_all", 4), Lowering(algorithm={"all_to_all": "pairwise*2"}))
    assert own.lowered == lowered("all_to_all", 4, "pairwise", parts=2).lowered
    assert own.lowered[0].id == "c/pairwise/s0/0-1/p0"


def test_the_most_specific_key_decides_and_default_stays_the_default() -> None:
    big, small = one("all_reduce", 4, 8e6), one("all_reduce", 4, 8e3)
    words = {"all_reduce": "tree", "all_reduce:4": "direct", "all_reduce:4:8e+03": "default"}
    assert set(lower(big, Lowering(algorithm=words)).algorithm.values()) == {"direct"}
    assert lower(small, Lowering(algorithm=words)).algorithm == {}
    assert lower(one("all_reduce", 5), Lowering(algorithm=words)).algorithm == {2: "tree"}
    assert lower(big, Lowering(algorithm={"broadcast": "flat"})).ids == lower(big).ids


def test_collectives_of_other_bytes_in_one_graph_each_get_their_own_algorithm() -> None:
    big = one("all_reduce", 4, 8e6)
    small = replace(one("all_reduce", 4, 8e3).tasks[-1], id="d")
    words = {"all_reduce": "tree", "all_reduce:4:8e+03": "direct"}
    both = lower(TaskGraph("both", (*big.tasks, small)), Lowering(algorithm=words))
    for name, of in (("tree", "c"), ("direct", "d")):
        alone = [(t.source, t.destination) for t in lowered("all_reduce", 4, name).lowered]
        assert [(t.source, t.destination) for t in both.lowered if t.collective == of] == alone


@pytest.mark.parametrize(
    ("kind", "n", "words", "problem"),
    [
        ("all_reduce", 4, {"all_sum": "ring"}, "must be kinds of collective"),
        ("all_reduce", 4, {"all_reduce:x": "ring"}, "must be kinds of collective"),
        ("all_reduce", 4, {"all_reduce": "bruck"}, "all_reduce must be one of default, ring"),
        ("all_reduce", 4, {"all_reduce": "ring(4)"}, "take a number"),
        ("all_reduce", 4, {"all_reduce": "ring*2"}, "rings have none"),
        ("all_reduce", 4, {"all_reduce": "tree*0"}, "at least 1"),
        ("all_reduce", 8, {"all_reduce": "two_level(3)"}, "groups of 3 do not divide 8 members"),
        ("all_gather", 6, {"all_gather": "doubling"}, "needs 2, 4, 8"),
        ("all_reduce", 200, {"all_reduce": "direct"}, "too large for 200 members"),
        ("all_reduce", 400, {"all_reduce": "ring"}, "319,200 transfers, more than the limit"),
        ("broadcast", 1000, {"broadcast": "chain(900)"}, "more than the limit"),
    ],
)
def test_what_cannot_be_lowered_is_refused_in_one_line(
    kind: str, n: int, words: dict[str, str], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        lower(one(kind, n), Lowering(algorithm=words))
