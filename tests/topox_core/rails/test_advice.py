"""Tables 1 and 2 of the photonic rails paper as an adviser."""

from __future__ import annotations

import pytest

from topox_core.rails.advice import (
    TABLE_2,
    advise,
    communications,
    constraints,
)
from topox_core.rails.presets import PRESETS, Preset

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


BIG = PRESETS["llama3.1-405b-16384"]
THREE = PRESETS["llama3.1-405b-16384-cp"]


@pytest.mark.parametrize(
    ("job", "ports", "latency_us", "number", "limits", "why"),
    [
        (PRESETS["mixtral-8x7b"], 6, 1.0, 1, True, "all to all among 8"),
        (PRESETS["mixtral-8x7b"], 6, 1.0, 2, False, ""),
        # Long rings of small shards are bound by their steps.
        (BIG, 2, 1.0, 1, False, ""),
        (BIG, 2, 100.0, 1, True, ""),
        # The degree of 6 that the paper names for three parallelisms.
        (THREE, 2, 1.0, 2, True, ""),
        (THREE, 4, 1.0, 2, True, "6 neighbours"),
        (THREE, 6, 1.0, 2, False, ""),
        # The paper's example of the third: DP and PP on four 100 Gbit/s ports.
        (PAPER, 4, 1.0, 3, True, "50% of the NIC"),
        (PAPER.changed(pipeline=1, data=4), 4, 1.0, 3, False, ""),
    ],
)
def test_the_constraints_c1_to_c3_of_the_paper(
    job: Preset, ports: int, latency_us: float, number: int, limits: bool, why: str
) -> None:
    found = constraints(job, ports, latency_us)[number - 1]
    assert found.limits is limits
    assert why in found.why
