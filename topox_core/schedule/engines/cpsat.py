"""Exact solves with CP-SAT (OR-Tools): models of all schedules shorter than the best known.

Of problems that count set-ups the schedules are on real ports.
"""

import math
from collections.abc import Callable

from topox_core.errors import refuse_if
from topox_core.runs.run import AfterSeconds, Stop, never
from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.disjunctions import (
    MAX_DISJUNCTIONS,
    WHOLE_TASKS,
    may_be_few,
    neighbourhoods_fit,
    pairs_within,
)
from topox_core.schedule.engines.best_known import (
    PROPAGATION_BY,
    BestKnown,
    initially_known,
    narrow_windows,
    raise_bounds,
    raise_bounds_with_set_ups,
)
from topox_core.schedule.engines.cpsat_model import Model, refuse
from topox_core.schedule.engines.cpsat_set_ups import SetUpModel
from topox_core.schedule.engines.engine import (
    Answer,
    Limits,
    News,
    OnProgress,
)
from topox_core.schedule.engines.set_up_neighbourhoods import search_with_set_ups
from topox_core.schedule.problem import Problem
from topox_core.schedule.settings import TIME
from topox_core.schedule.source import ENGINES, PROPAGATION

SOURCE = ENGINES["cpsat"]
BOUND_BY = "constraint search (CP-SAT)"
BOUND_WITH_SET_UPS_BY = "constraint search with set-ups (CP-SAT)"
# While the relative gap is wider than this, neighbourhoods come after the whole model with set-ups, until so
# many of them in a row have brought nothing.
NARROW, FRUITLESS = 0.05, 30


def solve_cpsat(
    problem: Problem,
    limits: Limits,
    stop: Stop = never,
    on_progress: OnProgress | None = None,
    news: News | None = None,
) -> Answer:
    """Solve the reduced problem with CP-SAT, or one that counts set-ups.

    Up to 600 tasks are one model of all schedules shorter than the best known, in the windows of
    plain propagation: most are decided sooner than shaving would be through. Of more tasks bounds are
    raised first, and windows narrowed by shaving.

    Raises
    ------
    InputError
        If there are too many tasks, or transfers that share circuits.
    """
    refuse(problem)
    known = initially_known(problem, limits, on_progress, stop, news)
    if problem.dark_ticks is not None:
        _solve_on_ports(known)
        return known.answer()
    many = problem.n > WHOLE_TASKS

    def whole(given: Windows, horizon: int) -> Model:
        return Model(problem, given, known.bound, horizon)

    if many:
        raise_bounds(known, known.over)
    _whole(known, limits.time_limit_s, whole, thorough=many)
    return known.answer()


def _whole(
    known: BestKnown,
    until_s: float,
    model_of: Callable[[Windows, int], Model],
    words: str = BOUND_BY,
    thorough: bool = True,
    hinted: bool = False,
    over: Stop = never,
) -> bool:
    """Search models of all schedules shorter than the best known; return whether the last one has nothing more to say.

    Each is begun anew for a shorter schedule only where little is lost by that.

    Parameters
    ----------
    until_s
        When to end at the latest, in seconds since the solve began.
    model_of
        Makes the model of the schedules within windows that end by a horizon.
    words
        Say who raised a bound; empty where the model rules out schedules, so that its bounds do not hold.
    thorough
        Narrow the windows by shaving first.
    hinted
        The models hold schedules as long as the best known, too, which is their hint.
    over
        Whether to end sooner.
    """
    patience_s = TIME.model_age_s
    while known.goes_on(until_s) and not over():
        horizon = known.makespan if hinted else known.makespan - known.step
        given = narrow_windows(known, horizon, known.over, thorough)
        if given is None:
            known.refute(horizon, PROPAGATION, PROPAGATION_BY)
            return True
        shortest, old = known.makespan, AfterSeconds(patience_s)
        patience_s *= 2

        def ends(shortest: int = shortest, old: Stop = old) -> bool:
            return over() or (known.makespan < shortest and old())

        model = model_of(given, horizon)
        if known.search(model.solve, horizon, until_s, ends, SOURCE, words) != "stopped":
            return True
    return False


def _solve_on_ports(known: BestKnown) -> None:
    """Solve a problem that counts set-ups, from a schedule with ports.

    The model holds every schedule as long as the best known, which is its hint, ports and orders
    included. Where eq. 7 can bind two models take turns: one whose bounds hold, and one whose
    schedules do. Elsewhere, with several ports, it has a second and, while the gap is wide, gives
    way to neighbourhoods; where the model would be too large, there are those alone.

    Raises
    ------
    InputError
        If too many pairs of transfers have to be put in order, and neighbourhoods do not fit.
    """
    problem = known.problem
    raise_bounds_with_set_ups(known, known.over)
    if known.close_enough:
        return
    net = problem.switch_network
    may_fill, nearby = net.switches_may_fill, neighbourhoods_fit(problem)
    # Where neighbourhoods can take over, pairs are counted only if they may be few.
    pairs = math.inf
    if not nearby or may_be_few(problem):
        given = narrow_windows(known, known.makespan, known.over, thorough=False)
        assert given is not None  # the best known schedule lies within
        pairs = sum(1 for _ in pairs_within(problem, given))
    if pairs > MAX_DISJUNCTIONS:
        refuse_if(
            (
                not nearby,
                f"with set-up times {pairs:,} pairs of transfers would have to be put in order (limit "
                f"{MAX_DISJUNCTIONS:,}): use the list engine",
            ),
            file="settings",
            field="engine",
        )
        search_with_set_ups(known, math.inf)
        return

    def search(until_s: float, over: Stop = never, strict: bool = False) -> bool:
        def whole(given: Windows, horizon: int) -> Model:
            return SetUpModel(problem, given, known.bound, horizon, known.solution, strict)

        words = "" if strict else BOUND_WITH_SET_UPS_BY
        return _whole(known, until_s, whole, words, thorough=False, hinted=True, over=over)

    def far() -> bool:
        """Whether a proof is too far away for a search of the whole model that has had its second."""
        wide = known.makespan - known.bound > NARROW * known.makespan
        return wide and known.elapsed_s > TIME.whole_first_s

    until_s = known.elapsed_s + known.left_s * (TIME.relaxed_share if may_fill else 1.0)
    ended = False
    if nearby and net.ports_each_way > 1:  # orders alone are decided sooner as a whole
        ended = search(until_s, far)
        if not ended:
            search_with_set_ups(known, FRUITLESS)
    ended = ended or search(until_s)
    if may_fill:
        search(known.limits.time_limit_s, strict=True)
