"""Tables 1 and 2 of the photonic rails paper as an adviser."""

from __future__ import annotations

import pytest

from topox_core.errors import InputError
from topox_core.rails.advice import (
    TABLE_1,
    TABLE_2,
    advise,
    communications,
    constraints,
    rail_parallelisms,
)
from topox_core.rails.presets import PRESETS

PAPER = PRESETS["llama3-8b-perlmutter"]


@pytest.mark.parametrize(
    ("parameters", "gpus", "strategies"),
    [
        (8e9, 1, ("TP", "DP")),
        (8e9, 8, ("TP", "DP")),
        (70e9, 9, ("TP & PP", "TP & DP", "DP")),
        (70e9, 512, ("TP & PP", "TP & DP", "DP")),
        (70e9, 513, ("DP & PP", "DP & TP")),
        (70e9, 1024, ("DP & PP", "DP & TP")),
        (405e9, 1025, ("TP, DP & PP",)),
        (405e9, 16_384, ("TP, DP & PP",)),
        (10e9, 16, ("TP & PP", "TP & DP", "DP")),
    ],
)
def test_table_1_row_by_row(parameters: float, gpus: int, strategies: tuple[str, ...]) -> None:
    advice = advise(parameters, gpus)
    assert advice.practice is not None
    assert advice.practice.strategies == strategies


@pytest.mark.parametrize(
    ("parameters", "gpus", "what"),
    [(8e9, 16, "small model on more than 8"), (70e9, 8, "large model on 8")],
)
def test_where_the_table_has_no_row_the_advice_says_so(
    parameters: float, gpus: int, what: str
) -> None:
    advice = advise(parameters, gpus)
    assert advice.practice is None
    assert what in advice.note


def test_every_large_model_above_8_gpus_has_exactly_one_row() -> None:
    for gpus in (9, 100, 512, 513, 1024, 1025, 10**6):
        rows = [
            row
            for row in TABLE_1
            if row.model == "large" and row.more_than < gpus <= (row.up_to or gpus)
        ]
        assert len(rows) == 1


@pytest.mark.parametrize(
    ("parameters", "gpus", "field"),
    [(0, 8, "parameters"), (float("nan"), 8, "parameters"), (1e9, 0, "gpus"), (1e9, True, "gpus")],
)
def test_numbers_out_of_range_are_one_line(parameters: float, gpus: int, field: str) -> None:
    with pytest.raises(InputError, match=f"settings, field {field}: must be"):
        advise(parameters, gpus)


def test_table_2_says_what_the_built_traffic_does() -> None:
    rows = {row.key: row for row in TABLE_2}
    assert [row.key for row in TABLE_2 if not row.on_rail] == ["tp", "tp_sp"]
    assert rows["fsdp"].collective == "AllGather, ReduceScatter"
    names = {
        "all_gather": "AllGather",
        "reduce_scatter": "ReduceScatter",
        "all_reduce": "AllReduce",
        "all_to_all": "AllToAll",
        "send": "Send/Recv",
    }
    for job in PRESETS.values():
        for one in communications(job):
            # The table of the paper has no tied tables, whose two ends a pipeline's circuit joins.
            tied = job.shape.tied and one.traffic.when == "after the gradients"
            assert tied or names[one.traffic.operation] in one.parallelism.collective
            assert one.iteration_bytes == one.traffic.wire_bytes * one.traffic.times


def test_the_parallelisms_on_the_rail() -> None:
    assert rail_parallelisms(PAPER) == {"fsdp": 2, "pp": 2}
    assert rail_parallelisms(PRESETS["mixtral-8x7b"]) == {"fsdp": 8, "pp": 4, "ep": 8}
    assert rail_parallelisms(PRESETS["llama3.1-405b-16384-cp"]) == {"fsdp": 128, "pp": 16, "cp": 16}


def test_experts_cannot_exchange_on_a_ring() -> None:
    rings, dimensions, _ = constraints(PRESETS["mixtral-8x7b"], nic_ports=6)
    assert rings.limits
    assert "all to all among 8" in rings.why
    assert not dimensions.limits


def test_three_rings_need_six_neighbours() -> None:
    """The degree of 6 that the paper names for three parallelisms."""
    job = PRESETS["llama3.1-405b-16384-cp"]
    for ports, limits in ((2, True), (4, True), (6, False)):
        assert constraints(job, ports)[1].limits is limits
    assert "6 neighbours" in constraints(job, 4)[1].why


def test_four_ports_for_two_parallelisms_halve_the_nic() -> None:
    """The paper's example of constraint C3: DP and PP on four 100 Gbit/s ports."""
    assert "50% of the NIC" in constraints(PAPER, 4)[2].why
    alone = PAPER.changed(pipeline=1, data=4)
    assert not constraints(alone, 4)[2].limits


def test_long_rings_of_small_shards_are_bound_by_their_steps() -> None:
    job = PRESETS["llama3.1-405b-16384"]
    assert not constraints(job, latency_us=1.0)[0].limits
    assert constraints(job, latency_us=100.0)[0].limits
    assert not constraints(job, latency_us=0.0)[0].limits


def test_a_ring_of_two_takes_one_step() -> None:
    assert constraints(PAPER)[0].why.startswith("FSDP: a ring of 2 takes 1 step (")
    assert "takes 15 steps (" in constraints(PRESETS["llama3.1-405b-2048"])[0].why


def test_a_nic_without_ports_is_refused() -> None:
    with pytest.raises(InputError, match="field nic_ports"):
        constraints(PAPER, 0)
    with pytest.raises(InputError, match="field latency_us"):
        constraints(PAPER, 2, -1.0)
