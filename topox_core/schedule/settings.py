"""Every choice of a solve, so that a result can be run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from topox_core.errors import refuse_if
from topox_core.model.lowering.algorithm_choice import RING_KINDS
from topox_core.model.lowering_choices import Lowering
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields

AUTO, DEFAULT = "auto", "default"


def lowering_and_free(
    given: Mapping[str, Any], model: str, others: str | None = None
) -> tuple[Lowering, tuple[str, ...]]:
    """Return the lowering of the choices that were made, and the names of those that are free.

    What is not given is free, except in the printed model. ``strides`` fix the rings; ``steps`` and
    ``broadcast`` fix the algorithms of the kinds of collective that they speak of.

    Parameters
    ----------
    given
        Fields of a lowering; ``rings`` may be ``auto``.
    others
        ``auto`` or ``default`` for the kinds of collective that ``given`` names no algorithm of.
    """
    by_itself = DEFAULT if model == "paper" else AUTO
    fields = dict(given)
    rings = fields.get("rings", DEFAULT if "strides" in fields else by_itself)
    if rings in (AUTO, DEFAULT):
        fields.pop("rings", None)
    words = dict(fields.get("algorithm", ()))
    if others is None and "algorithm" not in fields and by_itself == AUTO:
        words |= dict.fromkeys(RING_KINDS, DEFAULT) if "steps" in fields else {}
        words |= {"broadcast": DEFAULT} if "broadcast" in fields else {}
    open_to_all = {"rings": rings, "algorithm": others or by_itself}
    free = tuple(name for name, word in open_to_all.items() if word == AUTO)
    return Lowering(**{**fields, "algorithm": tuple(sorted(words.items()))}), free


Model = Literal["physical", "paper"]
CircuitRule = Literal["continuous", "per-slot"]
ClockRule = Literal["auto", "continuous", "slots"]
SwitchingRule = Literal["auto", "planned", "provisioned", "fixed"]
IterationRule = Literal["repeated", "first"]

MAX_THREADS = 256
FREE = ("rings", "algorithm")
ENGINES = ("auto", "list", "highs", "cpsat", "printed")


@dataclass(frozen=True)
class Settings:
    """Model and solver settings; build with :meth:`of`, which starts from a model's defaults.

    Parameters
    ----------
    circuits
        ``continuous``: ports have state, so the reconfiguration delay counts. ``per-slot`` (eqs 6-10
        as printed have no more): a delay above 0 is refused.
    share_circuits
        False: every active transfer has a circuit of its own.
    exclusive_devices
        The printed model has no such constraint.
    any_port
        ``ports_per_server`` then need not be a multiple of ``switches``.
    tick
        ``auto``, ``slot`` or a length in ms that divides the slot: the clock of compute tasks.
    free
        Which choices of the lowering each circuit fabric makes for itself
        (:mod:`topox_core.fabrics.planning.lowering_search`); what ``lowering`` says is the first that is tried.
    clock
        ``continuous``: the plan's orders are carried out with unrounded durations and delays, and
        ``slot_ms`` is for planning only. ``slots``: every transfer starts and ends on a slot.
        ``auto`` is ``continuous`` wherever a transfer stays on real ports; :attr:`on_slots` says
        what holds.
    iteration
        ``repeated``: from its start to that of the next one, once circuits come back to where they
        were; a port whose last circuit is not its first is dark in between. ``first``: every port
        holds its first circuit when it begins. They are the same where ports have no state
        (:attr:`repeats`).
    switching
        On continuous time: ``planned`` switches as planned, ``provisioned`` in the order of a
        profiled iteration, ``fixed`` never. ``auto`` takes the fastest.
    """

    model: Annotated[
        Model,
        plain_setting(
            "Model",
            "what hardware can do (physical, the default), or the equations as printed (paper)",
        ),
    ] = "physical"
    circuits: Annotated[
        CircuitRule,
        plain_setting(
            "Circuits",
            "whether a transfer stays on its switch, or circuits are drawn afresh each slot",
        ),
    ] = "continuous"
    share_circuits: Annotated[
        bool,
        plain_setting(
            "Shared circuits",
            "transfers of one pair may share a circuit, each at full rate (eq. 6 as printed)",
        ),
    ] = False
    exclusive_devices: Annotated[
        bool, plain_setting("One task per device", "compute tasks hold their device alone")
    ] = True
    any_port: Annotated[
        bool,
        plain_setting(
            "Any port",
            "a server may use any switch, at most one port on each (eqs 9 and 10 as printed)",
        ),
    ] = False
    tick: (
        Annotated[str, setting(choices=("auto", "slot"))]
        | Annotated[
            float,
            setting(
                "Tick",
                "ms",
                "ticks of compute tasks on slots; divides the slot (default auto)",
                gt=0,
            ),
        ]
    ) = "auto"
    clock: Annotated[
        ClockRule,
        plain_setting(
            "Clock",
            "time that the plan lives on: unrounded, or whole slots (default continuous, where "
            "transfers stay on real ports)",
        ),
    ] = "auto"
    iteration: Annotated[
        IterationRule,
        plain_setting(
            "Iteration",
            "which iteration is timed: one of many, which begins with the circuits that the last "
            "one left (default), or the first, whose first circuits are free",
        ),
    ] = "repeated"
    switching: Annotated[
        SwitchingRule,
        plain_setting("Switching", "how circuits may be used (default auto: the fastest)"),
    ] = "auto"
    lowering: Lowering = field(default_factory=Lowering)
    free: tuple[Annotated[str, setting(choices=FREE)], ...] = ()
    engine: Annotated[str, plain_setting("Engine", "who plans circuits", choices=ENGINES)] = "auto"
    time_limit_s: Annotated[
        float,
        setting(
            "Time limit",
            "s",
            "time limit of the solve, default 60",
            ge=0,
            le=1e9,
            steps=(5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0),
        ),
    ] = 60.0
    gap: Annotated[
        float,
        plain_setting(
            "Gap to stop at", "stop at this relative gap (default 0: a proof)", ge=0, le=1.0
        ),
    ] = 0.0
    seed: Annotated[
        int, plain_setting("Seed", "seed of the search (default 0)", ge=0, le=2**31 - 1)
    ] = 0
    threads: Annotated[
        int,
        plain_setting("Threads", "cores that the solve may use (default 2)", ge=1, le=MAX_THREADS),
    ] = 2

    def __post_init__(self) -> None:
        check_fields(self, "settings")
        refuse_if(
            (
                self.circuits == "continuous" and self.share_circuits,
                "shared circuits (eq. 6 as printed) are drawn per slot: choose per-slot circuits "
                "or give every transfer its own circuit",
                "share_circuits",
            ),
            (
                self.circuits == "continuous" and self.any_port,
                "continuous circuits book real ports, which are cabled evenly to the switches: choose "
                "per-slot circuits or even cabling",
                "any_port",
            ),
            (
                self.clock == "continuous"
                and (self.circuits == "per-slot" or self.engine == "printed"),
                "circuits drawn slot by slot, and the printed model, know no other time than slots: "
                "choose continuous circuits or the clock 'slots'",
                "clock",
            ),
            file="settings",
        )

    @staticmethod
    def of(model: Model = "physical", **changes: Any) -> Settings:
        """Return the settings of ``physical`` (the default) or ``paper`` (as printed) with changes on top."""
        if model == "paper":
            base = Settings(
                model="paper",
                circuits="per-slot",
                share_circuits=True,
                exclusive_devices=False,
                any_port=True,
                iteration="first",
            )
        else:
            base = Settings(model=model)
        return replace(base, **changes)

    @property
    def on_slots(self) -> bool:
        """Whether every transfer starts and ends on a slot, rather than on continuous time."""
        if self.clock == "auto":
            return self.circuits == "per-slot" or self.engine == "printed"
        return self.clock == "slots"

    @property
    def repeats(self) -> bool:
        """Whether a port begins the iteration with the circuit that it ended the last one with."""
        return self.iteration == "repeated" and self.circuits == "continuous"

    @property
    def by_rules(self) -> Settings:
        """The same planned by list scheduling, on the clock that holds: an engine may know slots alone."""
        return replace(self, engine="list", clock="slots" if self.on_slots else self.clock)

    @property
    def question(self) -> Settings:
        """What is asked, whoever answers it and however long that may take."""
        return replace(self.by_rules, time_limit_s=60.0, gap=0.0, seed=0, threads=1)

    @property
    def effort(self) -> Literal["first", "search", "prove"]:
        """How much an answer may cost: a fixed list of plans, all engines side by side, or one that is to prove."""
        if self.engine == "list":
            return "first"
        return "search" if self.engine == "auto" else "prove"

    def as_record(self) -> dict[str, Any]:
        """Return the settings flat, as the result file keeps them."""
        record: dict[str, Any] = asdict(self)
        record["clock"] = "slots" if self.on_slots else "continuous"
        del record["lowering"]
        return {**record, "free": list(self.free), **self.lowering.as_record()}


@dataclass(frozen=True)
class TimeShares:
    """Who has how much of a solve's time: seconds at most, and shares of what is left unless another whole is named.

    docs/scheduling.md has what other values were measured to give.
    """

    # Before any engine: a short search, then bounds by propagation; where CP-SAT learns it decides soon itself.
    root_search_s: float = 0.05
    root_bounds_s: float = 0.2
    root_bounds_learning_s: float = 0.1
    # Bounds beside the engines: counting ancestors, then propagation; above 500 tasks more of the time
    # where all can be tried in it, less where not, since most rises come first.
    ancestors_share: float = 0.5
    propagation_share: float = 0.25
    propagation_many_share: float = 0.45
    propagation_short_share: float = 0.1
    many_s_per_task: float = 0.005
    # With set-ups propagation knows them from heads and tails only.
    set_up_bounds_s: float = 0.5
    # Of one model: narrowing its windows; its age, after which it is begun anew, twice as old each time.
    windows_share: float = 0.1
    model_age_s: float = 2.0
    # Where eq. 7 can bind, the model whose bounds hold.
    relaxed_share: float = 0.5
    # The whole model with set-ups before neighbourhoods; one neighbourhood.
    whole_first_s: float = 1.0
    neighbourhood_s: float = 1.0
    # HiGHS looks for a schedule as short as the bound.
    reach_share: float = 0.4
    # Of an engine's whole limit, after which no plan of a stricter reading is begun: on a large graph
    # such plans, one core at a time, would leave no time for search and bounds.
    stricter_share: float = 0.03
    # Without gain, before the search gives way to exact engines: on small problems, which engines
    # decide, and on larger ones, where the search often finds the last slot.
    search_idle_s: float = 0.1
    search_idle_s_per_pair: float = 1e-4
    # How often the search turns its best schedule into a plan.
    publish_s: float = 0.1
    # Saving circuit changes once the makespan is proved; without saving one.
    saving_s: float = 1.0
    saving_idle_s: float = 0.2
    saving_idle_s_per_task: float = 0.001
    # What an engine may need to come to an end; then it is ended.
    overtime_s: float = 0.15


TIME = TimeShares()
