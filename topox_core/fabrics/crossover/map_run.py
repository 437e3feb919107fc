"""A map in the background: the coarse grid, plans passed on, then finer where the winner changes."""

import concurrent.futures
from collections.abc import Collection, Generator, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, product
from typing import Any

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import EQUAL, run_with_best_lowering
from topox_core.fabrics.crossover.sweep import (
    Axes,
    Call,
    Column,
    ColumnResult,
    MapKnown,
    MapOutcome,
    Place,
    Point,
    Sweep,
    Winner,
    at_point,
)
from topox_core.fabrics.planning.passed_plans import PassedPlan, best_passed, rounding_ms
from topox_core.fabrics.registry import FABRICS, LETTERS
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.runs.cells import CellsResult, CellsRun
from topox_core.runs.executor import Shared
from topox_core.runs.run import RunsInTurn, Turn
from topox_core.text.numbers import (
    delay_label,
    enumeration,
    first_that_holds,
    percent,
    short,
    whole_percent,
)

OPEN = {"gap": "◐", "rounding": "≈"}
OPEN_WORDS = {
    "gap": "◐ open: a better plan would change this",
    "rounding": "≈ decided by rounding to slots",
}


@dataclass(frozen=True)
class MapPicture:
    """What a map shows: the points that were computed, who is taken to win between them, and the words for it."""

    axes: Axes
    points: Sequence[Point]
    between: Mapping[tuple[float, float], Winner]
    labels: Mapping[str, str]

    @property
    def winners(self) -> dict[tuple[float, float], Winner]:
        """The winner of every place (value, delay) that is known or taken as known."""
        return {**self.between, **{(p.value, p.delay_ms): p.winner for p in self.points}}


def cell_words(one: Winner) -> str:
    """Return what stands in a cell that was computed: who wins, the lead over the next in %, and whether it is open."""
    if not one.fabric:
        words = "=" if one.equals else "none"
    else:
        lead = "=" if not one.lead else whole_percent(one.lead)
        words = f"{LETTERS[one.fabric]} {lead}"
    return f"{words} {OPEN[one.doubt]}" if one.doubt else words


def winner_words(one: Winner, labels: Mapping[str, str]) -> str:
    """Return who wins a point, and by how much over which fabric, in words."""
    if not one.equals:
        return "no fabric can run"
    names = [labels[name] for name in one.equals]
    if not one.fabric:
        return f"{enumeration(names)} are equal"
    if len(names) == 1:
        over = f" leads {labels[one.next]} by {100 * one.lead:.3g} %" if one.next else " runs alone"
        return f"{names[0]}{over}"
    over = f"; leads {labels[one.beyond]} by {100 * one.beyond_lead:.3g} %" if one.beyond else ""
    return f"{names[0]}, as fast as {enumeration(names[1:])} within {percent(EQUAL)}{over}"


def outcome_words(name: str, point: Point, labels: Mapping[str, str]) -> str:
    """Return the time of a fabric at a point, and what else is to be said of it."""
    one = point.outcomes[name]
    words = f"{labels[name]} {short(one.iteration_ms)} ms"
    if one.keeps_fixed and one.plan_ms is not None:
        words += f", circuits fixed; best plan that switches {short(one.plan_ms)} ms"
    return words


def around(values: Sequence[float], value: float) -> tuple[float, ...]:
    """Return the values of an axis that another lies between; itself where it is one, the nearest where it lies beyond."""
    below, above = sorted(v for v in values if v <= value), sorted(v for v in values if v >= value)
    return tuple(dict.fromkeys((*below[-1:], *above[:1])))


def fastest_words(winners: Collection[Winner], labels: Mapping[str, str]) -> str:
    """Return who is fastest at some places, each once: A; A or B; B and C equally."""
    names = (
        labels[one.fabric]
        if one.fabric
        else f"{enumeration([labels[name] for name in one.equals])} equally"
        if one.equals
        else "none"
        for one in winners
    )
    return enumeration(list(dict.fromkeys(names)), "or")


def setting_words(picture: MapPicture, now: tuple[float, float]) -> str:
    """Return who wins at the setting (value, delay in ms) or at the places around it, in a sentence; empty where one is unknown."""
    at = {(p.value, p.delay_ms): p.winner for p in picture.points}.get(now)
    if at is not None:
        sign = f" ({OPEN_WORDS[at.doubt]})" if at.doubt else ""
        return f"At your setting: {winner_words(at, picture.labels)}{sign}."
    axes, winners = picture.axes, picture.winners
    near = set(product(around(axes.values, now[0]), around(axes.delay_ms, now[1])))
    if not near <= winners.keys():
        return ""
    names = fastest_words([winners[place] for place in sorted(near)], picture.labels)
    return f"The fastest at the places of the map around your setting: {names}."


def point_names(picture: MapPicture) -> dict[tuple[float, float], str]:
    """Return every cell of a map, (value, delay in ms), with where it is and who wins it in words."""
    unit = "G" if picture.axes.by == "port_gbps" else " ports"
    return {
        (
            value,
            delay,
        ): f"{value:g}{unit}, {delay_label(delay)}: {picture.labels.get(one.fabric, 'equal')}"
        for (value, delay), one in sorted(picture.winners.items())
    }


def points_won(picture: MapPicture) -> str:
    """Return how many computed points each fabric wins, in words."""
    won = [p.winner.fabric for p in picture.points]
    return ", ".join(f"{picture.labels[n]} {won.count(n)}" for n in FABRICS if n in won) or "none"


def turns_by_delay(picture: MapPicture, value: float) -> str:
    """Return who wins between which delays at a value, in words; between two columns where both agree, and where they do not.

    Empty while the shortest and the longest delay are not known in each.
    """
    columns, winners = around(picture.axes.values, value), picture.winners
    fastest = {
        delay: {fastest_words([winners[column, delay]], picture.labels) for column in columns}
        for delay in sorted(picture.axes.delay_ms)
        if all((column, delay) in winners for column in columns)
    }
    if not {min(picture.axes.delay_ms), max(picture.axes.delay_ms)} <= fastest.keys():
        return ""
    parts, open_at, known = [], [], list(fastest)
    for names, delays in groupby(
        known, key=lambda at: fastest[at] if len(fastest[at]) == 1 else None
    ):
        run = list(delays)
        start, last = delay_label(run[0]), delay_label(run[-1])
        before, after = known[: known.index(run[0])], known[known.index(run[-1]) + 1 :]
        if names is None:  # as far as the nearest delays at which it is decided
            ends = [f"above {delay_label(delay)}" for delay in before[-1:]]
            ends += [f"below {delay_label(delay)}" for delay in after[:1]]
            open_at.append(" and ".join(ends) or "at every delay")
            continue
        where = first_that_holds(
            (not before and not after, "at every delay"),
            (not before, f"up to {last}"),
            (not after, f"from {start}"),
            (len(run) < 3, f"at {enumeration([delay_label(delay) for delay in run])}"),
            (True, f"from {start} to {last}"),
        )
        parts.append(f"{min(names)} {where}")
    told = ", ".join(parts)
    if not open_at:
        return told
    what = "port speed" if picture.axes.by == "port_gbps" else "number of ports"
    return f"{told}{'; ' if told else ''}{enumeration(open_at)} it depends on the {what}"


def map_rows(picture: MapPicture, value: float | None = None) -> list[dict[str, Any]]:
    """Return the table of a map: every computed point, or those of one value."""
    labels = picture.labels
    rows = []
    for p in picture.points:
        one = p.winner
        if value is not None and p.value != value:
            continue
        row: dict[str, Any] = {
            "value": p.value,
            "delay (ms)": p.delay_ms,
            "winner": labels.get(one.fabric, "equal"),
            f"equal (within {percent(EQUAL)})": enumeration([labels[name] for name in one.equals])
            if len(one.equals) > 1
            else "",
            "lead over the next": f"{100 * one.lead:.3g} %" if one.lead else "",
            "next": labels.get(one.next, ""),
            "open": OPEN_WORDS.get(one.doubt, ""),
        }
        row |= {f"{labels[n]} (ms)": p.outcomes[n].iteration_ms for n in FABRICS if n in p.outcomes}
        plan = p.outcomes.get("scheduled")
        if plan is not None and plan.plan_ms is not None:
            row |= {
                "best plan that switches (ms)": plan.plan_ms,
                "its bound (ms)": plan.plan_bound_ms,
            }
        if p.failed:
            row["cannot run"] = "; ".join(p.failed.values())
        rows.append(row)
    return rows


# The coarse grid has at most so many delays, and so many port speeds or degrees besides the focus.
COARSE_DELAYS, COARSE_VALUES = 5, 3

_Block = tuple[int, int, int, int]  # first and last value, first and last delay, by position


def wanted(axes: Axes, points: Mapping[Place, Point]) -> tuple[Place, ...]:
    """Return the points to compute next, from long delays to short ones; none once the map is complete."""
    places = {
        place
        for block in _blocks(axes, points)
        for place in _corners(axes, block)
        if place not in points
    }
    return tuple(sorted(places, key=lambda place: (-place[1], place[0])))


def inferred(axes: Axes, points: Mapping[Place, Point]) -> dict[Place, Winner]:
    """Return the winner of the points that are not computed since all corners of their block agree."""
    values, delays = sorted(axes.values), sorted(axes.delay_ms)
    filled: dict[Place, Winner] = {}
    for block in _blocks(axes, points):
        corners = [points.get(place) for place in _corners(axes, block)]
        if not _agree(corners) or corners[0] is None:
            continue
        x0, x1, y0, y1 = block
        for place in product(values[x0 : x1 + 1], delays[y0 : y1 + 1]):
            if place not in points:
                filled[place] = Winner(corners[0].winner.fabric, corners[0].winner.equals)
    return filled


def _blocks(axes: Axes, points: Mapping[Place, Point]) -> Iterator[_Block]:
    """Yield the blocks as far as they are cut by now."""
    focus = () if axes.focus is None else (sorted(axes.values).index(axes.focus),)
    columns = _steps(len(axes.values), COARSE_VALUES, focus)
    rows = _steps(len(axes.delay_ms), COARSE_DELAYS)
    waiting = [(x0, x1, y0, y1) for (x0, x1), (y0, y1) in product(columns, rows)]
    while waiting:
        block = waiting.pop()
        corners = [points.get(place) for place in _corners(axes, block)]
        parts = _cut(block)
        if None in corners or _agree(corners) or len(parts) == 1:
            yield block
        else:
            waiting += parts


def _steps(count: int, most: int, besides: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Return the first and last positions of the coarse steps along an axis, ``besides`` among them."""
    if count == 1:
        return [(0, 0)]
    steps = min(most, count) - 1
    positions = {round(k * (count - 1) / steps) for k in range(steps + 1)}
    return list(pairwise(sorted(positions.union(besides))))


def _corners(axes: Axes, block: _Block) -> set[Place]:
    values, delays = sorted(axes.values), sorted(axes.delay_ms)
    x0, x1, y0, y1 = block
    return {(values[x], delays[y]) for x in (x0, x1) for y in (y0, y1)}


def _agree(corners: list[Point | None]) -> bool:
    return len({point.winner.key for point in corners if point is not None}) == 1


def _cut(block: _Block) -> list[_Block]:
    x0, x1, y0, y1 = block
    return [(a, b, c, d) for (a, b), (c, d) in product(_halves(x0, x1), _halves(y0, y1))]


def _halves(first: int, last: int) -> list[tuple[int, int]]:
    middle = (first + last) // 2
    return [(first, middle), (middle, last)] if last - first > 1 else [(first, last)]


def run_call(sweep: Sweep, call: Call) -> Point | ColumnResult:
    """Make one call of a map."""
    return _pass_on(sweep, call) if isinstance(call, Column) else _run_point(sweep, *call)


def _request(sweep: Sweep, value: float, delay_ms: float) -> JobRequest:
    cluster = at_point(sweep.cluster, sweep.axes.by, value, delay_ms)
    return JobRequest(sweep.task_graph, cluster, sweep.settings, sweep.options_at(value))


def _run_point(sweep: Sweep, value: float, delay_ms: float) -> Point:
    """Run one point; why a fabric cannot run stands beside the others' outcomes."""
    request = _request(sweep, value, delay_ms)
    failed: dict[str, str] = {}
    runs: dict[str, FabricRun] = {}
    for name in sweep.fabrics:
        try:
            runs[name] = run_with_best_lowering(name, replace(request, runs=runs))
        except InputError as error:
            failed[name] = str(error)
    plan = PassedPlan.of(runs["scheduled"].result) if "scheduled" in runs else None
    return Point(value, delay_ms, {name: _outcome(run) for name, run in runs.items()}, failed, plan)


def _outcome(run: FabricRun) -> MapOutcome:
    result = run.result
    if result is None:
        return MapOutcome(run.iteration_ms)
    switched = result.alternative or result
    if switched.switching == "fixed" or result.settings.switching == "fixed":
        return MapOutcome(run.iteration_ms, keeps_fixed=True)
    return MapOutcome(
        run.iteration_ms,
        plan_ms=switched.makespan_ms,
        plan_bound_ms=next(
            (one.bound_ms for one in result.classes if one.changes_circuits), switched.bound_ms
        ),
        rounding_ms=rounding_ms(switched),
        keeps_fixed=result.switching == "fixed",
    )


def _pass_on(sweep: Sweep, column: Column) -> ColumnResult:
    """Carry the plans of a column out at every shorter delay, and keep what is better there."""
    better: ColumnResult = {}
    for point in column.points:
        request = _request(sweep, point.value, point.delay_ms)
        alone = point.outcomes["scheduled"]
        passed = best_passed(request, column.plans, alone.iteration_ms)
        if passed is None:
            continue
        makespan_ms = passed.execution.makespan_ms
        bound_ms = min(alone.plan_bound_ms, passed.bound.ms, makespan_ms)
        better[point.delay_ms] = replace(
            alone,
            iteration_ms=makespan_ms,
            plan_ms=makespan_ms,
            plan_bound_ms=bound_ms,
            keeps_fixed=False,
        )
    return better


@dataclass(frozen=True)
class MapResult:
    """The points that are there, whether the map is complete, and why calls brought nothing, once for each reason."""

    points: tuple[Point, ...]
    complete: bool
    lost: tuple[str, ...]


def map_run(
    sweep: Sweep,
    known: MutableMapping[str, Point | ColumnResult] | None = None,
    executor: concurrent.futures.Executor | int | None = None,
) -> RunsInTurn[MapResult]:
    """Start to compute a map in rounds, each a :class:`~topox_core.runs.cells.CellsRun`.

    Within a value every schedule that was found is carried out at all shorter delays, so that the
    scheduled time never grows as the delay shrinks.

    Parameters
    ----------
    sweep
        What to compute.
    known
        Results computed before, by :meth:`Sweep.key`, which are not computed again; new ones are
        added.
    executor
        Who computes: an executor, which whoever made it ends, or how many worker processes of each
        round; by default one a core.
    """
    there = {} if known is None else known
    failures: dict[Call, Exception] = {}
    lost: list[str] = []

    def rounds() -> Generator[Turn, CellsResult[Call, Point | ColumnResult], None]:
        words = "coarse grid"
        # Workers read of a map's axes only what varies: maps of other values share it.
        shared = Shared.of(sweep, sweep.job_digest)
        while asked := missing_calls(sweep, there, failures):
            run = CellsRun(asked, sweep.key, run_call, there, executor, shared=shared)
            ended = yield Turn(words, run)
            failures.update(ended.failures)
            lost.extend(ended.lost)
            if ended.stopped:
                return
            if not isinstance(asked[0], Column):
                words = "finer where the winner changes"

    def read(_turn: Turn | None, _ended: bool) -> MapResult:
        complete = is_complete(sweep, there)
        return MapResult(sweep.points(there), complete, tuple(dict.fromkeys(lost)))

    return RunsInTurn(rounds(), read, "steps")


def missing_calls(sweep: Sweep, known: MapKnown, lost: Collection[Call] = ()) -> list[Call]:
    """Return what to compute next but for calls that were ``lost``: what was planned is passed on before more is."""
    columns = (sweep.column(value, known) for value in sweep.axes.values)
    passed: list[Call] = [
        column
        for column in columns
        if column.worth_a_call and sweep.key(column) not in known and column not in lost
    ]
    points = {(point.value, point.delay_ms): point for point in sweep.points(known)}
    return passed or [place for place in wanted(sweep.axes, points) if place not in lost]


def is_complete(sweep: Sweep, known: MapKnown) -> bool:
    """Return whether nothing is left to compute of a map."""
    return not missing_calls(sweep, known)
