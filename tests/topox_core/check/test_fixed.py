"""The checker on circuits that never change and on every algorithm: right results hold, each slip is named."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.refusal import refusal
from tests.topox_core.check.broken_schedules import (
    Made,
    Record,
    both,
    broken,
    chosen,
    cluster,
    compute,
    made,
    put,
    row,
    transfer,
)
from tests.topox_core.small_graphs import collective
from topox_core.check.checker import check
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.collective_steps import ALGORITHMS
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings


def standing(switch: int, source: int, destination: int) -> Record:
    return {
        "switch": switch,
        "source": source,
        "destination": destination,
        "setup_ms": 0.0,
        "start_ms": 0.0,
        "end_ms": 1.5,
    }


def shared_ring(**keys: Any) -> Made:
    """One transfer alone on 0 -> 1, and one to 2, half of it directly and half over 1.

    Fair shares by hand: half speed on the shared link until the half over 1 is through at 1 ms,
    then full speed; the direct half needs 0.5 ms.
    """
    tasks = [compute("f", 2, 0.5, "b"), transfer("a", 0, 1, 1.0), transfer("b", 0, 2, 1.0)]
    rows = [standing(0, 0, 1), standing(0, 1, 2), standing(1, 0, 2)]
    over_1 = {"servers": [0, 1, 2], "share": 0.5, "rates": [[0.0, 1.0, 50.0]]}
    direct = {"servers": [0, 2], "share": 0.5, "rates": [[0.0, 0.5, 100.0]]}
    transfers = [
        {
            "id": "a",
            "paths": [{"servers": [0, 1], "share": 1.0}],
            "rates": [[0.0, 1.0, 50.0], [1.0, 1.5, 100.0]],
        },
        {"id": "b", "paths": [over_1, direct], "rates": [[0.0, 0.5, 150.0], [0.5, 1.0, 50.0]]},
    ]
    times = {"a": (0.0, 1.5), "b": (0.0, 1.0), "f": (1.0, 1.5)}
    example = made(tasks, cluster(3, 2, 2, 3, **keys), times, rows, transfers)
    example.record.update(clock="continuous", chosen={"switching": "fixed"})
    return example


def rates_of(name: str, *rates: list[float]) -> Callable[[Record], None]:
    return lambda record: row(record, name, "transfers").update(rates=list(rates))


def path_of_b(number: int, **values: Any) -> Callable[[Record], None]:
    return lambda record: row(record, "b", "transfers")["paths"][number].update(values)


def circuits(*rows: Record) -> Callable[[Record], None]:
    return lambda record: record.update(circuits=list(rows))


def test_transfers_that_share_and_forward_hold() -> None:
    report = shared_ring().checked()
    assert report.lines() == ()
    assert {"2", "3", "5", "6", "7", "8", "9", "10", "physical"} <= report.equations.keys()


BROKEN_FIXED: dict[str, tuple[Callable[[Record], None], set[str]]] = {
    "a circuit that is torn down early": (
        lambda record: record["circuits"][2].update(end_ms=1.0),
        {"fixed circuits stand"},
    ),
    "a circuit of a server that is not there": (
        circuits(standing(0, 0, 1), standing(0, 1, 2), standing(1, 0, 2), standing(1, 1, 7)),
        {"fixed circuits stand"},
    ),
    "a hop without a circuit": (
        circuits(standing(0, 0, 1), standing(1, 0, 2)),
        {"bytes of every transfer"},
    ),
    "two circuits on one port": (
        circuits(standing(0, 0, 1), standing(0, 1, 2), standing(0, 0, 2)),
        {"in, one peer", "out, one peer", "port bookings"},
    ),
    "a switch that is not there": (
        circuits(standing(0, 0, 1), standing(0, 1, 2), standing(5, 0, 2)),
        {"switch capacity"},
    ),
    "fewer bytes than the transfer has": (
        rates_of("a", [0.0, 1.5, 50.0]),
        {"bytes of every transfer"},
    ),
    "faster than the circuits": (
        rates_of("a", [0.0, 0.5, 0.0], [0.5, 1.5, 100.0]),
        {"speed of fixed circuits"},
    ),
    "bytes before the start": (put("b", start_ms=0.25), {"bytes of every transfer"}),
    "bytes after the end": (put("a", end_ms=1.25), {"bytes of every transfer"}),
    "shares that are not the whole": (path_of_b(1, share=0.25), {"bytes of every transfer"}),
    "a path to another server": (
        path_of_b(1, servers=[0, 1]),
        {"bytes of every transfer", "speed of fixed circuits"},
    ),
    "rates that are not the sum of the paths'": (
        rates_of("b", [0.0, 1.0, 100.0]),
        {"bytes of every transfer"},
    ),
    "no path at all": (
        lambda record: record["transfers"].pop(),
        {"bytes of every transfer"},
    ),
    "a successor that does not wait": (put("f", start_ms=0.5, end_ms=1.0), {"precedence"}),
}


@pytest.mark.parametrize("name", BROKEN_FIXED)
def test_whatever_is_broken_is_named(name: str) -> None:
    change, constraints = BROKEN_FIXED[name]
    report = shared_ring().checked(change)
    assert broken(report) - {"makespan, bound and gap"} == constraints, report.lines()


def test_half_duplex_servers_send_and_receive_on_the_same_ports() -> None:
    """Server 1 takes in 100 Gbit/s and passes 50 on: within its two ports, but not within one."""
    ring = shared_ring(duplex="half")
    assert ring.checked().ok
    on_one_port = both(
        chosen(cluster={"ports_per_server": 1, "switches": 1}),
        lambda record: record["circuits"][2].update(switch=0),
    )
    assert "speed of fixed circuits" in broken(ring.checked(on_one_port))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (rates_of("a", [0.0, 1.0]), "transfer a, field rates[0]: must have 3 to 3"),
        (rates_of("a", [0.0, float("inf"), 1.0]), "transfer a, field rates: must be"),
        (rates_of("a", [0.0, "1", 1.0]), "transfer a, field rates[0][1]: must be a numbe"),
        (path_of_b(0, servers=[0]), "field paths[0].servers: must have at least 2"),
        (path_of_b(0, servers=[0, -1]), "transfer b, field paths[0].servers[1]: must be"),
        (path_of_b(0, share="half"), "transfer b, field paths[0].share: must be a numbe"),
        (path_of_b(0, hops=1), "transfer b, field paths[0].hops: unknown key"),
        (path_of_b(0, rates=3), "transfer b, field paths[0].rates: must be a list"),
        (
            lambda record: row(record, "a", "transfers").pop("rates"),
            "transfer a, field rates: is missing",
        ),
    ],
)
def test_paths_and_rates_of_the_wrong_kind_are_refused_in_one_line(
    change: Callable[[Record], object], words: str
) -> None:
    assert words in refusal(shared_ring().checked, change, file="r.schedule.json")


CLUSTER = Cluster(8, 2, 2, 8, 100.0)
Given = dict[str, Any]


def graph_of(kind: str, n: int) -> TaskGraph:
    task = collective(kind, n, 9e7, "c", "in", root=1)
    return TaskGraph("one", (compute("in", 0, 1.0), task))


def result_of(kind: str, words: dict[str, str], n: int, **more: int) -> Given:
    settings = Settings.of(engine="list", lowering=Lowering(algorithm=words, **more))
    return to_record(schedule(graph_of(kind, n), CLUSTER, settings))


def faults(kind: str, n: int, record: Given) -> list[str]:
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


def heavier(transfers: list[Given]) -> None:
    transfers[0]["size_bytes"] *= 1.5


def elsewhere(transfers: list[Given]) -> None:
    taken = {transfers[0]["source"], transfers[0]["destination"]}
    transfers[0]["destination"] = next(i for i in range(8) if i not in taken)


def hasty(transfers: list[Given]) -> None:
    for one in transfers:
        one["dependencies"] = ["in"]


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
    kind: str, name: str, slip: Callable[[list[Given]], None]
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
