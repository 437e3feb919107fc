"""Step lists of collective algorithms: every member ends with what the collective owes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from topox_core.model.collective_steps import (
    ALGORITHMS,
    Shape,
    StepList,
    divisor_near_root,
    is_power_of_two,
    step_list,
)

State = list[dict[int, Counter[int]]]


def cases(most: int = 17) -> Iterator[tuple[str, str, Shape]]:
    """Every algorithm for 2 to ``most`` members, all divisors as groups, three roots, several chunks."""
    for kind, algorithms in ALGORITHMS.items():
        for name, algorithm in algorithms.items():
            for n in range(2, most + 1):
                if algorithm.power_of_two and not is_power_of_two(n):
                    continue
                parameters = [1]
                if name == "two_level":
                    parameters = [m for m in range(1, n + 1) if n % m == 0]
                roots = sorted({0, 1, n - 1}) if kind == "broadcast" else [0]
                for parameter in parameters:
                    for root in roots:
                        if name == "chain":
                            parameter = 1 + (n + root) % 5
                        yield kind, name, Shape(n, root, parameter)


def run(steps: StepList, state: State) -> None:
    """Carry the messages out on multisets of contributors; a sender must hold what it sends."""
    for step in steps.steps:
        carried = [{b: state[one.source][b].copy() for b in one.blocks} for one in step]
        for one, blocks in zip(step, carried, strict=True):
            for block, contributors in blocks.items():
                held = state[one.destination].get(block, Counter())
                state[one.destination][block] = held + contributors if one.reduces else contributors


def test_every_member_ends_with_each_contribution_exactly_once() -> None:
    number = 0
    for kind, name, shape in cases():
        number += 1
        n, root, _ = shape
        steps = step_list(kind, name, shape)
        blocks = range(steps.blocks)
        every = Counter(range(n))
        state: State
        if kind in ("all_reduce", "reduce_scatter"):
            state = [{b: Counter([i]) for b in blocks} for i in range(n)]
            owed = [
                dict.fromkeys([i] if kind == "reduce_scatter" else blocks, every) for i in range(n)
            ]
        elif kind == "all_gather":
            state = [{i: Counter([i])} for i in range(n)]
            owed = [{b: Counter([b]) for b in blocks} for _ in range(n)]
        elif kind == "broadcast":
            state = [{b: Counter([root]) for b in blocks} if i == root else {} for i in range(n)]
            owed = [{b: Counter([root]) for b in blocks} for _ in range(n)]
        else:
            state = [{i * n + j: Counter([i]) for j in range(n)} for i in range(n)]
            owed = [{j * n + i: Counter([j]) for j in range(n)} for i in range(n)]
        run(steps, state)
        for i in range(n):
            assert {b: state[i].get(b) for b in owed[i]} == owed[i], (kind, name, shape, i)
    assert number >= 461


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
