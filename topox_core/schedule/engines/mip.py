"""The HiGHS boundary: a mixed-integer model as arrays goes in, what became of it comes out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.schedule.engines.engine import Ended

Float = NDArray[np.float64]
Index = NDArray[np.int32]


@dataclass(frozen=True)
class Mip:
    """Minimise ``offset + cost @ v`` with ``row_lower <= A v <= row_upper``; A in compressed rows."""

    cost: Float
    lower: Float
    upper: Float
    integer: NDArray[np.bool_]
    row_lower: Float
    row_upper: Float
    row_start: Index
    column: Index
    value: Float
    offset: float = 0.0


@dataclass
class MipBuilder:
    """A model whose columns and rows come one at a time.

    Attributes
    ----------
    columns
        Of each its cost, its bounds and whether it is whole.
    rows
        Of each its lower and its upper bound, and how many entries there are up to its end.
    column, value
        The entries.
    """

    columns: list[tuple[float, float, float, bool]] = field(default_factory=list)
    rows: list[tuple[float, float, int]] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def new(
        self, upper: float, integer: bool = False, cost: float = 0.0, lower: float = 0.0
    ) -> int:
        """Add a column and return its number."""
        self.columns.append((cost, lower, upper, integer))
        return len(self.columns) - 1

    def row(
        self, terms: Mapping[int, float], lower: float = -np.inf, upper: float = np.inf
    ) -> None:
        """Add a constraint on the sum of columns times factors."""
        self.column += terms.keys()
        self.value += terms.values()
        self.rows.append((lower, upper, len(self.column)))

    def built(self) -> Mip:
        """Return the model as arrays."""
        cost, lower, upper, integer = np.array(self.columns, np.float64).reshape(-1, 4).T.copy()
        row_lower, row_upper, ends = np.array(self.rows, np.float64).reshape(-1, 3).T.copy()
        return Mip(
            cost,
            lower,
            upper,
            integer > 0,
            row_lower,
            row_upper,
            np.append(0, ends).astype(np.int32),
            np.array(self.column, np.int32),
            np.array(self.value, np.float64),
        )


@dataclass(frozen=True)
class Run:
    """How HiGHS is to be run: seconds, relative gap, smallest step of the objective, seed, presolve."""

    time_limit_s: float
    gap: float
    step: float
    seed: int = 0
    presolve: bool = True


@dataclass(frozen=True)
class MipOutcome:
    """How a run ended, the dual bound, and the best values (None if there are none)."""

    ended: Ended
    dual: float
    values: Float | None


class _Watch:
    """Callbacks of one run; an exception in Python code must not travel through C++, so it waits here."""

    raised: BaseException | None = None

    def asking(self, over: Callable[[Any], object]) -> Callable[[Any], None]:
        """Return a callback that interrupts the run where ``over`` says so of an event, or has raised."""

        def callback(event: Any) -> None:
            try:
                if self.raised is not None or over(event):
                    event.interrupt()
            except BaseException as error:
                self.raised = error
                event.interrupt()

        return callback


def solve(
    mip: Mip,
    run: Run,
    known: tuple[Index, Float] | None,
    stop: Callable[[], bool],
    on_values: Callable[[Float], None] | None = None,
    on_dual: Callable[[float], None] | None = None,
) -> MipOutcome:
    """Run HiGHS on a model.

    Parameters
    ----------
    known
        Columns and values to start from; values of the integer columns may be left for HiGHS to
        find.
    on_values
        Told every improved solution.
    on_dual
        Told the dual bound now and then, before ``stop`` is asked.

    Raises
    ------
    RuntimeError
        If HiGHS refuses the model or ends in a state that says nothing about it.
    """
    if not len(
        mip.cost
    ):  # every start is fixed, and HiGHS calls a model without columns neither solved nor not
        holds = bool((mip.row_lower <= 0).all() and (mip.row_upper >= 0).all())
        return (
            MipOutcome("optimal", mip.offset, np.zeros(0))
            if holds
            else MipOutcome("infeasible", np.inf, None)
        )
    import highspy

    h = highspy.Highs()  # type: ignore[no-untyped-call]
    _set_options(h, run)
    empty_index, empty = np.zeros(0, np.int32), np.zeros(0)
    status = h.passModel(
        len(mip.cost),
        len(mip.row_lower),
        len(mip.value),
        0,
        int(highspy.MatrixFormat.kRowwise),
        1,
        int(highspy.ObjSense.kMinimize),
        mip.offset,
        mip.cost,
        mip.lower,
        mip.upper,
        mip.row_lower,
        mip.row_upper,
        mip.row_start,
        mip.column,
        mip.value,
        empty_index,
        empty_index,
        empty,
        mip.integer.astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise RuntimeError("HiGHS did not take the model")
    if known is not None:
        h.setSolution(len(known[0]), known[0], known[1])
    watch = _Watch()
    if on_values is not None:
        tell = on_values
        h.cbMipImprovingSolution += watch.asking(
            lambda event: tell(np.array(event.data_out.mip_solution, np.float64))
        )

    def ends(event: Any) -> bool:
        if on_dual is not None:
            on_dual(float(event.data_out.mip_dual_bound))
        return stop()

    h.cbMipInterrupt += watch.asking(ends)
    h.cbSimplexInterrupt += watch.asking(lambda _: stop())
    h.run()
    if watch.raised is not None:
        raise watch.raised
    return _outcome(highspy, h)


def _set_options(h: Any, run: Run) -> None:
    options = {
        "output_flag": False,
        # Its scheduler belongs to the process: another number later makes solves fail silently.
        "threads": 1,
        "random_seed": run.seed & 0x7FFFFFFF,
        "time_limit": max(run.time_limit_s, 0.0),
        "mip_rel_gap": run.gap,
        # The objective moves in steps: a gap below one step is a proof.
        "mip_abs_gap": 0.999 * run.step,
        "presolve": "choose" if run.presolve else "off",
    }
    for name, value in options.items():
        h.setOptionValue(name, value)


def _outcome(highspy: Any, h: Any) -> MipOutcome:
    status, info = h.getModelStatus(), h.getInfo()
    known: dict[Any, Ended] = {
        highspy.HighsModelStatus.kOptimal: "optimal",
        highspy.HighsModelStatus.kInfeasible: "infeasible",
        highspy.HighsModelStatus.kTimeLimit: "stopped",
        highspy.HighsModelStatus.kInterrupt: "stopped",
    }
    if status not in known:
        raise RuntimeError(f"HiGHS ended with status '{h.modelStatusToString(status)}'")
    has_values = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    values = np.array(h.getSolution().col_value, np.float64) if has_values else None
    return MipOutcome(known[status], float(info.mip_dual_bound), values)
