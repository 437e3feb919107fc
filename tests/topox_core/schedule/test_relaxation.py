"""A relaxed reading of the model never needs longer than a stricter one on the same clock."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from tests.conftest import examples
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.scheduled import run_scheduled, schedule
from topox_core.model.cluster import Cluster
from topox_core.papers.table_iii_runs import TABLE, lowered
from topox_core.runs.stopping import never
from topox_core.schedule.feasibility import violation
from topox_core.schedule.planner import prepare
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import carried_over, length_ms

# Circuits that stay, circuits a pair shares, devices that are free, any switch a server likes.
Reading = tuple[bool, bool, bool, bool]
READINGS: tuple[Reading, ...] = (
    *((True, False, free, False) for free in (False, True)),
    *((False, s, f, a) for s in (False, True) for f in (False, True) for a in (False, True)),
)


def settings_of(reading: Reading, **changes: Any) -> Settings:
    stays, shared, free, any_switch = reading
    return Settings.of(
        circuits="continuous" if stays else "per-slot",
        share_circuits=shared,
        exclusive_devices=not free,
        any_port=any_switch,
        **{"clock": "slots", "engine": "list"} | changes,
    )


def is_relaxed(one: Reading, other: Reading, ports_on_switch: int) -> bool:
    """Whether every schedule of ``other`` is one of ``one``, choice by choice."""
    stays, shared, free, any_switch = one
    if stays > other[0] or shared < other[1] or free < other[2]:
        return False
    # With several ports on a switch, any switch a server likes means one port of them.
    return ports_on_switch == 1 or any_switch <= other[3]


def on(ports: int, switches: int, **keys: Any) -> Cluster:
    return cluster(
        4, ports_per_server=ports, switches=switches, ports_per_switch=4 * ports // switches, **keys
    )


@examples(3)
@given(
    st.integers(0, 10_000), st.sampled_from([(1, 1), (2, 2), (4, 2)]), st.sampled_from([1.0, 0.5])
)
@example(16, (1, 1), 1.0)  # by the rules alone shared circuits take 19 ms, circuits of one's own 18
def test_no_reading_needs_longer_than_a_stricter_one(
    seed: int, ports: tuple[int, int], slot_ms: float
) -> None:
    of, task_graph = on(*ports, slot_ms=slot_ms), random_graph(seed, tasks=14)
    time_ms: dict[Reading, float] = {}
    for reading in READINGS:
        result = schedule(task_graph, of, settings_of(reading))
        assert check(task_graph, of, to_record(result)).ok
        assert result.makespan_ms is not None
        time_ms[reading] = result.makespan_ms
    for one, other in permutations(READINGS, 2):
        if is_relaxed(one, other, ports[0] // ports[1]):
            assert time_ms[one] <= time_ms[other] + 1e-9, (one, other)


@pytest.mark.parametrize(("strict_ticks", "own_ticks"), [(2, 4), (4, 2), (2, 3)])
def test_a_plan_of_a_stricter_reading_keeps_its_slots_on_another_tick(
    strict_ticks: int, own_ticks: int
) -> None:
    strict, own = (
        prepare(random_graph(3, tasks=14), on(1, 1), settings_of(reading, tick=1 / ticks))
        for reading, ticks in (
            ((False, False, False, False), strict_ticks),
            ((False, False, True, False), own_ticks),
        )
    )
    plan = strict.planner.best_plan()
    finer, carried = carried_over(plan, strict, own)
    assert violation(finer.reduction.problem, carried.start) is None
    assert length_ms(finer, carried) <= length_ms(strict, plan)


def test_the_printed_model_needs_no_longer_than_the_physical_on_row_5_of_table_iii() -> None:
    row, graph = TABLE[4], lowered(2, 8, on_network=False)
    times = [
        run_scheduled(FabricRequest(graph, row.cluster, of), never).iteration_ms
        for of in (
            Settings.of("paper", engine="list", lowering=graph.lowering),
            Settings.of(circuits="per-slot", engine="list", lowering=graph.lowering),
            Settings.of(clock="slots", engine="list", lowering=graph.lowering),
        )
    ]
    assert times == sorted(times)
    assert times[0] <= 29.24
