"""Collectives become the transfers, or the steps of an algorithm, that move what the collective must, in its order."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from tests.refusal import refusal
from topox_core.io.task_graph_rules import validated
from topox_core.model.arrays.passes import topological_order
from topox_core.model.lowering.algorithm_choice import distinct_rings
from topox_core.model.lowering.collective_steps import (
    ALGORITHMS,
    Shape,
    StepList,
    divisor_near_root,
    is_power_of_two,
    step_list,
)
from topox_core.model.lowering.lowering import MAX_TRANSFERS, lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import BARRIER, TRANSFER, TransferGraph

SIZE = 1_000_003.0


def collective(kind: str, members: int, size: float = SIZE, **keys: object) -> TaskGraph:
    """One collective between a compute task on every member and one after it."""
    everyone = tuple(range(members))
    before, after = (
        [
            Task(f"{way}{s}", "forward", dependencies=waits, server=s, duration_ms=1.0)
            for s in everyone
        ]
        for way, waits in (("in", ()), ("out", ("c",)))
    )
    keys = {"root": 0 if kind == "broadcast" else None} | keys
    waits = tuple(task.id for task in before)
    task = Task("c", kind, dependencies=waits, members=everyone, size_bytes=size, **keys)
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
    task = Task("c", "all_reduce", dependencies=(), members=(7, 2, 5), size_bytes=3e6)
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
    assert (
        "all_reduce c (group dp3), field strides: stride 4 makes no ring of 6 members"
        in refusal(
            lower, collective("all_reduce", 6, group="dp3"), Lowering(rings=1, strides=(1, 4))
        )
    )


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
    after = Task("x", "all_to_all", dependencies=("c",), members=(0, 1), size_bytes=2.0)
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
    before = Task("a", "forward", dependencies=(), server=0, duration_ms=1.0)
    gather = Task("c", "all_gather", dependencies=("a",), members=(0, 1), size_bytes=8.0)
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
    tasks = (
        Task("c", "all_gather", dependencies=(), members=(0, 1), size_bytes=8.0),
        Task("c/r0/1", "barrier"),
    )
    assert "task c/r0/1, field id" in refusal(lower, TaskGraph("clash", tasks))


def test_more_transfers_than_the_limit_are_refused_with_their_number() -> None:
    graph = collective("all_reduce", 400)
    words = f"{2 * 400 * 399:,} transfers, more than the limit of {MAX_TRANSFERS:,}"
    assert words in refusal(lower, graph, Lowering(steps="stepwise"))
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
    assert f"settings, field {field}" in refusal(Lowering, **{field: value})


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


Held = dict[int, Counter[int]]


def cases(most: int = 17) -> Iterator[tuple[str, str, Shape]]:
    """Every algorithm for 2 to ``most`` members, all divisors as groups, three roots, several chunks."""
    for kind, algorithms in ALGORITHMS.items():
        for name, algorithm in algorithms.items():
            for n in range(2, most + 1):
                if algorithm.power_of_two and not is_power_of_two(n):
                    continue
                groups = [
                    m for m in range(1, n + 1) if n % m == 0 and (m == 1 or name == "two_level")
                ]
                for parameter, root in product(
                    groups, {0, 1, n - 1} if kind == "broadcast" else {0}
                ):
                    chunks = 1 + (n + root) % 5
                    yield kind, name, Shape(n, root, chunks if name == "chain" else parameter)


def run(steps: StepList, state: list[Held]) -> None:
    """Carry the messages out on multisets of contributors; a sender must hold what it sends."""
    for step in steps.steps:
        carried = [{b: state[one.source][b].copy() for b in one.blocks} for one in step]
        for one, blocks in zip(step, carried, strict=True):
            for block, contributors in blocks.items():
                held = state[one.destination].get(block, Counter())
                state[one.destination][block] = held + contributors if one.reduces else contributors


def held_and_owed(kind: str, shape: Shape, blocks: range, i: int) -> tuple[Held, Held]:
    """Return who has contributed to the blocks of a member, at first and in the end."""
    n, root, _ = shape
    own, tensor = ({b: Counter([giver]) for b in blocks} for giver in (i, root))
    every = Counter(range(n))
    rows_of_all = {i * n + j: Counter([i]) for j in range(n)}
    columns_of_all = {j * n + i: Counter([j]) for j in range(n)}
    return {
        "all_reduce": (own, dict.fromkeys(blocks, every)),
        "reduce_scatter": (own, {i: every}),
        "all_gather": ({i: Counter([i])}, {b: Counter([b]) for b in blocks}),
        "broadcast": (tensor if i == root else {}, tensor),
        "all_to_all": (rows_of_all, columns_of_all),
    }[kind]


def test_every_member_ends_with_each_contribution_exactly_once() -> None:
    every_case = list(cases())
    assert len(every_case) >= 461
    for kind, name, shape in every_case:
        steps = step_list(kind, name, shape)
        pairs = [held_and_owed(kind, shape, range(steps.blocks), i) for i in range(shape.members)]
        state = [dict(held) for held, _ in pairs]
        run(steps, state)
        for i, (_, owed) in enumerate(pairs):
            assert {b: state[i].get(b) for b in owed} == owed, (kind, name, shape, i)


def test_a_message_leaves_after_all_that_its_blocks_are_made_of_and_after_its_senders_last_step() -> (
    None
):
    for kind, name, shape in cases(most=8):
        steps = step_list(kind, name, shape)
        messages, before = steps.messages, []
        for waits in steps.dependencies():
            before.append(set(waits).union(*(before[k] for k in waits)))
        for (q, one), earlier in zip(messages, before, strict=True):
            owed = {
                k
                for k, (p, other) in enumerate(messages)
                if p < q
                and (
                    other.source == one.source
                    or (other.destination == one.source and {*one.blocks} & {*other.blocks})
                )
            }
            assert owed <= earlier, (kind, name, shape, q, one)
            assert all(messages[k][0] < q for k in earlier)


def test_the_size_is_known_before_a_step_list_is_built() -> None:
    for kind, name, shape in cases():
        steps, size = step_list(kind, name, shape), ALGORITHMS[kind][name].size(shape)
        assert size.messages == len(steps.messages), (kind, name, shape)
        moved = sum(len(one.blocks) for _, one in steps.messages)
        waits = sum(map(len, steps.dependencies()))
        assert max(moved, waits) <= size.work, (kind, name, shape)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (4, 2), (6, 2), (8, 2), (12, 3), (16, 4), (17, 1)])
def test_groups_are_as_near_to_a_square_as_the_members_allow(n: int, m: int) -> None:
    assert divisor_near_root(n) == m


# -- lowered ----------------------------------------------------------------------------------------

STEPS_SIZE = 9_000_000.0


def single(kind: str, n: int, size: float = STEPS_SIZE) -> TaskGraph:
    """One collective of n members after two tasks."""
    root = 0 if kind == "broadcast" else None
    before = [
        Task(f"in{i}", "forward", dependencies=(), server=i, duration_ms=1.0) for i in range(2)
    ]
    members = tuple(range(n))
    task = Task("c", kind, dependencies=("in0", "in1"), members=members, size_bytes=size, root=root)
    return TaskGraph("one", (*before, task))


def lowered(kind: str, n: int, name: str, **more: int) -> TransferGraph:
    return lower(single(kind, n), Lowering(algorithm={kind: name}, **more))


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
        assert dict(sent) == pytest.approx(dict.fromkeys(range(n), bytes_a_member * STEPS_SIZE))


def test_ids_name_algorithm_step_and_pair() -> None:
    graph = lowered("all_reduce", 4, "halving_doubling")
    of_0 = {one.id: one.dependencies for one in graph.lowered if one.source == 0}
    steps = ("s0/0-2", "s1/0-1", "s2/0-1", "s3/0-2")
    assert [*of_0] == [f"c/halving_doubling/{one}" for one in steps]
    before = (f"c/halving_doubling/{one}" for one in ("s0/2-0", "s1/1-0", "s1/0-1"))
    assert of_0["c/halving_doubling/s2/0-1"] == ("in0", "in1", *before)


def test_every_chain_of_an_algorithm_ends_with_its_collective() -> None:
    for kind, algorithms in ALGORITHMS.items():
        for name, algorithm in algorithms.items():
            graph = lowered(kind, 8 if algorithm.power_of_two else 6, name)
            ends = np.setdiff1d(np.arange(len(graph)), graph.pred_idx)
            assert [graph.ids[i] for i in ends] == ["c"], (kind, name)


def test_a_ring_step_by_step_is_the_stepwise_lowering_under_other_ids() -> None:
    """Old and new pairs, sizes and waits agree: reduce-scatter then all-gather on two strides."""
    old = lower(single("all_reduce", 5), Lowering(rings=2, steps="stepwise"))
    new = lowered("all_reduce", 5, "ring", rings=2)
    names = {a.id: b.id for a, b in zip(old.lowered, new.lowered, strict=True)}
    for a, b in zip(old.lowered, new.lowered, strict=True):
        assert (a.source, a.destination) == (b.source, b.destination)
        assert a.size_bytes == pytest.approx(b.size_bytes)
        assert {names.get(d, d) for d in a.dependencies} == set(b.dependencies)


def test_parts_can_be_said_for_one_algorithm_or_for_all() -> None:
    own = lower(single("all_to_all", 4), Lowering(algorithm={"all_to_all": "pairwise*2"}))
    assert own.lowered == lowered("all_to_all", 4, "pairwise", parts=2).lowered
    assert own.lowered[0].id == "c/pairwise/s0/0-1/p0"


def test_the_most_specific_key_decides_and_default_stays_the_default() -> None:
    big, small = single("all_reduce", 4, 8e6), single("all_reduce", 4, 8e3)
    words = {"all_reduce": "tree", "all_reduce:4": "direct", "all_reduce:4:8e+03": "default"}
    assert set(lower(big, Lowering(algorithm=words)).algorithm.values()) == {"direct"}
    assert lower(small, Lowering(algorithm=words)).algorithm == {}
    assert lower(single("all_reduce", 5), Lowering(algorithm=words)).algorithm == {2: "tree"}
    assert lower(big, Lowering(algorithm={"broadcast": "flat"})).ids == lower(big).ids


def test_collectives_of_other_bytes_in_one_graph_each_get_their_own_algorithm() -> None:
    big = single("all_reduce", 4, 8e6)
    small = structs.replace(single("all_reduce", 4, 8e3).tasks[-1], id="d")
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
    assert problem in refusal(lower, single(kind, n), Lowering(algorithm=words))
