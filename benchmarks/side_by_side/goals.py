"""Whether the goals that the suite's README sets are reached, from the solves of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf

from benchmarks.side_by_side.instances import HALF, TOTAL, Instance
from benchmarks.side_by_side.solves import Solve

SHORT_S, LONG_S = 10.0, 60.0
CLOSE = 1.005  # of the best value known, at SHORT_S
AS_GOOD = 25 / 31  # share of the instances at or below the best value known
MOVED = 3  # open instances on which value or bound becomes better
TINY_S, SMALL_S, FIRST_S = 0.1, 2.0, 1.0
ONE_ENGINE = 1.02
LATE_S = 0.3
GAPS = (
    (("moe",), 0.05),
    (("random",), 0.08),
    (("1f1b", "interleaved", "pipeline", "fsdp", "dlrm", "flexnet"), 0.01),
)

SEEDS = (("the worst seed", False), ("the median seed", True))


@dataclass(frozen=True)
class Verdict:
    """One goal: yes, no, or None where this run did not measure it; and the instances or figures behind it."""

    goal: str
    holds: bool | None
    why: str


@dataclass(frozen=True)
class Run:
    """All solves of one run."""

    instances: list[Instance]
    solves: list[Solve]

    def of(self, who: str, seconds: float, typical: bool = False) -> list[tuple[Instance, Solve]]:
        """Return the instances with what one solver made of them within a time limit, of several seeds the worst (or the median)."""
        found = []
        for one in self.instances:
            seeds = self.seeds_of(one.name, who, seconds)
            if seeds:
                found.append((one, seeds[len(seeds) // 2 if typical else -1]))
        return found

    def seeds_of(self, instance: str, who: str, seconds: float) -> list[Solve]:
        """Return the solves of one instance that differ in their seeds, the best first."""
        asked = (instance, who, seconds)
        of_it = [s for s in self.solves if (s.instance, s.who, s.seconds) == asked]
        return sorted(of_it, key=lambda solve: solve.makespan or inf)

    def pairs(self, seconds: float, typical: bool = False) -> list[tuple[Instance, Solve, Solve]]:
        """Return ``auto`` within so many seconds beside plain CP-SAT within a minute."""
        peers = {one.name: solve for one, solve in self.of("plain-cpsat", LONG_S)}
        return [
            (one, solve, peers[one.name])
            for one, solve in self.of("auto", seconds, typical)
            if one.name in peers
        ]


def goals(run: Run) -> Iterator[Verdict]:
    """Yield the verdicts, in the README's order."""
    short, long = run.of("auto", SHORT_S), run.of("auto", LONG_S)
    yield _none_of(
        "1  10 s never above CP-SAT at 60 s", run.pairs(SHORT_S), _worse(run.pairs(SHORT_S))
    )
    known = [(one, solve) for one, solve in short if one.best_known is not None]
    yield from _for_seeds(
        run,
        SHORT_S,
        "1  10 s within 0.5 % of the best value known",
        lambda one, solve: one.best_known is None or _ratio(one, solve) <= CLOSE,
        lambda one, solve: f"{one.name} {solve.makespan} > {one.best_known}",
    )
    good = sum(_ratio(one, solve) <= 1 for one, solve in known)
    yield Verdict(
        "1  10 s at or below the best value known on 25 of 31",
        good >= AS_GOOD * len(known) if known else None,
        f"{good} of {len(known)}" if known else "",
    )
    moved = [
        f"{one.name} {solve.bound}..{solve.makespan} (was {one.best_bound}..{one.best_known})"
        for one, solve in long
        if one.open
        and solve.makespan is not None
        and (_ratio(one, solve) < 1 or solve.bound > (one.best_bound or 0))
    ]
    unsolved = sum(one.open for one, _ in long)
    yield Verdict(
        "2  60 s better than known on three open instances",
        len(moved) >= MOVED if unsolved >= MOVED else None,
        _few(moved) if moved or not unsolved else f"none of {unsolved}",
    )
    yield _none_of(
        "3  60 s bounds at least the best known",
        [one for one, _ in long if one.best_bound is not None],
        (
            f"{one.name} {solve.bound} < {one.best_bound}"
            for one, solve in long
            if solve.bound < (one.best_bound or 0)
        ),
    )
    yield from _proofs(short)
    large = [(one, solve) for one, solve in short if one.size == "large"]
    yield _none_of(
        "4  large: first schedule within 1 s",
        large,
        (
            f"{one.name} {solve.first_s} s"
            for one, solve in large
            if solve.first_s is None or solve.first_s > FIRST_S
        ),
    )
    single = [
        (one, solve)
        for one, solve in run.of("highs", SHORT_S)
        if one.best_known and one.size != "large"
    ]
    yield _none_of(
        "5  highs alone within 2 % of the best value known at 10 s",
        single,
        (
            f"{one.name} {_ratio(one, solve):.3f}"
            for one, solve in single
            if _ratio(one, solve) > ONE_ENGINE
        ),
    )
    for word, typical in SEEDS:
        pairs = run.pairs(1.0, typical)
        yield _none_of(f"+  1 s never above CP-SAT at 60 s, {word}", pairs, _worse(pairs))
    side_by_side = run.pairs(LONG_S)
    yield _none_of(
        "+  60 s bounds at least CP-SAT's in the same time",
        side_by_side,
        (
            f"{one.name} {mine.bound} < {theirs.bound}"
            for one, mine, theirs in side_by_side
            if mine.bound < theirs.bound
        ),
    )
    yield from _for_seeds(
        run,
        LONG_S,
        "+  60 s gap at most 1 % (MoE 5 %, random 8 %)",
        lambda one, solve: _gap(solve) <= _gap_allowed(one),
        lambda one, solve: f"{one.name} {_gap(solve):.1%}",
    )
    timed = [solve for solve in run.solves if solve.who in ("auto", "highs", "cpsat")]
    yield _none_of(
        "   time limit kept within 0.3 s",
        timed,
        (
            f"{s.instance} {s.who} {s.solve_s:.2f} s"
            for s in timed
            if s.solve_s > s.seconds + LATE_S
        ),
    )
    every = [solve for solve in run.solves if solve.makespan is not None]
    yield _none_of(
        "   every schedule passed its checker",
        every,
        (f"{s.instance} {s.who}" for s in every if not s.checked),
    )


def _proofs(short: list[tuple[Instance, Solve]]) -> Iterator[Verdict]:
    tiny = [(one, solve) for one, solve in short if one.size == "tiny"]
    yield _none_of("3  tiny proved in 0.1 s", tiny, _late(tiny, TINY_S))
    small = [
        (one, solve) for one, solve in short if one.size == "small" and not one.has(HALF, TOTAL)
    ]
    yield _none_of("3  small, full duplex, proved in 2 s", small, _late(small, SMALL_S))
    named = [(one, solve) for one, solve in short if one.name == "small-dlrm-half-n8l4"]
    yield _none_of(
        "3  small-dlrm-half-n8l4 proved at 50",
        named,
        (
            f"{solve.bound}..{solve.makespan}"
            for _, solve in named
            if (solve.bound, solve.makespan) != (50, 50)
        ),
    )


def _late(solves: Iterable[tuple[Instance, Solve]], seconds: float) -> Iterator[str]:
    for one, solve in solves:
        if solve.status != "optimal" or solve.solve_s > seconds:
            yield f"{one.name} {solve.status} {solve.solve_s:.2f} s"


def _for_seeds(
    run: Run,
    seconds: float,
    goal: str,
    good: Callable[[Instance, Solve], bool],
    words: Callable[[Instance, Solve], str],
) -> Iterator[Verdict]:
    """Yield the verdicts on a goal of ``auto`` for the worst and for the median seed."""
    for word, typical in SEEDS:
        solves = run.of("auto", seconds, typical)
        yield _none_of(
            f"{goal}, {word}", solves, (words(*solve) for solve in solves if not good(*solve))
        )


def _none_of(
    goal: str,
    measured: list[object]
    | list[tuple[Instance, Solve]]
    | list[tuple[Instance, Solve, Solve]]
    | list[Instance]
    | list[Solve],
    against: Iterable[str],
) -> Verdict:
    """Return the verdict on a goal that holds where nothing speaks against it."""
    if not measured:
        return Verdict(goal, None, "")
    bad = list(against)
    return Verdict(goal, not bad, _few(bad) if bad else f"all {len(measured)}")


def _worse(pairs: Iterable[tuple[Instance, Solve, Solve]]) -> Iterator[str]:
    """Yield the instances on which the first solve is above the second."""
    for one, mine, theirs in pairs:
        longer = theirs.makespan is not None and (mine.makespan or 0) > theirs.makespan
        if mine.makespan is None or longer:
            yield f"{one.name} {mine.makespan} > {theirs.makespan}"


def _ratio(one: Instance, solve: Solve) -> float:
    return (
        solve.makespan / one.best_known
        if solve.makespan is not None and one.best_known
        else float("inf")
    )


def _gap(solve: Solve) -> float:
    return (solve.makespan - solve.bound) / solve.makespan if solve.makespan else 1.0


def _gap_allowed(one: Instance) -> float:
    return next((gap for words, gap in GAPS if one.has(*words)), 1.0)


def _few(lines: list[str], most: int = 6) -> str:
    return "; ".join(lines[:most]) + (
        f"; and {len(lines) - most} more" if len(lines) > most else ""
    )
