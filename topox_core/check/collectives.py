"""Whether the transfers that a result lists for its collectives move what these must (from sources, destinations, bytes)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from topox_core.check.algorithms import algorithm_of, group_size, owed_bytes, steps_of, unreached
from topox_core.check.plan import COLLECTIVE_CODE, CheckedPlan
from topox_core.check.report import ConstraintReport
from topox_core.check.schedule_file import Schedule
from topox_core.model.task_graph import Task

# Shares of a tensor are quotients; a file may keep nine of their digits.
BYTES_TOLERANCE = 1e-6


@dataclass(frozen=True)
class _Listed:
    """The transfers of one collective, in positions within its group (0..n-1; -1 for no member)."""

    task: Task
    rows: list[int]
    source: list[int]
    destination: list[int]
    size: list[float]

    @property
    def root(self) -> int:
        """Position of the root; 0 where there is none."""
        members, root = self.task.members or (), self.task.root
        return members.index(root) if root in members else 0

    def waits(self, given: Schedule) -> dict[int, list[int]]:
        """Return for each which of the others it waits for, by position in ``rows``."""
        position = {given.transfer[row]: i for i, row in enumerate(self.rows)}
        return {
            i: [position[d] for d in given.transfer_dependencies[row] if d in position]
            for i, row in enumerate(self.rows)
        }


def collectives_move_their_bytes(plan: CheckedPlan) -> ConstraintReport:
    """Lowering: rings that visit every member, pairs, chains and trees, each with its share of the bytes."""
    graph, given = plan.graph, plan.schedule
    own = plan.collective[plan.tasks :]
    collectives = np.flatnonzero(plan.kind[: plan.tasks] == COLLECTIVE_CODE)
    finding = ConstraintReport("collectives move their bytes", "lowering", len(collectives))
    for i in np.flatnonzero(own < 0).tolist():
        finding.add(
            f"transfer {given.transfer[i]}",
            f"belongs to {given.collective[i]}, which is no task of the graph",
        )
    if len(set(given.transfer)) < len(given.transfer):
        for name, times in Counter(given.transfer).items():
            if times > 1:
                finding.add(f"transfer {name}", f"is listed {times} times")
    for name in set(given.transfer) & graph.position.keys():
        finding.add(f"transfer {name}", "has the id of a task of the graph")
    rows: dict[int, list[int]] = {int(c): [] for c in collectives}
    for i, owner in enumerate(own.tolist()):
        if owner in rows:
            rows[owner].append(i)
        elif owner >= 0:
            finding.add(
                f"transfer {given.transfer[i]}",
                f"belongs to {given.collective[i]}, which is no collective",
            )
    source, destination = given.transfer_source.tolist(), given.transfer_destination.tolist()
    size = given.transfer_bytes.tolist()
    for owner, mine in rows.items():
        task = graph.tasks[owner]
        place = {server: i for i, server in enumerate(task.members or ())}
        listed = _Listed(
            task,
            mine,
            [place.get(source[i], -1) for i in mine],
            [place.get(destination[i], -1) for i in mine],
            [size[i] for i in mine],
        )
        for fault in _faults(plan, listed):
            finding.add(f"{task.kind} {task.id}", fault)
    return finding


def _faults(plan: CheckedPlan, listed: _Listed) -> list[str]:
    """Return what is wrong with the transfers of one collective, in words."""
    task, rules = listed.task, plan.rules
    n = len(task.members or ())
    if n < 2 or (task.kind == "all_reduce" and not rules.all_reduce_on_network):
        why = "it has one member" if n < 2 else "all-reduces are kept off the network"
        return [f"lists {len(listed.rows)} transfers, but {why}"] if listed.rows else []
    if not listed.rows:
        return ["lists no transfers"] if (task.size_bytes or 0) > 0 else []
    foreign = [
        i
        for i, (a, b) in enumerate(zip(listed.source, listed.destination, strict=True))
        if min(a, b) < 0 or a == b
    ]
    if foreign:
        return [
            f"transfer {plan.schedule.transfer[listed.rows[foreign[0]]]} does not join two different members"
        ]
    algorithm = algorithm_of(rules.algorithm, task.kind, n, task.size_bytes or 0.0)
    default = {"all_to_all": "direct", "broadcast": rules.broadcast}.get(task.kind, "ring")
    name, parameter = algorithm or (default, 0)
    # One lump a hop stands for all steps of a fluid ring or chain: none waits for another.
    fluid = algorithm is None and not (name == "ring" and rules.steps == "stepwise")
    faults = _bytes_of_pairs(plan, listed, n, name, parameter, fluid)
    if not faults and (not fluid or name == "tree"):
        faults = _data_arrives(plan, listed, n, name)
    return faults + _waits_of_the_collective(plan, listed)


def _bytes_of_pairs(
    plan: CheckedPlan, listed: _Listed, n: int, name: str, parameter: int, fluid: bool
) -> list[str]:
    """Check that every ordered pair moves the bytes that the algorithm owes it.

    On rings and fluid chains transfers of one stride p join each member to the one p places on; coprime to n
    they visit them all, and different strides are different rings, with the same share on each.
    """
    rules, task, root = plan.rules, listed.task, listed.root
    group = parameter or rules.group or group_size(n)
    if name == "two_level" and n % group:
        return [f"groups of {group} do not divide its {n} members"]
    owed = owed_bytes(task.kind, name, n, group, root)
    if owed is None:
        return [f"has the algorithm {name}, which is none of {task.kind}"]
    ends = list(zip(listed.source, listed.destination, strict=True))
    if name == "ring" or (fluid and name == "chain"):
        strides = Counter((b - a) % n for a, b in ends)
        # Fixed circuits carry the rings that were laid for them, whatever their number, and parallel
        # circuits several of one stride (TopoOpt, section 4: all-reduce traffic is mutable).
        if plan.schedule.fixed is None and (
            faults := _ring_count(rules.rings, rules.strides, set(strides), n)
        ):
            return faults
        if wrong := [stride for stride in strides if gcd(stride, n) != 1]:
            return [f"its transfers of stride {wrong[0]} make no single ring of {n} members"]
        owed = {
            ((root + (a - root) * p) % n, (root + (b - root) * p) % n): share
            * count
            / strides.total()
            for (a, b), share in owed.items()
            for p, count in strides.items()
        }
    moved: dict[tuple[int, int], float] = dict.fromkeys(owed, 0.0)
    for pair, size in zip(ends, listed.size, strict=True):
        moved[pair] = moved.get(pair, 0.0) + size
    tensor = task.size_bytes or 0.0
    for pair, size in moved.items():
        due = owed.get(pair, 0.0) * tensor
        if abs(size - due) > BYTES_TOLERANCE * (due or tensor):
            words = f"{_server(listed, pair[0])} -> {_server(listed, pair[1])}"
            return [f"moves {size:.9g} bytes {words}, {name} moves {due:.9g}"]
    return []


def _data_arrives(plan: CheckedPlan, listed: _Listed, n: int, name: str) -> list[str]:
    """Check that what every member must end with can have reached it by transfers that wait for each other."""
    ends = list(zip(listed.source, listed.destination, strict=True))
    waits = listed.waits(plan.schedule)
    step = steps_of(waits)
    if len(step) < len(ends):
        return ["has transfers that wait for themselves"]
    if name == "ring":
        return _lock_steps(plan, listed, n, waits, step)
    lost = unreached(listed.task.kind, n, listed.root, ends, waits)
    if lost is not None:
        member, other = (_server(listed, one) for one in lost)
        return [f"server {member} can end without the data of server {other}: a wait is missing"]
    return []


def _lock_steps(
    plan: CheckedPlan,
    listed: _Listed,
    n: int,
    waits: Mapping[int, Sequence[int]],
    step: Mapping[int, int],
) -> list[str]:
    """Check that in step q a member of a ring passes on what it received in step q - 1, as the listed dependencies have it."""
    strides = [(b - a) % n for a, b in zip(listed.source, listed.destination, strict=True)]
    for i, q in step.items():
        if q and not any(
            step[j] == q - 1 and listed.destination[j] == listed.source[i] for j in waits[i]
        ):
            name = plan.schedule.transfer[listed.rows[i]]
            return [f"transfer {name} does not wait for the step before to arrive at its source"]
    steps = (2 if listed.task.kind == "all_reduce" else 1) * (n - 1)
    if len({(q, listed.source[i], strides[i]) for i, q in step.items()}) != n * steps * len(
        set(strides)
    ):
        return [f"its transfers do not make {steps} lock steps of {n} members"]
    return []


def _ring_count(rings: int, strides: tuple[int, ...], used: set[int], n: int) -> list[str]:
    possible = {stride % n for stride in strides} if strides else None
    count = min(rings, distinct_rings(n) if possible is None else len(possible))
    faults = [f"uses {len(used)} rings, must use {count}"] if len(used) != count else []
    if possible is not None and not used <= possible:
        faults.append(f"uses stride {min(used - possible)}, which is none of those chosen")
    return faults


def _waits_of_the_collective(plan: CheckedPlan, listed: _Listed) -> list[str]:
    """Check that each transfer waits for all that its collective waits for, itself or by another of its transfers."""
    given, inherited = plan.schedule, list(listed.task.dependencies)
    mine: dict[str, int] | None = None
    for i in listed.rows:
        waits = given.transfer_dependencies[i]
        if list(waits) == inherited:
            continue
        mine = mine or {given.transfer[j]: j for j in listed.rows}
        present = set(waits)
        missing = [name for name in inherited if name not in present]
        if missing and not present & mine.keys():
            return [
                f"transfer {given.transfer[i]} does not wait for {missing[0]}, as its collective does"
            ]
        strange = [name for name in waits if name not in mine and name not in plan.graph.position]
        if strange:
            return [
                f"transfer {given.transfer[i]} waits for {strange[0]}, which is neither a task nor one of its transfers"
            ]
    return []


@lru_cache(maxsize=256)
def distinct_rings(members: int) -> int:
    """Return phi(n): the number of strides below n that share no factor with it, each a ring of its own."""
    return sum(gcd(stride, members) == 1 for stride in range(1, members))


def _server(listed: _Listed, member: int) -> int:
    return (listed.task.members or ())[member]
