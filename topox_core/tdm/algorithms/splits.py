"""All ways to split each pod group's jobs in two, reduced to those that no other one beats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.model.csr import row_pointer
from topox_core.tdm.kernels.grouping import Points, split_turns, subset_stages, undominated
from topox_core.tdm.model.rounds import after_push_s
from topox_core.tdm.model.traffic import Floats, StageTable

# Bundles of a pod group: more give nearly nothing (10 to 16 gave the same round on large mixes),
# and each doubles the work.
MAX_BUNDLES = 14
FEWEST_BUNDLES = 6
# Steps of one compiled call for all subsets of a pod group: it cannot be stopped.
WORK = 45_000_000


@dataclass(frozen=True)
class Subsets:
    """All subsets of one pod group's bundles: bit b of a subset stands for the b-th bundle.

    Attributes
    ----------
    seconds
        Communication of each subset, infinite where ports are too few.
    train_s, between_s
        Longest computing of each subset, between pull and push and between push and pull.
    turn_first, turn_second
        Whether circuits change when the first and second group's stages begin, if the subset is the
        second group.
    """

    bundles: tuple[tuple[int, ...], ...]
    seconds: Floats
    train_s: Floats
    between_s: Floats
    turn_first: NDArray[np.bool_]
    turn_second: NDArray[np.bool_]

    @property
    def bundled(self) -> bool:
        """Whether some jobs must stay together."""
        return any(len(bundle) > 1 for bundle in self.bundles)

    def members(self, subset: int) -> Iterator[int]:
        """Yield the jobs of a subset."""
        for b, bundle in enumerate(self.bundles):
            if subset >> b & 1:
                yield from bundle


def _most_bundles(table: StageTable, members: Sequence[int]) -> int:
    """Return into how many bundles the jobs of a pod group go: fewer where each subset takes longer."""
    network, most = table.jobs.network, MAX_BUNDLES
    pods = network.pods_per_group
    # Every job adds its pairs, and links are given one by one, each after a pass over all pods.
    steps = len(members) * pods**2 + network.ports_per_pod * pods * pods // 2
    while most > FEWEST_BUNDLES and (1 << most) * steps > WORK:
        most -= 1
    return most


def bundles_around(
    table: StageTable, members: Sequence[int], group: Sequence[int], random: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """Return bundles of jobs that are in one group: about half of them single large jobs, the others drawn."""
    jobs, most = table.jobs.jobs, _most_bundles(table, members)

    order = sorted(members, key=lambda n: (-jobs[n].total_gbit, n))
    alone = int(random.integers(most // 4, most - 2))
    bundles: list[tuple[int, ...]] = [(n,) for n in order[:alone]]
    rest = [[n for n in order[alone:] if group[n] == k] for k in (0, 1)]
    rooms = most - alone
    if not rest[0] or not rest[1]:
        shares = [rooms if part else 0 for part in rest]
    else:
        first = max(1, min(rooms - 1, round(rooms * len(rest[0]) / (len(rest[0]) + len(rest[1])))))
        shares = [first, rooms - first]
    for part, share in zip(rest, shares, strict=True):
        place = np.arange(len(part)) % max(share, 1)
        random.shuffle(place)
        bundles += [
            tuple(sorted(n for n, at in zip(part, place, strict=True) if at == k))
            for k in range(share)
        ]
    return tuple(sorted(bundle for bundle in bundles if bundle))


def bundles_of(table: StageTable, members: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return jobs that are to stay together: every job alone where the pod group is small.

    Above that the two smallest bundles of one kind (same collective, same computing) are joined, as
    long as need be; if no two are of one kind, the two smallest of all.
    """
    jobs, most = table.jobs.jobs, _most_bundles(table, members)
    kinds: dict[tuple[object, ...], list[tuple[float, tuple[int, ...]]]] = {}
    for n in members:
        job = jobs[n]
        kind = (job.collective, job.train_s, after_push_s(job, table.reading))
        kinds.setdefault(kind, []).append((job.total_gbit, (n,)))
    for bundles in kinds.values():
        bundles.sort()
    count = len(members)
    while count > most:
        joinable = [bundles for bundles in kinds.values() if len(bundles) > 1]
        if not joinable:
            kinds = {(): sorted(bundle for bundles in kinds.values() for bundle in bundles)}
            continue
        smallest = min(joinable, key=lambda bundles: (bundles[0][0] + bundles[1][0], bundles[0][1]))
        (a, first), (b, second) = smallest.pop(0), smallest.pop(0)
        smallest.append((a + b, tuple(sorted(first + second))))
        smallest.sort()
        count -= 1
    return tuple(sorted(bundle for bundles in kinds.values() for _, bundle in bundles))


def subsets_of(
    table: StageTable, pod_group: int, bundles: tuple[tuple[int, ...], ...] | None = None
) -> Subsets:
    """Return all subsets of a pod group's bundles (of :func:`bundles_of`, if None) with what they need."""
    members = table.members[pod_group]
    bundles = bundles_of(table, members) if bundles is None else bundles
    item = np.full(len(members), -1, np.int64)
    for b, bundle in enumerate(bundles):
        item[table.place[list(bundle)]] = b
    seconds, links = subset_stages(table.load(pod_group), table.fabric, item, len(bundles))
    jobs, reading = table.jobs.jobs, table.reading
    train = [max(jobs[n].train_s for n in bundle) for bundle in bundles]
    between = [max(after_push_s(jobs[n], reading) for n in bundle) for bundle in bundles]
    turn_first, turn_second = split_turns(links)
    return Subsets(bundles, seconds, _longest(train), _longest(between), turn_first, turn_second)


def _longest(seconds: Sequence[float]) -> Floats:
    """Return the longest of each subset."""
    longest = np.zeros(1 << len(seconds))
    for b, value in enumerate(seconds):
        longest[1 << b : 2 << b] = np.maximum(longest[: 1 << b], value)
    return longest


def splits_of(subsets: Subsets, switching: bool) -> tuple[NDArray[Any], ...]:
    """Return the columns of :class:`Points` for one pod group, without what another split beats in everything.

    Parameters
    ----------
    switching
        Whether it matters when circuits change.
    """
    first, second = subsets.seconds[::-1], subsets.seconds
    columns = [subsets.train_s[::-1], subsets.train_s, subsets.between_s[::-1], subsets.between_s]
    turns = [
        turn if switching else np.zeros(len(turn), np.bool_)
        for turn in (subsets.turn_first, subsets.turn_second)
    ]
    kind = np.zeros(len(first), np.int64)
    for column in (*columns, *turns):
        values, place = np.unique(column, return_inverse=True)
        kind = kind * len(values) + place
    order = np.lexsort((second, first, kind))
    order = order[np.isfinite(first[order]) & np.isfinite(second[order])]
    kept = order[undominated(kind[order], second[order])]
    kept = kept[np.lexsort((second[kept], first[kept]))]
    return (
        first[kept],
        second[kept],
        *(column[kept] for column in columns),
        *(turn[kept] for turn in turns),
        kept,
    )


def points_of(parts: Sequence[tuple[NDArray[Any], ...]]) -> Points:
    """Return the splits of several pod groups, each from :func:`splits_of`."""
    start = row_pointer([len(part[0]) for part in parts], np.int64)
    return Points(start, *(np.concatenate(column) for column in zip(*parts, strict=True)))
