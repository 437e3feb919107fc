"""Step lists of collective algorithms, by which every member ends with what it is owed, and the messages made of them."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from msgspec import structs

from topox_core.errors import InputError
from topox_core.model.collective_steps import (
    ALGORITHMS,
    Shape,
    StepList,
    divisor_near_root,
    is_power_of_two,
    step_list,
)
from topox_core.model.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import TransferGraph

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

SIZE = 9_000_000.0


def single(kind: str, n: int, size: float = SIZE) -> TaskGraph:
    """One collective of n members after two tasks."""
    root = 0 if kind == "broadcast" else None
    before = [Task(f"in{i}", "forward", (), server=i, duration_ms=1.0) for i in range(2)]
    members = tuple(range(n))
    task = Task("c", kind, ("in0", "in1"), members=members, size_bytes=size, root=root)
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
        assert dict(sent) == pytest.approx(dict.fromkeys(range(n), bytes_a_member * SIZE))


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
    with pytest.raises(InputError, match=problem):
        lower(single(kind, n), Lowering(algorithm=words))
