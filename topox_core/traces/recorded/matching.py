"""Communications of several ranks that are one: by group and place, sends with their receives."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from topox_core.errors import refuse_if
from topox_core.model.arrays.groups import by_key
from topox_core.traces.communication import RECEIVE, SEND, UNKNOWN, Meta, parallelism_of
from topox_core.traces.recorded.steps import StepOfRank
from topox_core.traces.run_graph import Node, Place, spans

MAX_ALIKE = 4_000


class Matched:
    """All calls of a step, and what found no counterpart.

    Attributes
    ----------
    calls
        Those that all ranks have whose file is there.
    unmatched
        A sentence for each call that found no counterpart on a rank whose file is there.
    parts
        How many parts of calls there were on all ranks.

    Raises
    ------
    InputError
        If a call's ranks are unknown, and ranks differ in how many such calls they have.
    """

    def __init__(self, steps: Mapping[int, StepOfRank], world: int) -> None:
        self._steps, everyone = steps, tuple(range(world))
        self._metas: dict[Place, Meta] = {}
        self.calls: list[Node] = []
        self.unmatched: list[str] = []
        groups: dict[frozenset[int], dict[int, list[Place]]] = defaultdict(
            lambda: defaultdict(list)
        )
        pairs: dict[tuple[int, int], tuple[list[Place], list[Place]]] = defaultdict(
            lambda: ([], [])
        )
        ungrouped = dict.fromkeys(steps, 0)
        for rank, step in steps.items():
            for place, meta in _parts(rank, step):
                self._metas[place] = meta
                if meta.kind in (SEND, RECEIVE) and meta.peer is not None:
                    pair = (rank, meta.peer) if meta.kind == SEND else (meta.peer, rank)
                    pairs[pair][meta.kind == RECEIVE].append(place)
                else:
                    ungrouped[rank] += meta.ranks is None
                    groups[frozenset(meta.ranks or everyone)][rank].append(place)
        few, many = (most(steps, key=ungrouped.__getitem__) for most in (min, max))
        refuse_if(
            (
                ungrouped[few] < ungrouped[many],
                f"has {ungrouped[many]} communications of an unknown group, rank {few} has "
                f"{ungrouped[few]}: they cannot be those of all ranks",
            ),
            file=steps[many].recording.file,
        )
        for ranks, places in sorted(groups.items(), key=lambda g: sorted(g[0])):
            self._group(ranks, places)
        for pair, (sent, received) in sorted(pairs.items()):
            self._pair(pair, sent, received)
        self.parts = len(self._metas)

    def _group(self, ranks: frozenset[int], places: Mapping[int, list[Place]]) -> None:
        """Match the calls of one group: by common number, by place, or as a common sequence."""
        present = sorted(ranks & set(self._steps)) or sorted(places)
        listed = [places.get(rank, []) for rank in present]
        keys = [[self._number(place) for place in of] for of in listed]
        if all(None not in of and len(set(of)) == len(of) for of in keys):
            known = [dict(zip(of, row, strict=True)) for of, row in zip(keys, listed, strict=True)]
            common = [key for key in keys[0] if all(key in one for one in known)]
            rows = [[one[key] for key in common] for one in known]
        elif len({len(of) for of in listed}) == 1 and all(
            len({*map(self._sign, row)}) == 1 for row in zip(*listed, strict=True)
        ):
            rows = listed
        else:
            rows = self._common(listed)
        lost = sum(map(len, listed)) - sum(map(len, rows))
        if lost:
            self._tell(ranks, present, listed, rows, lost)
        for row in zip(*rows, strict=True):
            metas = [self._metas[place] for place in row]
            told = next((meta.ranks for meta in metas if meta.ranks), None)
            self._add(metas[0].kind, told or tuple(sorted(ranks)), row)

    def _pair(self, pair: tuple[int, int], sent: list[Place], received: list[Place]) -> None:
        """Match sends and receives of two ranks, the k-th with the k-th."""
        source, destination = pair
        both = source in self._steps and destination in self._steps
        for k in range(max(len(sent), len(received))):
            places = tuple(of[k] for of in (sent, received) if k < len(of))
            if both and len(places) < 2:
                side, rank = ("receive", destination) if k < len(sent) else ("send", source)
                self.unmatched.append(
                    f"send {source} to {destination}, number {k + 1}: has no {side} on rank {rank}"
                )
                continue
            self._add(SEND, pair, places)

    def _number(self, place: Place) -> tuple[str, object] | None:
        meta = self._metas[place]
        if meta.identity:
            return "id", meta.identity
        return None if meta.sequence is None else ("seq", (meta.sequence, meta.kind))

    def _sign(self, place: Place) -> tuple[object, ...]:
        meta = self._metas[place]
        return meta.kind, None if meta.kind in ("all_to_all", UNKNOWN) else meta.size_bytes

    def _common(self, listed: list[list[Place]]) -> list[list[Place]]:
        """Return what of all ranks is one sequence of (kind, size), rank after rank."""
        rows: list[list[Place]] = [listed[0]]
        for of in listed[1:]:
            kept = _common_positions([self._sign(p) for p in rows[0]], [self._sign(p) for p in of])
            rows = [[row[i] for i, _ in kept] for row in rows] + [[of[j] for _, j in kept]]
        return rows

    def _tell(
        self,
        ranks: frozenset[int],
        present: Sequence[int],
        listed: list[list[Place]],
        rows: list[list[Place]],
        lost: int,
    ) -> None:
        """Say where ranks differ first; every further loss counts as one more line of the same kind."""
        kept = [set(of) for of in rows]
        at = next(
            (
                k
                for k in range(max(map(len, listed)))
                if any(
                    k >= len(of) or of[k] not in one for of, one in zip(listed, kept, strict=True)
                )
            ),
            0,
        )
        told: list[str] = []
        for rank, of in zip(present, listed, strict=True):
            words = _words(self._metas[of[at]]) if at < len(of) else "nothing"
            if all(not one.endswith(f" {words}") for one in told) and len(told) < 2:
                told.append(f"rank {rank} has {words}")
        line = f"group of {spans(sorted(ranks))}, call {at + 1}: {', '.join(told)}"
        self.unmatched += [line] * lost

    def _add(self, kind: str, ranks: tuple[int, ...], places: tuple[Place, ...]) -> None:
        metas = [self._metas[place] for place in places]
        sizes = [m.size_bytes for m in metas if m.size_bytes is not None]
        splits = tuple(m.splits_bytes for m in metas if m.splits_bytes is not None)
        if len(splits) < len(ranks) or any(len(one) != len(ranks) for one in splits):
            splits = ()
        description = next((m.description for m in metas if m.description), "")
        self.calls.append(
            Node(
                "",
                kind,
                [],
                0.0,
                ranks,
                is_call=True,
                size_bytes=max(sizes) if sizes else None,
                size_from=next((m.source for m in metas if m.size_bytes is not None), ""),
                group=metas[0].group,
                description=description,
                parallelism=parallelism_of(description, kind),
                root=next((m.root for m in metas if m.root is not None), None),
                splits_bytes=splits or None,
                places=places,
            )
        )


def _parts(rank: int, step: StepOfRank) -> Iterator[tuple[Place, Meta]]:
    for number, entry in enumerate(step.entries):
        for part, meta in enumerate(entry.parts):
            yield (rank, number, part), meta


def _words(meta: Meta) -> str:
    return meta.kind if meta.size_bytes is None else f"{meta.kind} of {meta.size_bytes:,.0f} bytes"


def _common_positions(
    one: Sequence[tuple[object, ...]], other: Sequence[tuple[object, ...]]
) -> list[tuple[int, int]]:
    """Return a common subsequence as pairs of positions: the longest common stretch, then those on both sides of it."""
    if len(one) > MAX_ALIKE or len(other) > MAX_ALIKE:
        return [
            (i, i) for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] == pair[1]
        ]
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]


@dataclass(frozen=True)
class Clocks:
    """What to subtract from each rank's times.

    Attributes
    ----------
    offset_us
        By rank, against the lowest; 0 for ranks that share no call with it, directly or over others.
    residual_us, largest_us
        Median and largest difference between ends of one call that are left.
    alone
        Ranks without a common call.
    """

    offset_us: Mapping[int, float]
    residual_us: float
    largest_us: float
    alone: tuple[int, ...]


def align(steps: Mapping[int, StepOfRank], calls: Sequence[Node]) -> Clocks:
    """Return the clocks' offsets from the ends of common calls."""
    # Files count from their own beginning; hosts are compared by what was subtracted.
    lowest = min(steps)
    base = {r: one.recording.base_us - steps[lowest].recording.base_us for r, one in steps.items()}
    by_call: dict[bool, list[list[tuple[int, float]]]] = {False: [], True: []}
    for call in calls:
        entries = [(rank, steps[rank].entries[entry]) for rank, entry, _ in call.places]
        single = all(len(entry.parts) == 1 for _, entry in entries)
        by_call[single].append([(rank, entry.end_us) for rank, entry in entries])
    # A kernel of several sends and receives ends with the last of them: it tells less.
    rough, exact = (
        by_key(
            pair
            for (first, end), *others in by_call[single]
            for other, at in others
            for pair in (((first, other), at - end), ((other, first), end - at))
        )
        for single in (False, True)
    )
    ends = rough | exact
    neighbours = by_key(ends)
    offset: dict[int, float] = {}
    alone: list[int] = []
    for start in sorted(steps):
        if start in offset:
            continue
        # Ranks that share nothing with the first keep the clocks their hosts had.
        offset[start] = 0.0 if not offset else -base[start]
        if start != lowest:
            alone.append(start)
        queue = [start]
        for rank in queue:
            for other in sorted(neighbours[rank]):
                if other not in offset:
                    offset[other] = offset[rank] + float(np.median(ends[rank, other]))
                    queue.append(other)
    left = [
        abs((at - offset[other]) - (row[0][1] - offset[row[0][0]]))
        for row in by_call[True]
        for other, at in row[1:]
    ]
    return Clocks(
        offset,
        float(np.median(left)) if left else 0.0,
        max(left, default=0.0),
        tuple(alone),
    )


def between_hosts_us(steps: Mapping[int, StepOfRank], clocks: Clocks) -> dict[int, float]:
    """Return how far each rank's own clock is ahead of the lowest rank's."""
    base = steps[min(steps)].recording.base_us
    return {
        rank: clocks.offset_us[rank] + step.recording.base_us - base for rank, step in steps.items()
    }
