"""The figure of a result, chosen by its kind: what the public interface draws."""

from typing import Any

from topox_core.economics.networks import Bill
from topox_core.errors import InputError, needed
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import FabricRun
from topox_core.figures.iteration.gantt import gantt
from topox_core.figures.iteration.lanes import bars_of, lanes_of
from topox_core.figures.jobs.rounds import timeline
from topox_core.figures.networks.cost import stacked
from topox_core.figures.networks.fabrics import iteration_bars
from topox_core.figures.palette import theme_of
from topox_core.figures.rails.delay import Curve, overhead_curves
from topox_core.figures.template import Figure
from topox_core.model.critical_path import critical_path
from topox_core.rails.delay import DelayStudy
from topox_core.schedule.results.result import Result
from topox_core.tdm.model.jobs import Round

ACCEPTED_OVERHEAD = 0.05


def figure_of(subject: Any, theme: str = "light") -> Figure:
    """Return the figure of a schedule, a comparison, a delay study, a round or a set of bills.

    Raises
    ------
    InputError
        If there is no figure for such an object, or nothing in it to draw.
    """
    tokens = theme_of(theme)
    if isinstance(subject, Result):
        problem = f"has no schedule to draw (status {subject.status})"
        execution = needed(subject.execution, problem, file="result")
        lanes = lanes_of(execution)
        return gantt(
            execution,
            bars_of(execution, lanes),
            lanes,
            (0.0, execution.makespan_ms),
            critical_path(execution),
            tokens,
        )
    if isinstance(subject, Round):
        return timeline([(subject.algorithm, subject)], tokens)
    if isinstance(subject, DelayStudy):
        delays = tuple(row.delay_ms for row in subject.rows)
        times_ms = {
            "on_demand": tuple(row.on_demand_ms for row in subject.rows),
            "provisioned": tuple(row.provisioned_ms for row in subject.rows),
        }
        curves = [Curve(name, subject.base_ms, delays, times) for name, times in times_ms.items()]
        return overhead_curves(curves, 0.0, ACCEPTED_OVERHEAD, {}, tokens)
    if isinstance(subject, dict) and subject:
        kinds = {type(value) for value in subject.values()}
        if kinds == {FabricRun}:
            return iteration_bars(subject, FABRICS, {}, tokens)
        if kinds == {Bill}:
            return stacked(subject, "cost", tokens)
    raise InputError(f"there is no figure for {type(subject).__name__}", file="draw")
