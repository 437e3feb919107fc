"""One rank for all, and calls bundled until a graph is small enough."""

from collections import Counter

import pytest

from tests.topox_core.traces.made import JOBS, Call, Kernel, Op, Style, Wait, recordings
from tests.topox_core.traces.reading_back import imported
from topox_core.traces.importing import Imported
from topox_core.traces.run_graph import at_speed, replay_ms
from topox_core.traces.source import Refused


def equal_ranks(calls: int = 6) -> dict[int, list[Op]]:
    """Four ranks of one pace in groups of neighbours, whose calls are waited for at once, and groups across."""
    program: dict[int, list[Op]] = {}
    for rank in range(4):
        pair, across = (rank // 2 * 2, rank // 2 * 2 + 1), (rank % 2, rank % 2 + 2)
        ops = program[rank] = []
        for k in range(calls):
            tensor = Call(f"t{k}.{pair}", "all_reduce", pair, 8_000_000, 20, f"t{pair}", "tp")
            data = Call(f"d{k}.{across}", "all_reduce", across, 20_000_000, 21, f"d{across}", "dp")
            ops += [Kernel(300.0), tensor, Wait(tensor.key), Kernel(100.0), data]
        ops += [*(Wait(f"d{k}.{across}") for k in range(calls)), Kernel(200.0, "update")]
    return program


def shape(found: Imported) -> Counter[tuple[object, ...]]:
    return Counter(
        (
            t.kind,
            t.server,
            t.members,
            t.size_bytes,
            round(t.duration_ms or 0.0, 4),
            len(t.dependencies),
        )
        for t in found.graph.tasks
    )


def test_one_of_equal_ranks_gives_the_graph_of_all() -> None:
    files = recordings(equal_ranks(), 100.0, Style(steps=2))
    all_ranks = imported(files)
    one = imported({"run_rank2.json": files["run_rank2.json"]}, symmetry=True)
    assert shape(one) == shape(all_ranks)
    for gbps in (10.0, 100.0, 1000.0):
        assert replay_ms(one.run, at_speed(gbps)) == pytest.approx(
            replay_ms(all_ranks.run, at_speed(gbps)), rel=1e-6
        )


def test_one_rank_cannot_stand_for_a_pipeline_or_irregular_groups() -> None:
    files = recordings(JOBS["pipeline"](), 100.0)
    with pytest.raises(Refused, match="sends to rank 2: one rank cannot stand for a pipeline"):
        imported({"run_rank0.json": files["run_rank0.json"]}, symmetry=True)
    odd = {
        r: [Kernel(100.0), Call("x", "all_reduce", (0, 3, 4), 1_000), Wait("x"), Kernel(9.0)]
        for r in (0, 3, 4)
    }
    data = recordings(odd, 100.0, Style(steps=1, world=6))["run_rank0.json"]
    with pytest.raises(
        Refused, match=r"\[0, 3, 4\] has no stride: the other ranks' groups cannot be made"
    ):
        imported({"run_rank0.json": data}, symmetry=True)


def small_calls(calls: int = 60) -> dict[int, list[Op]]:
    """Many small calls of four ranks in a row, which nobody waits for before the last."""
    group = (0, 1, 2, 3)
    calls_of = [Call(f"c{k}", "all_reduce", group, 1_000_000) for k in range(calls)]
    return {
        rank: [
            Kernel(2_000.0),
            *(
                op
                for k in range(calls)
                for op in (Kernel(30.0 + 5 * ((rank + k) % 3)), calls_of[k])
            ),
            *(Wait(one.key) for one in calls_of),
            Kernel(500.0),
        ]
        for rank in group
    }


def test_calls_are_bundled_until_there_are_few_enough() -> None:
    files = recordings(small_calls(), 100.0, Style(steps=2))
    whole = imported(files)
    few = imported(files, max_tasks=100)
    assert len(whole.graph.tasks) > 250 and len(few.graph.tasks) <= 100
    assert few.report["size_bytes"] == whole.report["size_bytes"]
    told = few.report["coarsening"]
    bundled = told["nodes_before"] - told["nodes_after"]
    assert 0 < told["theta_ms"] <= 0.01 * few.report["recorded_ms"]
    for gbps in (25.0, 100.0, 400.0):
        before, after = (replay_ms(one.run, at_speed(gbps)) for one in (whole, few))
        assert abs(after - before) <= bundled * told["theta_ms"]


def test_a_bundle_is_not_made_where_somebody_waits_in_between() -> None:
    files = recordings(equal_ranks(), 100.0, Style(steps=2))
    with pytest.raises(Refused):
        # Tensor calls are waited for at once: no bundle of those is the same iteration.
        imported(files, max_tasks=30)
