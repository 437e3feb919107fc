"""Collectives become the transfers that move what the collective must, in the order it must."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from topox_core.errors import InputError
from topox_core.io.task_graph_rules import validated
from topox_core.model.lowering import MAX_TRANSFERS, distinct_rings, lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.passes import topological_order
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import BARRIER, TRANSFER, TransferGraph

SIZE = 1_000_003.0


def collective(kind: str, members: int, size: float = SIZE, **keys: object) -> TaskGraph:
    """One collective between a compute task on every member and one after it."""
    everyone = tuple(range(members))
    before, after = (
        [Task(f"{way}{s}", "forward", waits, server=s, duration_ms=1.0) for s in everyone]
        for way, waits in (("in", ()), ("out", ("c",)))
    )
    keys = {"root": 0 if kind == "broadcast" else None} | keys
    waits = tuple(task.id for task in before)
    task = Task("c", kind, waits, members=everyone, size_bytes=size, **keys)
    return validated("one collective", [*before, task, *after])


def ancestors(graph: TransferGraph) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(len(graph))]
    for i in topological_order(graph.pred_ptr, *graph.successors):
        for p in graph.pred_idx[graph.pred_ptr[i] : graph.pred_ptr[i + 1]].tolist():
            found[i] |= found[p] | {p}
    return found


def bytes_between(graph: TransferGraph) -> dict[tuple[int, int], float]:
    moved = Counter[tuple[int, int]]()
    for t in graph.lowered:
        moved[t.source, t.destination] += t.size_bytes
    return moved


@pytest.mark.parametrize(
    ("members", "strides"),
    [(1, ()), (2, (1,)), (12, (1, 5, 7, 11)), (7, (1, 2, 3, 4, 5, 6))],
)
def test_a_group_has_as_many_rings_as_numbers_coprime_to_its_size(
    members: int, strides: tuple[int, ...]
) -> None:
    assert distinct_rings(members) == strides


@given(
    n=st.integers(2, 20),
    rings=st.integers(1, 25),
    kind=st.sampled_from(["all_reduce", "all_gather", "reduce_scatter"]),
    steps=st.sampled_from(["fluid", "stepwise"]),
)
def test_every_member_of_a_ring_collective_sends_and_receives_its_share(
    n: int, rings: int, kind: str, steps: str
) -> None:
    graph = lower(collective(kind, n), Lowering(rings=rings, steps=steps))
    moved = np.zeros((n, n))
    for pair, size in bytes_between(graph).items():
        moved[pair] = size
    share = (2 if kind == "all_reduce" else 1) * (n - 1) / n * SIZE
    for way in (0, 1):
        assert moved.sum(axis=way) == pytest.approx(np.full(n, share), rel=1e-12)
    strides = {(t.destination - t.source) % n for t in graph.lowered}
    assert strides == set(distinct_rings(n)[:rings])


def test_ring_transfers_follow_the_members_order_not_the_servers() -> None:
    task = Task("c", "all_reduce", (), members=(7, 2, 5), size_bytes=3e6)
    rows = [(t.id, t.source, t.destination) for t in lower(TaskGraph("order", (task,))).lowered]
    assert rows == [("c/r0/0", 7, 2), ("c/r0/1", 2, 5), ("c/r0/2", 5, 7)]


@pytest.mark.parametrize(
    ("members", "rings", "strides", "used"),
    [(16, 2, (5, 1, 7), [5, 1]), (3, 4, (1, 4, 7, 2), [1, 2])],  # 4 and 7 are the ring of 1 again
)
def test_given_strides_are_used_in_their_order_each_ring_once(
    members: int, rings: int, strides: tuple[int, ...], used: list[int]
) -> None:
    graph = lower(collective("all_reduce", members), Lowering(rings=rings, strides=strides))
    assert [t.destination for t in graph.lowered if t.source == 0] == used


def test_a_stride_that_closes_too_early_is_named_with_its_group() -> None:
    with pytest.raises(
        InputError,
        match=r"all_reduce c \(group dp3\), field strides: stride 4 makes no ring of 6 members",
    ):
        lower(collective("all_reduce", 6, group="dp3"), Lowering(rings=1, strides=(1, 4)))


def test_an_all_to_all_moves_an_equal_share_between_every_ordered_pair() -> None:
    graph = lower(collective("all_to_all", 5), Lowering(rings=3))
    assert bytes_between(graph) == {(i, j): SIZE / 5 for i in range(5) for j in range(5) if i != j}
    assert "c/3-1" in graph.ids


@given(n=st.integers(2, 14), root=st.integers(0, 13), rings=st.integers(1, 6))
def test_a_broadcast_chain_starts_at_the_root_and_brings_everyone_the_whole_tensor(
    n: int, root: int, rings: int
) -> None:
    root %= n
    graph = lower(collective("broadcast", n, root=root), Lowering(rings=rings))
    received = Counter[int]()
    for (_, destination), size in bytes_between(graph).items():
        received[destination] += size
    assert received == pytest.approx({s: SIZE for s in range(n) if s != root})


@given(n=st.integers(2, 20), root=st.integers(0, 19))
def test_a_broadcast_tree_forwards_only_what_has_arrived_in_logarithmic_depth(
    n: int, root: int
) -> None:
    root %= n
    graph = lower(collective("broadcast", n, root=root), Lowering(broadcast="tree"))
    has = {root: 0}
    for t in graph.lowered:
        own = [d for d in t.dependencies if d.startswith("c/")]
        assert own == ([] if t.source == root else [f"c/r0/{t.source}"])
        has[t.destination] = has[t.source] + 1
        assert t.size_bytes == SIZE
    assert sorted(has) == list(range(n))
    assert max(has.values()) <= math.ceil(math.log2(n))


@pytest.mark.parametrize(
    "kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]
)
def test_a_collective_of_one_member_is_nothing_but_a_join(kind: str) -> None:
    graph = lower(collective(kind, 1))
    assert (graph.lowered, graph.ids, graph.kind[1]) == ((), ("in0", "c", "out0"), BARRIER)


def test_all_reduces_off_the_network_are_joins_and_other_collectives_stay() -> None:
    after = Task("x", "all_to_all", ("c",), members=(0, 1), size_bytes=2.0)
    tasks = (*collective("all_reduce", 4).tasks, after)
    graph = lower(TaskGraph("off", tasks), Lowering(all_reduce_on_network=False))
    assert [t.collective for t in graph.lowered] == ["x", "x"]


@given(
    kind=st.sampled_from(["all_reduce", "all_gather", "all_to_all", "broadcast"]),
    n=st.integers(1, 6),
    rings=st.integers(1, 3),
    steps=st.sampled_from(["fluid", "stepwise"]),
    broadcast=st.sampled_from(["chain", "tree"]),
)
def test_all_transfers_come_after_what_the_collective_waits_for_and_before_what_waits_for_it(
    kind: str, n: int, rings: int, steps: str, broadcast: str
) -> None:
    graph = lower(collective(kind, n), Lowering(rings=rings, steps=steps, broadcast=broadcast))
    before = ancestors(graph)
    at = {name: i for i, name in enumerate(graph.ids) if name}
    inputs = {at[f"in{s}"] for s in range(n)}
    transfers = {at[t.id] for t in graph.lowered}
    assert all(inputs <= before[i] and graph.kind[i] == TRANSFER for i in transfers)
    assert all(inputs | transfers | {at["c"]} <= before[at[f"out{s}"]] for s in range(n))


def test_the_edges_around_a_collective_are_linear_in_its_neighbours() -> None:
    n = 40
    graph = lower(collective("all_to_all", n))
    assert len(graph.pred_idx) == n + n * (n - 1) + n * (n - 1) + n
    assert graph.ids.count("") == 1


def test_a_single_dependency_needs_no_entry_barrier() -> None:
    before = Task("a", "forward", (), server=0, duration_ms=1.0)
    gather = Task("c", "all_gather", ("a",), members=(0, 1), size_bytes=8.0)
    assert lower(TaskGraph("one", (before, gather))).ids == ("a", "c/r0/0", "c/r0/1", "c")


def test_lock_steps_wait_for_the_data_of_the_predecessor_and_for_the_own_link() -> None:
    n, stride = 5, 2
    graph = lower(collective("all_reduce", n), Lowering(strides=(stride,), steps="stepwise"))
    at = {t.id: t for t in graph.lowered}
    assert len(at) == n * 2 * (n - 1)
    for step in range(1, 2 * (n - 1)):
        for i in range(n):
            waits = [d for d in at[f"c/r0/s{step}/{i}"].dependencies if d in at]
            assert set(waits) == {f"c/r0/s{step - 1}/{(i - stride) % n}", f"c/r0/s{step - 1}/{i}"}
            assert at[f"c/r0/s{step - 1}/{(i - stride) % n}"].destination == i


def test_a_lowered_id_that_a_task_already_has_is_an_error() -> None:
    tasks = (Task("c", "all_gather", (), members=(0, 1), size_bytes=8.0), Task("c/r0/1", "barrier"))
    with pytest.raises(InputError, match="task c/r0/1, field id"):
        lower(TaskGraph("clash", tasks))


def test_more_transfers_than_the_limit_are_refused_with_their_number() -> None:
    graph = collective("all_reduce", 400)
    words = f"{2 * 400 * 399:,} transfers, more than the limit of {MAX_TRANSFERS:,}"
    with pytest.raises(InputError, match=words):
        lower(graph, Lowering(steps="stepwise"))
    assert len(lower(graph).lowered) == 400


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rings", 0),
        ("rings", True),
        ("strides", (0,)),
        ("steps", "step"),
        ("broadcast", "star"),
        ("parts", 0),
    ],
)
def test_choices_out_of_range_name_their_field(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"settings, field {field}"):
        Lowering(**{field: value})  # type: ignore[arg-type]


def test_the_digest_knows_the_graph_and_every_choice_and_a_graph_is_lowered_once() -> None:
    graph, other = collective("all_reduce", 4), collective("all_reduce", 5)
    choices = [
        Lowering(),
        Lowering(rings=2),
        Lowering(strides=(3,)),
        Lowering(steps="stepwise"),
        Lowering(broadcast="tree"),
        Lowering(all_reduce_on_network=False),
    ]
    assert len({lower(g, choice).digest for g in (graph, other) for choice in choices}) == 12
    assert lower(replace(graph, name="another name")) is lower(graph)
