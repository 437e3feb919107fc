"""Which algorithm a collective runs, as a lowering says it, and the transfers that it becomes.

A lowering's ``algorithm`` maps a kind (``all_reduce``), a kind and a group's size (``all_reduce:8``)
or these and the tensor's bytes to three digits (``all_reduce:8:1.05e+06``) to a name of
:data:`~topox_core.model.lowering.collective_steps.ALGORITHMS`, with a parameter in brackets where the
algorithm has one (``two_level(4)``, ``chain(8)``) and the parts of each message after a star
(``pairwise*2``) or its uneven parts step by step in square brackets (``pairwise[2:1|1|1:1]``: the
first step's messages in two parts, one twice the other, the second's whole), or to ``default``: the
fluid ring, direct all-to-all or chain. The most specific key counts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from math import gcd, inf
from typing import NamedTuple

from topox_core.errors import InputError, refuse_if, shown
from topox_core.io.limits import number_in
from topox_core.model.lowering.collective_steps import (
    ALGORITHMS,
    PARAMETERS,
    Shape,
    StepList,
    divisor_near_root,
    is_power_of_two,
    step_list,
)
from topox_core.model.lowering_choices import Lowering

RING_KINDS = ("all_reduce", "all_gather", "reduce_scatter")
RING = "ring"  # the algorithm of these kinds whose rings may have any stride


@dataclass(frozen=True)
class Pattern:
    """The transfers of one collective, in positions within its group.

    Attributes
    ----------
    suffix
        What follows the collective's id in a transfer's id, e.g. ``/r0/3``.
    source, destination
        Positions of the members that send and receive.
    numerator, denominator
        Every transfer moves ``size_bytes * numerator / denominator``.
    blocks
        Where transfers differ, how many times that each one moves; else empty.
    after
        For each transfer the transfers of the pattern it waits for; empty if none waits for
        another.
    last
        The transfers that end the collective: all others come before one of them.
    """

    suffix: tuple[str, ...]
    source: tuple[int, ...]
    destination: tuple[int, ...]
    numerator: int
    denominator: int
    after: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    blocks: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.suffix)

    @cached_property
    def dependencies(self) -> int:
        """How many times one of the transfers waits for another."""
        return sum(map(len, self.after))


@lru_cache(maxsize=256)
def distinct_rings(members: int) -> tuple[int, ...]:
    """Return the strides of all distinct directed rings: 1 and others coprime to ``members``.

    There are phi(n) of them (TopoOpt, NSDI 2023, section 4.3, TotientPerms); none for a single
    member.
    """
    return tuple(p for p in range(1, members) if gcd(p, members) == 1)


def ring_strides(members: int, lowering: Lowering, group: str = "") -> tuple[int, ...]:
    """Return the strides of a ring collective: at most ``lowering.rings``, all distinct.

    Raises
    ------
    InputError
        If a given stride shares a factor with the group's size; names the stride and the group.
    """
    if not lowering.strides:
        return distinct_rings(members)[: lowering.rings]
    for stride in lowering.strides:
        refuse_if(
            (
                gcd(stride, members) != 1,
                f"stride {stride} makes no ring of {members} members: it must share no factor with {members}",
            ),
            file="settings",
            item=group,
            field="strides",
        )
    distinct = dict.fromkeys(stride % members for stride in lowering.strides)
    return tuple(distinct)[: lowering.rings]


def transfer_count(kind: str, members: int, rings: int, lowering: Lowering) -> int:
    """Return how many transfers a collective becomes, without building them."""
    if members < 2:
        return 0
    if kind in RING_KINDS:
        passes = 2 if kind == "all_reduce" else 1
        return members * rings * (passes * (members - 1) if lowering.steps == "stepwise" else 1)
    if kind == "all_to_all":
        return members * (members - 1)
    return (members - 1) * (rings if lowering.broadcast == "chain" else 1)


def pattern(
    kind: str, members: int, root: int, strides: tuple[int, ...], lowering: Lowering
) -> Pattern:
    """Return the transfers of a collective of two or more members; ``root`` is a position."""
    if kind in RING_KINDS:
        passes = 2 if kind == "all_reduce" else 1
        if lowering.steps == "stepwise":
            return _ring_steps(members, strides, passes * (members - 1))
        # One lump a member and ring: a fluid model of the lock steps of all passes.
        pairs = [(r, i, (i + p) % members) for r, p in enumerate(strides) for i in range(members)]
        lumps = [(f"/r{r}/{i}", i, j) for r, i, j in pairs]
        return _made_of(lumps, passes * (members - 1), members * len(strides))
    if kind == "all_to_all":
        every = [(i, j) for i in range(members) for j in range(members) if i != j]
        return _made_of([(f"/{i}-{j}", i, j) for i, j in every], 1, members)
    if lowering.broadcast == "tree":
        return _binomial_tree(members, root)
    return _chain(members, root, strides)


def _ring_steps(members: int, strides: tuple[int, ...], steps: int) -> Pattern:
    """Lock steps: a step waits for its predecessor's last step (data) and its own (link)."""
    rows: list[tuple[str, int, int]] = []
    after: list[tuple[int, ...]] = []
    last: list[int] = []
    for r, stride in enumerate(strides):
        for q in range(steps):
            before = len(rows) - members
            for i in range(members):
                rows.append((f"/r{r}/s{q}/{i}", i, (i + stride) % members))
                after.append((before + (i - stride) % members, before + i) if q else ())
        last.extend(range(len(rows) - members, len(rows)))
    return _made_of(rows, 1, members * len(strides), tuple(after), tuple(last))


def _chain(members: int, root: int, strides: tuple[int, ...]) -> Pattern:
    """Pipelined chain from the root on each ring: n - 1 links active together."""
    rows = []
    for r, stride in enumerate(strides):
        walk = [(root + hop * stride) % members for hop in range(members)]
        rows += [(f"/r{r}/{i}", i, j) for i, j in pairwise(walk)]
    return _made_of(rows, 1, len(strides))


def _binomial_tree(members: int, root: int) -> Pattern:
    """Store and forward from the root: rank v is served by v without its highest bit.

    The id of a transfer names the position that receives, as a member may send several times.
    """
    rows: list[tuple[str, int, int]] = []
    after: list[tuple[int, ...]] = []
    for rank in range(1, members):
        parent = rank - (1 << (rank.bit_length() - 1))
        sender, receiver = (root + parent) % members, (root + rank) % members
        rows.append((f"/r0/{receiver}", sender, receiver))
        after.append((parent - 1,) if parent else ())
    return _made_of(rows, 1, 1, tuple(after))


def _made_of(
    rows: list[tuple[str, int, int]],
    numerator: int,
    denominator: int,
    after: tuple[tuple[int, ...], ...] = (),
    last: tuple[int, ...] = (),
) -> Pattern:
    """Return the pattern of transfers that, unless it is said, wait for none of each other and all end it."""
    suffix, source, destination = zip(*rows, strict=True)
    last = last or tuple(range(len(rows)))
    return Pattern(suffix, source, destination, numerator, denominator, after, last)


DEFAULT = "default"
DEFAULT_CHUNKS = 8
# Blocks that one step list moves, or dependencies among its messages: named before memory is spent.
MAX_WORK = 2_000_000
_NAME = re.compile(
    r"([a-z_]+)(?:\((\d{1,6})\))?(?:\*(\d{1,4})|\[(\d{1,7}(?:[:|]\d{1,7}){0,5000})\])?"
)
Shares = tuple[tuple[int, ...], ...]


class Choice(NamedTuple):
    """An algorithm for one collective: its name, its parameter (0 where it has none), parts of a message.

    ``shares`` are the uneven parts of each step's messages, in whole numbers, in place of equal ones.
    """

    name: str
    parameter: int = 0
    parts: int = 1
    shares: Shares = ()

    def __str__(self) -> str:
        parameter = f"({self.parameter})" if self.parameter else ""
        if self.shares:
            steps = "|".join(":".join(map(str, step)) for step in self.shares)
            return f"{self.name}{parameter}[{steps}]"
        return f"{self.name}{parameter}" + (f"*{self.parts}" if self.parts > 1 else "")


def collective_key(kind: str, members: int, size_bytes: float) -> str:
    """Return the most specific key of ``algorithm`` for a collective: bytes to three digits."""
    return f"{kind}:{members}:{size_bytes:.3g}"


def check_algorithms(lowering: Lowering) -> None:
    """Refuse keys and names of ``algorithm`` that mean nothing.

    Raises
    ------
    InputError
        If there are any; the key is named.
    """
    for key, word in lowering.algorithm:
        kind, *more = str(key).split(":")
        refuse_if(
            (
                kind not in ALGORITHMS
                or len(more) > 2
                or not all(0 <= number_in(one) < inf for one in more),
                f"must be kinds of collective ({', '.join(ALGORITHMS)}), with members and bytes as in "
                f"all_reduce:8:1e+06 if wanted (got {shown(key)})",
            ),
            file="settings",
            field="algorithm",
        )
        _read(kind, word)


@lru_cache(1_000)
def _read(kind: str, word: str) -> Choice:
    """Return a word of ``algorithm``, what it does not say as 0; refuses an unknown one."""
    match = _NAME.fullmatch(str(word))
    name, parameter, parts, uneven = match.groups() if match else ("", None, None, None)
    shares = tuple(tuple(map(int, step.split(":"))) for step in uneven.split("|")) if uneven else ()
    rings = on_rings(kind, name)
    refuse_if(
        (
            name not in (DEFAULT, *ALGORITHMS[kind]),
            f"{kind} must be one of {', '.join((DEFAULT, *ALGORITHMS[kind]))} (got {shown(word)})",
        ),
        (
            parameter and not (int(parameter) and name in PARAMETERS),
            f"{kind}={word}: only two_level(m) and chain(C) take a number above 0",
        ),
        (
            parts and (rings or not int(parts)),
            f"{kind}={word}: parts are at least 1, and rings have none",
        ),
        (
            shares and (rings or name == DEFAULT or not all(map(all, shares))),
            f"{kind}={shown(word)}: uneven parts are above 0, and rings have none",
        ),
        file="settings",
        field="algorithm",
    )
    return Choice(name, int(parameter or 0), int(parts or 0), shares)


class Chooser:
    """What a checked lowering says about each collective."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering, self.words = lowering, dict(lowering.algorithm)

    def choice(
        self, kind: str, members: int, size_bytes: float, collective: str = ""
    ) -> Choice | None:
        """Return the algorithm of a collective, its parameter filled in; None for the default.

        Raises
        ------
        InputError
            If the algorithm does not fit the number of members; names ``collective``.
        """
        if not self.words:
            return None
        keys = (collective_key(kind, members, size_bytes), f"{kind}:{members}", kind)
        word = next((self.words[key] for key in keys if key in self.words), DEFAULT)
        name, parameter, parts, shares = _read(kind, word)
        if name == DEFAULT:
            return None
        parameter = parameter or self.parameter(name, members)
        parts = 1 if shares else parts or self.lowering.parts
        choice = Choice(name, parameter, parts, shares)
        if problem := misfit(kind, choice, members):
            raise InputError(problem, file="settings", item=collective, field="algorithm")
        return choice

    def parameter(self, name: str, members: int) -> int:
        """Return an algorithm's parameter where its word has none; 0 if it takes none."""
        if name == "two_level":
            return self.lowering.group or divisor_near_root(members)
        if name == "chain":
            return self.lowering.chunks or DEFAULT_CHUNKS
        return 0


def misfit(kind: str, choice: Choice, members: int) -> str:
    """Return why an algorithm cannot serve so many members, or nothing."""
    algorithm, shape = ALGORITHMS[kind][choice.name], _shape(choice, members)
    if algorithm.power_of_two and not is_power_of_two(members):
        return f"{choice.name} needs 2, 4, 8, ... members (got {members})"
    if choice.name == "two_level" and members % choice.parameter:
        return f"groups of {choice.parameter} do not divide {members} members"
    if algorithm.size(shape).work > MAX_WORK:
        return f"{choice.name} is too large for {members} members"
    if choice.shares and len(choice.shares) != (steps := len(_steps(kind, choice, members).steps)):
        return f"{choice.name} has {steps} steps (uneven parts for {len(choice.shares)})"
    return ""


def _steps(kind: str, choice: Choice, members: int, root: int = 0) -> StepList:
    return step_list(kind, choice.name, _shape(choice, members, root))


def algorithms_that_fit(kind: str, sizes: Iterable[int]) -> tuple[str, ...]:
    """Return the algorithms that serve groups of all these sizes, their parameters as they are by default."""
    chooser = Chooser(Lowering())
    return tuple(
        name
        for name in ALGORITHMS[kind]
        if not any(misfit(kind, Choice(name, chooser.parameter(name, n)), n) for n in sizes)
    )


def step_transfers(kind: str, choice: Choice, members: int, rings: int) -> int:
    """Return how many transfers an algorithm becomes, on so many rings if it runs on rings."""
    if choice.shares:
        pairs = zip(_steps(kind, choice, members).steps, choice.shares, strict=True)
        return sum(len(step) * len(parts) for step, parts in pairs)
    copies = rings if on_rings(kind, choice.name) else choice.parts
    return copies * ALGORITHMS[kind][choice.name].size(_shape(choice, members)).messages


def on_rings(kind: str, name: str) -> bool:
    """Return whether an algorithm runs on rings of any stride."""
    return name in ALGORITHMS[kind] and ALGORITHMS[kind][name].on_rings


def _shape(choice: Choice, members: int, root: int = 0) -> Shape:
    return Shape(members, root, choice.parameter or 1)


@lru_cache(maxsize=64)
def step_pattern(
    kind: str, choice: Choice, members: int, root: int, strides: tuple[int, ...]
) -> Pattern:
    """Return the transfers of an algorithm: on rings of these strides, or in its parts.

    Each ring and each part has its own dependencies; an uneven part waits for all parts of what its
    message waits for.
    """
    steps = _steps(kind, choice, members, root)
    if on_rings(kind, choice.name):
        # Parallel circuits carry parallel rings of one stride.
        again = [strides[:k].count(stride) for k, stride in enumerate(strides)]
        copies = [
            (_on_stride(steps, members, stride), f"/p{k}" if k else "")
            for stride, k in zip(strides, again, strict=True)
        ]
    else:
        copies = [(steps, f"/p{k}" if choice.parts > 1 else "") for k in range(choice.parts)]
    rows: list[tuple[str, int, int, float]] = []
    after: list[tuple[int, ...]] = []
    for one, tail in copies:
        own: list[range] = []
        for (q, message), waits in zip(one.messages, one.dependencies(), strict=True):
            parts, first = choice.shares[q] if choice.shares else (1,), len(rows)
            suffix = f"/{choice.name}/s{q}/{message.source}-{message.destination}"
            for k, part in enumerate(parts):
                number = f"/p{k}" if len(parts) > 1 else tail
                share = len(message.blocks) * part / sum(parts)
                rows.append((suffix + number, message.source, message.destination, share))
            after += [tuple(i for earlier in waits for i in own[earlier])] * len(parts)
            own.append(range(first, len(rows)))
    waited = set(chain.from_iterable(after))
    last = tuple(i for i in range(len(rows)) if i not in waited)
    names, source, destination, blocks = zip(*rows, strict=True)
    denominator = steps.blocks * len(copies)
    return Pattern(names, source, destination, 1, denominator, tuple(after), last, blocks)


def _on_stride(steps: StepList, members: int, stride: int) -> StepList:
    """Return a ring's steps with rank v at position v * stride, senders in the order of positions."""
    moved = (
        tuple(
            sorted(
                one._replace(
                    source=one.source * stride % members,
                    destination=one.destination * stride % members,
                )
                for one in step
            )
        )
        for step in steps.steps
    )
    return StepList(tuple(moved), steps.blocks)
