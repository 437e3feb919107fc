"""The crossover map: which fabric wins over the reconfiguration delay and the port speed (or the degree), and by how much."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from topox_core.errors import refuse_if
from topox_core.fabrics.comparison.compare import chosen, fastest_of, same_time
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.fabrics.registry import MAPPED, PAYS_DELAY
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.quantities import SMALL_COUNTS
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.settings import Settings

# The usual map: delays 1, 2, 5 in a decade where the answer usually turns.
MAP_DELAYS_MS = (0.0, 0.001, 0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
MAP_SPEEDS_GBPS = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)

By = Literal["port_gbps", "degree"]
Doubt = Literal["", "gap", "rounding"]


@dataclass(frozen=True)
class MapOutcome:
    """What the map keeps of one run.

    Attributes
    ----------
    plan_ms, plan_bound_ms
        Of the scheduled fabric: the best schedule that switches, and what no such schedule goes
        below; None for other fabrics, and where only fixed circuits are allowed.
    rounding_ms
        Of ``plan_ms``: what rounding to slots adds to it; 0 on continuous time.
    keeps_fixed
        Whether the circuits stay fixed for the whole iteration because that is faster.
    """

    iteration_ms: float
    plan_ms: float | None = None
    plan_bound_ms: float = 0.0
    rounding_ms: float = 0.0
    keeps_fixed: bool = False


@dataclass(frozen=True)
class Winner:
    """Who wins a point of the map.

    Attributes
    ----------
    fabric
        The winner; empty where fixed and changing circuits are equal, or nothing could run.
    equals
        All fabrics that are as fast as the fastest, the simplest controller first.
    next
        The next-best fabric; empty if there is no other.
    lead
        How much sooner the winner ends than ``next``, as a share of the latter's time; 0 where the
        two are equal.
    beyond, beyond_lead
        Where others equal the winner: the best fabric that does not, and the winner's lead over it.
    doubt
        ``gap``: the plan is behind, or equal, by less than its distance to its bound, so that a
        better plan would change the answer. ``rounding``: it is so only because its times are
        rounded to slots. Empty where neither decides.
    """

    fabric: str = ""
    equals: tuple[str, ...] = ()
    next: str = ""
    lead: float = 0.0
    beyond: str = ""
    beyond_lead: float = 0.0
    doubt: Doubt = ""

    @property
    def key(self) -> tuple[str, bool]:
        """What the colour of a cell says: the winner, or that there is none, or nothing at all."""
        return self.fabric, bool(self.equals)


@dataclass(frozen=True)
class Axes:
    """The points of a map: every delay with every port speed in Gbit/s, or with every degree (ports per server).

    ``focus`` is a value that the coarse grid has in any case: a cut is drawn there.
    """

    delay_ms: tuple[float, ...]
    values: tuple[float, ...]
    by: By = "port_gbps"
    focus: float | None = None


Place = tuple[float, float]  # value, delay in ms


@dataclass(frozen=True)
class Point:
    """One point of the map, what one call runs.

    Attributes
    ----------
    outcomes, failed
        Of each fabric in the order of ``FABRICS``; in words why one could not run.
    plan
        The schedule that may serve shorter delays.
    """

    value: float
    delay_ms: float
    outcomes: Mapping[str, MapOutcome]
    failed: Mapping[str, str]
    plan: PassedPlan | None = field(default=None, compare=False)

    @cached_property
    def winner(self) -> Winner:
        """Who wins here, and by how much."""
        return winner(self.outcomes)


@dataclass(frozen=True)
class Column:
    """What one call passes on: the points of one value where ``scheduled`` ran by itself."""

    value: float
    delay_ms: tuple[float, ...]
    points: tuple[Point, ...] = field(compare=False)

    @property
    def plans(self) -> tuple[PassedPlan, ...]:
        """The schedules that switch."""
        return tuple(point.plan for point in self.points if point.plan is not None)

    @property
    def worth_a_call(self) -> bool:
        """Whether there is a schedule for a longer delay than another one."""
        return any(plan.cluster.reconfiguration_ms > min(self.delay_ms) for plan in self.plans)


# At which delays a schedule for a longer one is better, and what it does there.
ColumnResult = dict[float, MapOutcome]
Call = Place | Column
MapKnown = Mapping[str, Point | ColumnResult]


@dataclass(frozen=True)
class Sweep:
    """A map to compute: what runs, on what, over which axes, under which fabrics.

    ``scheduled`` is planned by list scheduling whatever the settings say: a map has thousands of
    plans. ``nic_gbps`` are the NICs of the fat-tree of the same cost, one for each value of the
    axes; without them the options say what the fat-tree is.

    Raises
    ------
    InputError
        If the graph does not fit the cluster, a name is no fabric, or a degree does not go with the
        switches.
    """

    task_graph: TaskGraph
    cluster: Cluster
    settings: Settings
    axes: Axes
    fabrics: tuple[str, ...] = MAPPED
    options: FabricOptions = field(default_factory=FabricOptions)
    nic_gbps: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fabrics", chosen(self.fabrics))
        object.__setattr__(self, "settings", self.settings.by_rules)
        check_fits(self.task_graph, self.cluster)
        for value in self.axes.values if self.axes.by == "degree" else ():
            with_degree(self.cluster, int(value))

    @cached_property
    def job_digest(self) -> str:
        """SHA-256 over everything but the axes' values: what two maps share whose cells may be shared.

        The names count, which errors may quote: sessions share cells, and none may read those of
        another one's files. Options of a map have no layout, whose arrays would not tell all here.
        """
        # The swept keys are the axes' to say.
        cluster = replace(self.cluster, reconfiguration_ms=0.0)
        if self.axes.by == "port_gbps":
            cluster = replace(cluster, port_gbps=1.0)
        names = self.task_graph.name, cluster.name
        run = self.task_graph.digest, cluster.digest, self.settings, self.fabrics, self.options
        return hashlib.sha256(repr((names, run, self.axes.by)).encode()).hexdigest()

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything: the key of a finished map."""
        what = f"{self.job_digest} {self.axes} {self.nic_gbps}"
        return hashlib.sha256(what.encode()).hexdigest()

    def key(self, call: Call) -> str:
        """Return the key under which the result of a call may be kept."""
        value, delay_ms = (call.value, call.delay_ms) if isinstance(call, Column) else call
        nic_gbps = self.options_at(value).equivalent_gbps
        return f"{self.job_digest} {value!r} {nic_gbps!r} {delay_ms!r}"

    def options_at(self, value: float) -> FabricOptions:
        """Return the options at a value of the axes: what it costs decides how fast a fat-tree of the same cost is."""
        if not self.nic_gbps:
            return self.options
        nic_gbps = dict(zip(self.axes.values, self.nic_gbps, strict=True))
        return replace(self.options, equivalent_gbps=nic_gbps[value])

    def alone(self, value: float, known: MapKnown) -> tuple[Point, ...]:
        """Return the points of a value that are known, each as it was computed."""
        found = (known.get(self.key((value, delay_ms))) for delay_ms in self.axes.delay_ms)
        return tuple(one for one in found if isinstance(one, Point))

    def column(self, value: float, known: MapKnown) -> Column:
        """Return what is to be passed on at a value: the schedules that are known, and whom they may serve."""
        planned = tuple(one for one in self.alone(value, known) if "scheduled" in one.outcomes)
        return Column(value, tuple(one.delay_ms for one in planned), planned)

    def points(self, known: MapKnown) -> tuple[Point, ...]:
        """Return the points of the map that are known, in the order of the axes, plans passed on."""
        points = []
        for value in self.axes.values:
            passed_on = known.get(self.key(self.column(value, known)))
            better = passed_on if isinstance(passed_on, dict) else {}
            for point in self.alone(value, known):
                if point.delay_ms in better:
                    outcomes = {**point.outcomes, "scheduled": better[point.delay_ms]}
                    point = replace(point, outcomes=outcomes)
                points.append(point)
        return tuple(points)


def at_point(cluster: Cluster, by: By, value: float, delay_ms: float) -> Cluster:
    """Return a cluster with the speed or the degree of a point, and its delay."""
    swept = with_degree(cluster, int(value)) if by == "degree" else cluster.changed(port_gbps=value)
    return swept.changed(reconfiguration_ms=delay_ms)


def with_degree(cluster: Cluster, degree: int) -> Cluster:
    """Return the cluster with ``degree`` ports per server.

    With one port on each switch the number of switches follows the degree, as in TOPO-X's Table
    III; with several the switches stay and the ports spread over them.

    Raises
    ------
    InputError
        If the ports cannot be spread evenly over the switches, or are more than a server can have.
    """
    if cluster.ports_per_server == cluster.switches:
        return cluster.changed(ports_per_server=degree, switches=degree)
    refuse_if(
        (
            degree % cluster.switches,
            f"must be multiples of the {cluster.switches} switches, which have several ports of a server each "
            f"(got {degree})",
        ),
        file="sweep",
        field="degree",
    )
    return cluster.changed(ports_per_server=degree)


def usual_axes(cluster: Cluster, by: By) -> Axes:
    """Return the points of a cluster's map: the usual delays, with port speeds or degrees that its own fits among."""
    own = cluster.port_gbps
    values: tuple[float, ...] = MAP_SPEEDS_GBPS
    if by == "degree":
        each = 1 if cluster.ports_per_server == cluster.switches else cluster.switches
        own, values = float(cluster.ports_per_server), tuple(float(each * k) for k in SMALL_COUNTS)
    elif own < values[0]:
        values = tuple(own * 2.0**k for k in range(len(MAP_SPEEDS_GBPS)))
    elif own > values[-1]:
        values = (*MAP_SPEEDS_GBPS[1:], own)
    return Axes(MAP_DELAYS_MS, values, by, min(values, key=lambda value: abs(value - own)))


def winner(outcomes: Mapping[str, MapOutcome]) -> Winner:
    """Return who wins among the outcomes of a point.

    Fabrics as fast as the fastest are equal. If all of those change circuits, or none does, the
    simplest of them wins; if some do and some do not, nobody wins. Planned circuits that stay fixed
    are the static fabric itself: where that one is compared, the plan stands for its best
    schedule that switches.
    """
    times = {name: _time_ms(name, outcomes) for name in outcomes}
    if not times:
        return Winner()
    ranked = sorted(times, key=lambda name: times[name])
    equals = fastest_of(times)
    # Planned circuits that stay fixed, beside no plan that switches, do not change.
    changing = {
        name in PAYS_DELAY and not (outcomes[name].keeps_fixed and outcomes[name].plan_ms is None)
        for name in equals
    }
    fabric = equals[0] if len(changing) == 1 else ""
    next_best = next((name for name in ranked if name != fabric), "") if fabric else ""
    beyond = next((name for name in ranked if name not in equals), "")
    return Winner(
        fabric,
        equals,
        next_best,
        _lead(times, fabric, next_best) if next_best not in equals else 0.0,
        beyond if fabric and len(equals) > 1 else "",
        _lead(times, fabric, beyond) if fabric and len(equals) > 1 else 0.0,
        _doubt(times, outcomes),
    )


def _time_ms(name: str, outcomes: Mapping[str, MapOutcome]) -> float:
    one = outcomes[name]
    beside_fixed = "static" in outcomes or "static_graph" in outcomes
    return one.plan_ms if one.plan_ms is not None and beside_fixed else one.iteration_ms


def _lead(times: Mapping[str, float], fabric: str, other: str) -> float:
    return 1 - times[fabric] / times[other] if fabric and other and times[other] > 0 else 0.0


def _doubt(times: Mapping[str, float], outcomes: Mapping[str, MapOutcome]) -> Doubt:
    plan = outcomes.get("scheduled")
    rival_ms = min((time for name, time in times.items() if name != "scheduled"), default=0.0)
    if plan is None or plan.plan_ms is None or not rival_ms:
        return ""
    now = _standing(plan.plan_ms, rival_ms)
    if _standing(plan.plan_ms - plan.rounding_ms, rival_ms) != now:
        return "rounding"
    return "gap" if _standing(plan.plan_bound_ms, rival_ms) != now else ""


def _standing(time_ms: float, rival_ms: float) -> int:
    """Return -1, 0 or 1 for a time that is shorter than another one, equal to it, or longer."""
    if same_time(time_ms, rival_ms):
        return 0
    return -1 if time_ms < rival_ms else 1
