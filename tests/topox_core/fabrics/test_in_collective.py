"""Switching inside collectives: uneven parts of messages, carried out by the provisioned controller."""

from __future__ import annotations

import pytest

from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare, run_one
from topox_core.fabrics.one_collective import OneCollective
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.scheduled import schedule
from topox_core.model.algorithm_choice import Chooser
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower, transfers_of
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import FREE, Settings

BYTES_PER_MS = 100e6 / 8  # of a port of 100 Gbit/s


def alone(kind: str, n: int, tensor_ms: float = 8.0) -> TaskGraph:
    size = tensor_ms * BYTES_PER_MS
    return TaskGraph("one", (Task("c", kind, (), members=tuple(range(n)), size_bytes=size),))


def cluster(n: int, ports: int, delay_ms: float, latency_ms: float = 0.0) -> Cluster:
    of = Cluster(n, ports, 1, n * ports, 100.0)
    return of.changed(reconfiguration_ms=delay_ms, latency_us=1000 * latency_ms)


@pytest.mark.parametrize(
    ("kind", "n", "ports", "delay_ms", "latency_ms", "expected_ms"),
    [
        ("all_to_all", 8, 2, 0.8, 0.0, 6.9),
        ("all_to_all", 8, 4, 0.8, 0.0, 4 + 1 / 3),
        ("all_to_all", 8, 4, 1.6, 0.0, 5.6),
        ("all_reduce", 8, 4, 0.4, 0.5, 8.083333),
    ],
)
def test_uneven_parts_hide_set_ups_that_whole_and_equal_parts_do_not(
    kind: str, n: int, ports: int, delay_ms: float, latency_ms: float, expected_ms: float
) -> None:
    """What the controller carries out is what the model of one collective says."""
    of = cluster(n, ports, delay_ms, latency_ms)
    settings = Settings.of(engine="list", free=FREE, lowering=Lowering(steps="stepwise"))
    names = ["provisioned", "in_collective", "scheduled"]
    runs = compare(alone(kind, n), of, settings, names)
    assert runs["in_collective"].iteration_ms == pytest.approx(expected_ms, abs=1e-4)
    assert runs["provisioned"].iteration_ms > expected_ms + 0.01
    assert runs["scheduled"].iteration_ms <= runs["in_collective"].iteration_ms * (1 + 1e-9)
    assert "uneven parts" in runs["in_collective"].chosen_words
    result = runs["scheduled"].result
    assert result is not None
    report = check(alone(kind, n), of, to_record(result))
    assert report.ok, report.lines()


@pytest.mark.parametrize(
    ("kind", "word", "n"),
    [
        ("all_to_all", "pairwise[3:1|1|1:1|2:1]", 5),
        ("all_reduce", "halving_doubling[2:1|1|1:1:1|1]", 4),
        ("all_gather", "bruck[5:3|1|1:1]", 6),
        ("all_reduce", "two_level(2)[1:1|1|1|2:1]", 4),
    ],
)
def test_a_message_in_uneven_parts_moves_its_bytes_and_waits_for_all_parts_before(
    kind: str, word: str, n: int
) -> None:
    graph, of = alone(kind, n), Cluster(n, 2, 2, n, 100.0)
    uneven = lower(graph, Lowering(algorithm={kind: word}))
    whole = lower(graph, Lowering(algorithm={kind: word.partition("[")[0]}))
    assert uneven.size_bytes[uneven.kind == 1].sum() == pytest.approx(
        whole.size_bytes[whole.kind == 1].sum()
    )
    assert len(uneven.lowered) == transfers_of(graph, uneven.lowering)
    settings = Settings.of(engine="list", lowering=uneven.lowering)
    report = check(graph, of, to_record(schedule(graph, of, settings)))
    assert report.ok, report.lines()
    one = run_one("in_collective", FabricRequest(uneven, of, settings))
    assert (
        one.iteration_ms == run_one("provisioned", FabricRequest(uneven, of, settings)).iteration_ms
    )


def test_parts_are_whole_numbers_the_largest_first() -> None:
    shares = OneCollective("all_to_all", "pairwise", 8, 4, 8.0, 0.0, 0.8).split().shares()
    assert len(shares) == 7
    assert all(step == tuple(sorted(step, reverse=True)) and min(step) > 0 for step in shares)
    word = f"pairwise[{'|'.join(':'.join(map(str, step)) for step in shares)}]"
    choice = Chooser.of(Lowering(algorithm={"all_to_all": word})).choice("all_to_all", 8, 1.0)
    assert choice is not None
    assert choice.shares == shares
    assert str(choice) == word


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("pairwise[1:0|1]", "uneven parts are above 0"),
        ("pairwise[1|1]", "has 3 steps (uneven parts for 2)"),
        ("pairwise[]", "must be one of"),
        ("pairwise[1:x|1]", "must be one of"),
        ("default[1]", "uneven parts are above 0"),
    ],
)
def test_parts_that_fit_no_steps_are_refused_in_one_line(word: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        lower(alone("all_to_all", 4), Lowering(algorithm={"all_to_all": word}))
    assert words in str(error.value)
