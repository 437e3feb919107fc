"""Whether the transfers that a result lists for its collectives move what these must (from sources, destinations, bytes)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from topox_core.check.algorithms import algorithm_of, group_size, owed_bytes, steps_of, unreached
from topox_core.check.plan import COLLECTIVE_CODE, CheckedPlan
from topox_core.check.report import ConstraintFinding
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

    def waits(self, given: Schedule, chosen: Sequence[int]) -> dict[int, list[int]]:
        """Return for some of them which of these each waits for, by position in ``rows``."""
        position = {given.transfer[self.rows[i]]: i for i in chosen}
        return {
            i: [position[d] for d in given.transfer_dependencies[self.rows[i]] if d in position]
            for i in chosen
        }


def collectives_move_their_bytes(plan: CheckedPlan) -> ConstraintFinding:
    """Lowering: rings that visit every member, pairs, chains and trees, each with its share of the bytes."""
    graph, given = plan.graph, plan.schedule
    own = plan.collective[plan.tasks :]
    collectives = np.flatnonzero(plan.kind[: plan.tasks] == COLLECTIVE_CODE)
    finding = ConstraintFinding("collectives move their bytes", "lowering", len(collectives))
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
    if algorithm is not None:
        faults = _of_algorithm(plan, listed, n, *algorithm)
    elif task.kind == "all_to_all":
        faults = _all_to_all(listed, n)
    elif task.kind == "broadcast":
        faults = (
            _tree(plan, listed, n)
            if rules.broadcast == "tree"
            else _rings(plan, listed, n, chain=True)
        )
    else:
        faults = _rings(plan, listed, n, chain=False)
    return faults + _waits_of_the_collective(plan, listed)


def _all_to_all(listed: _Listed, n: int) -> list[str]:
    share = (listed.task.size_bytes or 0.0) / n
    pairs, pair = np.unique(
        np.array(listed.source) * n + np.array(listed.destination), return_inverse=True
    )
    moved = np.bincount(pair, weights=listed.size)
    wrong = np.flatnonzero(np.abs(moved - share) > BYTES_TOLERANCE * share)
    if len(wrong):
        a, b = divmod(int(pairs[wrong[0]]), n)
        pair_words = f"{_server(listed, a)} -> {_server(listed, b)}"
        return [
            f"moves {moved[wrong[0]]:.9g} bytes {pair_words}, not size_bytes / {n} = {share:.9g}"
        ]
    if len(pairs) < n * (n - 1):
        return [f"joins {len(pairs)} ordered pairs of members, must join all {n * (n - 1)}"]
    return []


def _of_algorithm(
    plan: CheckedPlan, listed: _Listed, n: int, name: str, parameter: int
) -> list[str]:
    """Check an algorithm step by step: the bytes of every ordered pair, and that data can have arrived."""
    rules, task = plan.rules, listed.task
    group = parameter or rules.group or group_size(n)
    if name == "two_level" and n % group:
        return [f"groups of {group} do not divide its {n} members"]
    owed = owed_bytes(task.kind, name, n, group, listed.root)
    if owed is None:
        return [f"has the algorithm {name}, which is none of {task.kind}"]
    if name == "ring":
        strides = Counter(
            (b - a) % n for a, b in zip(listed.source, listed.destination, strict=True)
        )
        if plan.schedule.fixed is None and (
            faults := _ring_count(rules.rings, rules.strides, set(strides), n)
        ):
            return faults
        if wrong := [stride for stride in strides if gcd(stride, n) != 1]:
            return [f"its transfers of stride {wrong[0]} make no single ring of {n} members"]
        # Rings have equal shares; on parallel circuits several have one stride.
        share = next(iter(owed.values())) / strides.total()
        owed = {(i, (i + p) % n): share * count for i in range(n) for p, count in strides.items()}
    ends = list(zip(listed.source, listed.destination, strict=True))
    moved: dict[tuple[int, int], float] = dict.fromkeys(owed, 0.0)
    for pair, size in zip(ends, listed.size, strict=True):
        moved[pair] = moved.get(pair, 0.0) + size
    tensor = task.size_bytes or 0.0
    for pair, size in moved.items():
        share = owed.get(pair, 0.0) * tensor
        if abs(size - share) > BYTES_TOLERANCE * tensor:
            words = f"{_server(listed, pair[0])} -> {_server(listed, pair[1])}"
            return [f"moves {size:.9g} bytes {words}, {name} moves {share:.9g}"]
    waits = listed.waits(plan.schedule, range(len(listed.rows)))
    if len(steps_of(waits)) < len(ends):
        return ["has transfers that wait for themselves"]
    lost = unreached(task.kind, n, listed.root, ends, waits)
    if lost is not None:
        member, other = (_server(listed, one) for one in lost)
        return [f"server {member} can end without the data of server {other}: a wait is missing"]
    return []


def _rings(plan: CheckedPlan, listed: _Listed, n: int, chain: bool) -> list[str]:
    """Check rings: transfers of one stride form one cycle over all members (broadcast: the walk from the root).

    A stride p joins each member to the one p places on; coprime to n it visits them all, and
    different strides are different rings. Totals follow: with the same share on each of k rings
    every member sends 2 (n - 1) / n of an all-reduce's bytes, half of that for a gather or a
    scatter.
    """
    rules, task, faults = plan.rules, listed.task, list[str]()
    by_stride: dict[int, list[int]] = {}
    for i, (a, b) in enumerate(zip(listed.source, listed.destination, strict=True)):
        by_stride.setdefault((b - a) % n, []).append(i)
    # Fixed circuits carry the rings that were laid for them, whatever their number, and parallel
    # circuits several of one stride (TopoOpt, section 4: all-reduce traffic is mutable).
    if plan.schedule.fixed is None:
        faults = _ring_count(rules.rings, rules.strides, set(by_stride), n)
        if faults:
            return faults
    passes = 1 if chain else (2 if task.kind == "all_reduce" else 1) * (n - 1)
    steps = passes if rules.steps == "stepwise" and not chain else 1
    copies = dict.fromkeys(by_stride, 1)
    if plan.schedule.fixed is not None:
        each = (n - 1 if chain else n) * steps
        copies = {stride: max(1, len(ring) // each) for stride, ring in by_stride.items()}
    total = sum(copies.values())
    share = (task.size_bytes or 0.0) * passes / ((1 if chain else n) * total * steps)
    for stride, ring in by_stride.items():
        times = Counter(listed.source[i] for i in ring)
        end, often = (listed.root - stride) % n, steps * copies[stride]
        wrong = [i for i in range(n) if times[i] != (0 if chain and i == end else often)]
        if gcd(stride, n) != 1:
            faults.append(f"its transfers of stride {stride} make no single ring of {n} members")
        elif wrong:
            faults.append(
                f"on the {'chain' if chain else 'ring'} of stride {stride} server {_server(listed, wrong[0])} sends "
                f"{times[wrong[0]]} times, must send {0 if chain and wrong[0] == end else often} times"
            )
        faults += _uneven(plan, listed, ring, share)
        if steps > 1 and not wrong:
            faults += _lock_step(plan, listed, ring, n, steps)
    return faults


def _ring_count(rings: int, strides: tuple[int, ...], used: set[int], n: int) -> list[str]:
    possible = {stride % n for stride in strides} if strides else None
    count = min(rings, distinct_rings(n) if possible is None else len(possible))
    faults = [f"uses {len(used)} rings, must use {count}"] if len(used) != count else []
    if possible is not None and not used <= possible:
        faults.append(f"uses stride {min(used - possible)}, which is none of those chosen")
    return faults


def _uneven(plan: CheckedPlan, listed: _Listed, rows: list[int], share: float) -> list[str]:
    for i in rows:
        if abs(listed.size[i] - share) > BYTES_TOLERANCE * share:
            name = plan.schedule.transfer[listed.rows[i]]
            return [f"transfer {name} moves {listed.size[i]:.9g} bytes, its share is {share:.9g}"]
    return []


def _lock_step(
    plan: CheckedPlan, listed: _Listed, ring: list[int], n: int, steps: int
) -> list[str]:
    """Check that in step q a member passes on what it received in step q - 1, as the listed dependencies have it."""
    names = plan.schedule.transfer
    waits = listed.waits(plan.schedule, ring)
    step = steps_of(waits)
    for i in ring:
        if i not in step:
            return [f"transfer {names[listed.rows[i]]} is in none of the {steps} lock steps"]
        if step[i] and not any(
            step[j] == step[i] - 1 and listed.destination[j] == listed.source[i] for j in waits[i]
        ):
            return [
                f"transfer {names[listed.rows[i]]} does not wait for the step before to arrive at its source"
            ]
    per_step = Counter((step[i], listed.source[i]) for i in ring)
    if len(per_step) != n * steps:
        return [f"its transfers do not make {steps} lock steps of {n} members"]
    return []


def _tree(plan: CheckedPlan, listed: _Listed, n: int) -> list[str]:
    """Check a broadcast by store and forward: each member but the root receives all once, and sends only after."""
    names, root = plan.schedule.transfer, listed.root
    arrives = Counter(listed.destination)
    for member in range(n):
        if arrives[member] != (member != root):
            must = int(member != root)
            return [
                f"server {_server(listed, member)} receives {arrives[member]} times, must receive {must} times"
            ]
    into = {b: names[row] for b, row in zip(listed.destination, listed.rows, strict=True)}
    parent = dict(zip(listed.destination, listed.source, strict=True))
    for a, row in zip(listed.source, listed.rows, strict=True):
        if a != root and into[a] not in plan.schedule.transfer_dependencies[row]:
            return [f"transfer {names[row]} does not wait for its source to have the tensor"]
    for member in parent:
        seen, at = 0, member
        while at != root and seen <= n:
            seen, at = seen + 1, parent[at]
        if at != root:
            return [f"server {_server(listed, member)} is not reached from the root"]
    return _uneven(plan, listed, list(range(len(listed.rows))), listed.task.size_bytes or 0.0)


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
