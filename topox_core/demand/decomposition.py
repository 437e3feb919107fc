"""A demand matrix as weighted matchings, as few as can be or peeled off even lines, and which switch carries which."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from topox_core.demand.kernels.matchings import bottleneck_matching, heaviest_assignment
from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.run import Stop, never
from topox_core.schedule.engines.mip import MipBuilder, Run, solve

Pair = tuple[int, int]  # an input and an output of a switch
# Below this share of the largest entry a difference is what rounding leaves.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Configuration:
    """A matching of inputs to outputs, ascending, and for how long it stands in ms.

    Two of equal circuits need no set-up between them; a part of one may go to another switch.
    """

    circuits: tuple[Pair, ...]
    weight_ms: float

    def split(self, tau_ms: float) -> tuple[Self, Self] | None:
        """Return what stays and what goes when about ``tau_ms`` are given away; None where nothing stays or goes."""
        if not 0 < tau_ms < self.weight_ms:
            return None
        stays, goes = (replace(self, weight_ms=ms) for ms in (self.weight_ms - tau_ms, tau_ms))
        return stays, goes

    def joined(self, other: Self) -> Self:
        """Return one configuration for both, whose circuits are equal."""
        return replace(self, weight_ms=self.weight_ms + other.weight_ms)


@dataclass(frozen=True)
class DemandPlan:
    """Configurations of every switch in their order, each set up before it sends.

    Attributes
    ----------
    delay_ms
        Of every set-up; the first of a switch is free if ``first_free``.
    method
        How the plan came about, in words.
    """

    delay_ms: float
    first_free: bool
    switches: tuple[tuple[Configuration, ...], ...]
    method: str

    @cached_property
    def starts_ms(self) -> tuple[tuple[float, ...], ...]:
        """When each configuration begins to send, per switch."""
        first_ms = 0.0 if self.first_free else self.delay_ms

        def next_ms(start_ms: float, one: Configuration) -> float:
            return start_ms + one.weight_ms + self.delay_ms

        return tuple(
            tuple(islice(accumulate(mine, next_ms, initial=first_ms), len(mine)))
            for mine in self.switches
        )

    @cached_property
    def makespan_ms(self) -> float:
        """End of the last configuration."""
        return max(
            (
                starts[-1] + configurations[-1].weight_ms
                for starts, configurations in zip(self.starts_ms, self.switches, strict=True)
                if configurations
            ),
            default=0.0,
        )

    @property
    def configurations(self) -> int:
        """How many configurations all switches have."""
        return sum(map(len, self.switches))


def matching_of(column_of: NDArray[np.int32]) -> tuple[Pair, ...]:
    """Return the pairs of a matching given as each row's column, -1 for a row without one."""
    return tuple((i, j) for i, j in enumerate(column_of.tolist()) if j >= 0)


# Changes that even out the switches, for each configuration.
MAX_CHANGES = 64
GAIN = 1e-9  # as a share of the longest switch: less is no gain


One = TypeVar("One", bound=Configuration)
# How long the longer of two switches then takes in ms, and what the longest and the shortest become.
_Change = tuple[float, list[One], list[One]]


@dataclass(frozen=True)
class SwitchTimes:
    """How long a switch takes: its configurations and a delay for each, the first one free if so asked."""

    delay_ms: float
    first_free: bool

    def load_ms(self, configurations: Sequence[Configuration]) -> float:
        """Return when the last of its configurations ends."""
        paid = len(configurations) - (1 if self.first_free and configurations else 0)
        return sum(one.weight_ms for one in configurations) + paid * self.delay_ms


def assigned(configurations: Iterable[One], switches: int, times: SwitchTimes) -> list[list[One]]:
    """Return the configurations of each switch: the longest first, each to the switch with the least load (Graham)."""
    carried: list[list[One]] = [[] for _ in range(switches)]
    load_ms = [0.0] * switches
    for one in sorted(configurations, key=lambda one: -one.weight_ms):
        switch = min(range(switches), key=lambda r: load_ms[r])
        carried[switch].append(one)
        load_ms[switch] += one.weight_ms + times.delay_ms
    return carried


def equalised(
    carried: list[list[One]],
    times: SwitchTimes,
    exchanges: bool = False,
    most: int | None = None,
) -> list[list[One]]:
    """Return the same with the longest switch relieved by the shortest one, again and again until nothing helps.

    Of the longest switch a configuration moves whole, or half of what the two differ by moves in a
    part of one (after Spectra, arXiv 2603.07373); with ``exchanges`` two may also change places.
    Each step takes the change with the smallest new maximum of the two.

    Parameters
    ----------
    most
        Changes at most; by default :data:`MAX_CHANGES` for each configuration.
    """
    carried = [list(mine) for mine in carried]
    if len(carried) < 2:
        return carried
    limit = MAX_CHANGES * (1 + sum(map(len, carried))) if most is None else most
    load_ms = [times.load_ms(mine) for mine in carried]
    for _ in range(limit):
        high = max(range(len(carried)), key=lambda r: load_ms[r])
        low = min(range(len(carried)), key=lambda r: load_ms[r])
        changes = _changes(carried[high], carried[low], times, exchanges)
        after_ms, long, short = min(
            changes, key=lambda change: change[0], default=(math.inf, [], [])
        )
        if after_ms >= load_ms[high] * (1 - GAIN):
            break
        carried[high], carried[low] = long, short
        load_ms[high], load_ms[low] = times.load_ms(long), times.load_ms(short)
    return carried


def _changes(
    long: list[One], short: list[One], times: SwitchTimes, exchanges: bool
) -> Iterator[_Change[One]]:
    """Yield what could be done about a long switch and a short one."""
    differ_ms = times.load_ms(long) - times.load_ms(short)
    standing = {one.circuits: k for k, one in enumerate(short)}
    for k, one in enumerate(long):
        rest = [*long[:k], *long[k + 1 :]]
        same = standing.get(one.circuits)
        yield _change(rest, _with(short, one, same), times)
        extra_ms = 0.0 if same is not None or (times.first_free and not short) else times.delay_ms
        parts = one.split((differ_ms - extra_ms) / 2)
        if parts is not None:
            stays, goes = parts
            yield _change([*long[:k], stays, *long[k + 1 :]], _with(short, goes, same), times)
        if exchanges:
            for m, other in enumerate(short):
                if other.weight_ms < one.weight_ms:
                    yield _change(
                        [*long[:k], other, *long[k + 1 :]],
                        [*short[:m], one, *short[m + 1 :]],
                        times,
                    )


def _change(long: list[One], short: list[One], times: SwitchTimes) -> _Change[One]:
    return max(times.load_ms(long), times.load_ms(short)), long, short


def _with(short: list[One], one: One, same: int | None) -> list[One]:
    """Return a switch's configurations with one more, joined with the one of equal circuits."""
    if same is None:
        return [*short, one]
    return [*short[:same], short[same].joined(one), *short[same + 1 :]]


LP_LIMIT_S = 60.0


def few_matchings(demand_ms: FloatArray) -> list[tuple[Pair, ...]]:
    """Return as many matchings as the fullest line has entries, which together hold every entry once.

    Each is the heaviest one that covers all lines with most entries left (after Spectra,
    arXiv 2603.07373): what lies on such a line counts more than any matching weighs. In a bipartite
    graph such a matching exists (Koenig), so that the largest number of entries in a line falls by
    one a matching: no decomposition has fewer.

    Parameters
    ----------
    demand_ms
        Square, entries of 0 or more.
    """
    left = np.array(demand_ms, np.float64)
    bonus = len(left) * float(left.max(initial=0.0)) + 1.0
    matchings: list[tuple[Pair, ...]] = []
    while (there := left > 0).any():
        out, into = there.sum(axis=1), there.sum(axis=0)
        fullest = max(out.max(), into.max())
        marked = (out == fullest)[:, None] * 1.0 + (into == fullest)
        column_of = heaviest_assignment(np.where(there, left + bonus * marked, 0.0))
        rows = np.flatnonzero(there[np.arange(len(left)), column_of])
        left[rows, column_of[rows]] = 0.0
        matchings.append(tuple(zip(rows.tolist(), column_of[rows].tolist(), strict=True)))
    return matchings


def extended(demand_ms: FloatArray, matchings: list[tuple[Pair, ...]]) -> list[tuple[Pair, ...]]:
    """Return each matching with further entries of the matrix on its free lines, the largest first."""
    row, column = np.nonzero(demand_ms > 0)
    largest = np.lexsort((column, row, -demand_ms[row, column]))
    entries = list(zip(row[largest].tolist(), column[largest].tolist(), strict=True))
    longer = []
    for matching in matchings:
        rows, columns = {i for i, _ in matching}, {j for _, j in matching}
        more = list(matching)
        for i, j in entries:
            if i not in rows and j not in columns:
                rows.add(i)
                columns.add(j)
                more.append((i, j))
        longer.append(tuple(sorted(more)))
    return longer


def least_weights(
    demand_ms: FloatArray,
    matchings: list[tuple[Pair, ...]],
    stop: Stop = never,
) -> FloatArray:
    """Return the shortest times of matchings that serve every entry: a linear programme in HiGHS.

    Minimise the sum of w, where over the matchings with (i, j) the sum of w is at least D[i, j].
    """
    rows: dict[Pair, list[int]] = {}
    for m, matching in enumerate(matchings):
        for pair in matching:
            rows.setdefault(pair, []).append(m)
    largest = float(demand_ms.max(initial=0.0))
    model = MipBuilder()
    for _ in matchings:
        model.new(np.inf, cost=1.0)
    for pair, of in sorted(rows.items()):
        model.row(dict.fromkeys(of, 1.0), lower=float(demand_ms[pair]) / largest)
    outcome = solve(model.built(), Run(LP_LIMIT_S, 0.0, 0.0), None, stop)
    covering = np.array([max(demand_ms[pair] for pair in one) for one in matchings])
    if outcome.ended != "optimal" or outcome.values is None:
        return covering
    return _covering(demand_ms, np.maximum(outcome.values, 0.0) * largest, rows)


def _covering(
    demand_ms: FloatArray,
    weights: FloatArray,
    rows: dict[Pair, list[int]],
) -> FloatArray:
    """Return weights that serve every entry in full: a solver is content with a few millionths less."""
    weights[weights < ROUNDING * demand_ms.max()] = 0.0
    for pair, of in rows.items():
        missing = float(demand_ms[pair]) - float(weights[of].sum())
        if missing > 0:
            weights[max(of, key=lambda m: weights[m])] += missing
    return weights


def shortest_few(
    demand_ms: FloatArray, stop: Stop = never, use_lp: bool = True
) -> list[Configuration]:
    """Return few matchings, extended, for the shortest times that serve the matrix.

    Without ``use_lp`` each in turn stands as long as its largest entry that is not served yet.
    """
    matchings = extended(demand_ms, few_matchings(demand_ms))
    if not matchings:
        return []
    if use_lp:
        weights = least_weights(demand_ms, matchings, stop)
    else:
        weights = _one_after_the_other(demand_ms, matchings)
    pairs = zip(matchings, weights.tolist(), strict=True)
    return [Configuration(matching, weight) for matching, weight in pairs if weight > 0]


def _one_after_the_other(demand_ms: FloatArray, matchings: list[tuple[Pair, ...]]) -> FloatArray:
    left, weights = np.array(demand_ms, np.float64), np.zeros(len(matchings))
    for m, matching in enumerate(matchings):
        lines = tuple(np.array(matching).T)
        weights[m] = left[lines].max()
        left[lines] = np.maximum(left[lines] - weights[m], 0.0)
    return weights


def evened(demand_ms: FloatArray) -> FloatArray:
    """Return the matrix with additions after which every line has the sum of the longest one."""
    even, longest = np.array(demand_ms, np.float64), _longest(demand_ms)
    rows, columns = longest - even.sum(axis=1), longest - even.sum(axis=0)
    i = j = 0
    while i < len(even) and j < len(even):
        more = min(rows[i], columns[j])
        even[i, j] += more
        rows[i] -= more
        columns[j] -= more
        if rows[i] <= columns[j]:
            i += 1
        else:
            j += 1
    return even


def _longest(demand_ms: FloatArray) -> float:
    """Return the sum of the longest row or column."""
    return float(
        max(demand_ms.sum(axis=1).max(initial=0.0), demand_ms.sum(axis=0).max(initial=0.0))
    )


def peeled(demand_ms: FloatArray, stop: Stop = never) -> list[Configuration]:
    """Return the matrix with even lines as matchings, each the one with the largest smallest entry (Birkhoff).

    Circuits that serve none of the demand are left out.
    """
    return begun_by_peeling(demand_ms, peels(demand_ms, stop), stop, use_lp=False)


def peels(demand_ms: FloatArray, stop: Stop = never) -> list[tuple[NDArray[np.int32], float]]:
    """Return the matchings of :func:`peeled` in their order: the column of each row, and the time."""
    left = evened(demand_ms)
    least = ROUNDING * 100 * float(left.max(initial=0.0))
    known: NDArray[np.int32] = np.full(len(left), -1, np.int32)
    found: list[tuple[NDArray[np.int32], float]] = []
    rows = np.arange(len(left))
    while left.max(initial=0.0) > least and not stop():
        known, weight = bottleneck_matching(left, known)
        if weight <= 0:
            break
        left[rows, known] -= weight
        left[left < least] = 0.0
        found.append((known, weight))
    return found


def begun_by_peeling(
    demand_ms: FloatArray,
    first: list[tuple[NDArray[np.int32], float]],
    stop: Stop = never,
    use_lp: bool = True,
) -> list[Configuration]:
    """Return the first peels of a matrix, and few matchings for what they leave.

    What rounding leaves of a pair is no matching of its own, whose set-up would count: the peel that carries the
    pair longest stands so much longer.
    """
    left, rows = np.array(demand_ms, np.float64), np.arange(len(demand_ms))
    begun: list[tuple[Pair, ...]] = []
    weights: list[float] = []
    carried: dict[Pair, list[int]] = {}
    for column, weight in first:
        asked = tuple(pair for pair in matching_of(column) if left[pair] > 0)
        left[rows, column] = np.maximum(left[rows, column] - weight, 0.0)
        if asked:
            for pair in asked:
                carried.setdefault(pair, []).append(len(begun))
            begun.append(asked)
            weights.append(weight)
    tiny = ROUNDING * 1e3 * _longest(demand_ms)  # beyond what peels leave
    rounded = {pair: of for pair, of in carried.items() if 0 < left[pair] < tiny}
    for pair in rounded:
        left[pair] = 0.0
    stands = _covering(demand_ms, np.array(weights), rounded).tolist()
    rest = shortest_few(left, stop, use_lp)
    return [*map(Configuration, begun, stands), *rest]
