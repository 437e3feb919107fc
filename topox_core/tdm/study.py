"""What time division gains over the number of jobs and the context length: many seeds, every algorithm on the same jobs.

The longest of many pod groups sets a round, often one large job in it, so that rounds of different
seeds differ far more than algorithms do: reductions are taken seed by seed and then summarised.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from topox_core.errors import InputError
from topox_core.io.json import record_of
from topox_core.runs.cells import CellsRun
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.round import TdmSettings
from topox_core.tdm.solve import check, solve

BASELINE = "non-tdm"
MAX_CELLS = 2_000
DEFAULT_ALGORITHMS = ("hill-climbing", "best-grouping", "all-train")


@dataclass(frozen=True)
class StudyAxes:
    """The points of a study: every number of jobs with every context length (tokens).

    Raises
    ------
    InputError
        If an axis is empty or holds a value twice.
    """

    jobs: tuple[int, ...] = (32, 64, 128, 256, 512)
    context: tuple[int, ...] = (8192,)

    def __post_init__(self) -> None:
        for name, values in (("jobs", self.jobs), ("context", self.context)):
            if not values:
                raise InputError(
                    "is empty: a study needs at least one value", file="study", field=name
                )
            if len(set(values)) < len(values):
                raise InputError("holds a value twice", file="study", field=name)

    def points(self) -> Iterator[tuple[int, int]]:
        """Yield (jobs, context), context by context."""
        for context, jobs in product(self.context, self.jobs):
            yield jobs, context


@dataclass(frozen=True)
class StudyCell:
    """One call: all algorithms on the jobs of one seed at one point."""

    jobs: int
    context: int
    seed: int


@dataclass(frozen=True)
class CellOutcome:
    """What is kept of one round; how long it took to find is no part of it: same seed, same outcome."""

    round_s: float
    mean_round_s: float
    bound_s: float


@dataclass(frozen=True)
class StudyCellResult:
    """The outcomes of a cell by algorithm, the baseline among them, and in words why an algorithm has none.

    Attributes
    ----------
    communicating_s, computing_s
        How the round without time division spends its time.
    """

    outcomes: dict[str, CellOutcome]
    failed: dict[str, str]
    communicating_s: float = 0.0
    computing_s: float = 0.0

    @property
    def ratio(self) -> float | None:
        """C/T, communicating to computing without time division; None if it computes nothing, or is not known."""
        return self.communicating_s / self.computing_s if self.computing_s > 0 else None

    def reduction(self, algorithm: str) -> float | None:
        """Return how much shorter an algorithm's round is than the baseline's (0 to 1), or None if one is missing."""
        mine, base = self.outcomes.get(algorithm), self.outcomes.get(BASELINE)
        return None if mine is None or base is None else shorter_by(mine.round_s, base.round_s)


@dataclass(frozen=True)
class Spread:
    """Mean and spread of one number over seeds."""

    mean: float
    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Return the spread of at least one value; quartiles between values are interpolated."""
        numbers = np.asarray(values, np.float64)
        least, lower, median, upper, most = np.quantile(
            numbers, (0.0, 0.25, 0.5, 0.75, 1.0)
        ).tolist()
        return Spread(float(numbers.mean()), least, lower, median, upper, most)


@dataclass(frozen=True)
class StudyRow:
    """One algorithm at one point.

    Attributes
    ----------
    seeds
        How many seeds are in it so far.
    round_s, mean_round_s
        Over seeds; ``mean_round_s`` is the mean over jobs of the round that each sees.
    reduction
        Of the round against the one without time division, seed by seed; ``mean_reduction`` of the
        mean over jobs.
    gap
        To the bound that the algorithm itself gives, for the rings of Algorithm 3 or over all of
        them.
    """

    jobs: int
    context: int
    algorithm: str
    seeds: int
    round_s: Spread
    mean_round_s: Spread
    reduction: Spread
    mean_reduction: Spread
    gap: Spread

    def as_record(self) -> dict[str, Any]:
        """Return it as a flat row of a table."""
        row = record_of(self, "jobs context algorithm seeds")
        for name in ("round_s", "reduction", "mean_round_s", "mean_reduction", "gap"):
            row |= {
                f"{name} {part}".replace("_", " "): value
                for part, value in asdict(getattr(self, name)).items()
            }
        return row


@dataclass(frozen=True)
class Study:
    """A study to compute; what is not swept is the set-up's, what an algorithm may choose the settings'.

    Raises
    ------
    InputError
        If there is no seed or one is named twice, an algorithm does not exist, or there are too
        many calls.
    """

    axes: StudyAxes = field(default_factory=StudyAxes)
    seeds: tuple[int, ...] = tuple(range(10))
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS
    setup: SetUp = field(default_factory=SetUp)
    settings: TdmSettings = field(default_factory=TdmSettings)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(
                "must name at least one seed, and none twice", file="study", field="seeds"
            )
        for name in self.algorithms:
            if name not in ALGORITHMS:
                problem = f"must be of {', '.join(ALGORITHMS)} (got {name!r})"
                raise InputError(problem, file="study", field="algorithms")
        object.__setattr__(self, "algorithms", tuple(dict.fromkeys((BASELINE, *self.algorithms))))
        check(self.settings)
        cells = len(self.axes.jobs) * len(self.axes.context) * len(self.seeds)
        if cells > MAX_CELLS:
            raise InputError(f"has {cells:,} points and seeds (limit {MAX_CELLS:,})", file="study")

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything: the key of a finished study."""
        parts = [self._job_key, asdict(self.axes), self.seeds]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @cached_property
    def _job_key(self) -> str:
        setup = replace(self.setup, jobs=1, context=1, seed=0)
        settings = replace(self.settings, algorithm=BASELINE, seed=0)
        return json.dumps([asdict(setup), settings.as_record(), self.algorithms], sort_keys=True)

    def cells(self) -> list[StudyCell]:
        """Return the calls, seed by seed, so that every point has something soon."""
        return [
            StudyCell(jobs, context, seed)
            for seed in self.seeds
            for jobs, context in self.axes.points()
        ]

    def key(self, cell: StudyCell) -> str:
        """Return the key under which a cell's result may be kept."""
        return hashlib.sha256(f"{self._job_key} {cell}".encode()).hexdigest()

    def rows(self, known: Mapping[StudyCell, StudyCellResult]) -> list[StudyRow]:
        """Return one row a point and algorithm, over the seeds that are known by now."""
        rows = []
        for (jobs, context), algorithm in product(self.axes.points(), self.algorithms):
            results = [
                known[cell]
                for seed in self.seeds
                if (cell := StudyCell(jobs, context, seed)) in known
            ]
            pairs = [
                (result.outcomes[algorithm], result.outcomes[BASELINE])
                for result in results
                if algorithm in result.outcomes and BASELINE in result.outcomes
            ]
            if pairs:
                rows.append(_row(jobs, context, algorithm, pairs))
        return rows

    def start(
        self,
        known: MutableMapping[str, StudyCellResult] | None = None,
        executor: concurrent.futures.Executor | int | None = None,
    ) -> CellsRun[StudyCell, str, StudyCellResult]:
        """Start to compute the study; the arguments are those of :class:`~topox_core.runs.cells.CellsRun`."""
        function = partial(run_cell, self.setup, self.settings, self.algorithms)
        return CellsRun(self.cells(), self.key, function, known, executor)


def _row(
    jobs: int, context: int, algorithm: str, pairs: Sequence[tuple[CellOutcome, CellOutcome]]
) -> StudyRow:
    mine = [one for one, _ in pairs]
    return StudyRow(
        jobs,
        context,
        algorithm,
        len(pairs),
        Spread.of([one.round_s for one in mine]),
        Spread.of([one.mean_round_s for one in mine]),
        Spread.of([shorter_by(one.round_s, base.round_s) for one, base in pairs]),
        Spread.of([shorter_by(one.mean_round_s, base.mean_round_s) for one, base in pairs]),
        Spread.of([shorter_by(one.bound_s, one.round_s) for one in mine]),
    )


def shorter_by(value: float, base: float) -> float:
    """Return how much shorter a time is than another one, as a share of that one."""
    return 1.0 - value / base if base > 0 else 0.0


def run_cell(
    setup: SetUp, settings: TdmSettings, algorithms: Sequence[str], cell: StudyCell
) -> StudyCellResult:
    """Run one cell; why an algorithm cannot run stands beside the others' outcomes."""
    outcomes: dict[str, CellOutcome] = {}
    failed: dict[str, str] = {}
    communicating_s = computing_s = 0.0
    try:
        jobs = deploy(replace(setup, jobs=cell.jobs, context=cell.context, seed=cell.seed))
    except InputError as error:
        return StudyCellResult({}, dict.fromkeys(algorithms, str(error)))
    for name in algorithms:
        try:
            answer = solve(jobs, replace(settings, algorithm=name, seed=cell.seed))
        except InputError as error:
            failed[name] = str(error)
            continue
        outcomes[name] = CellOutcome(answer.round_s, answer.mean_round_s, answer.bound_s)
        if name == BASELINE:
            phases = [phase for cycle in answer.cycles for phase in cycle.phases]
            communicating_s, computing_s = (
                sum(one.communication_s for one in phases),
                sum(one.computing_s for one in phases),
            )
    return StudyCellResult(outcomes, failed, communicating_s, computing_s)
