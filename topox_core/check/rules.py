"""Which constraints hold for a result: the choices it was made with, or those the reader asks for instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from topox_core.check.rows import wrong
from topox_core.errors import InputError, shown
from topox_core.io.ranges import check_one_of
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import fields_of, setting
from topox_core.schema.records import from_values

MODELS = ("physical", "paper")
CIRCUIT_RULES = ("continuous", "per-slot")


@dataclass(frozen=True)
class Rules:
    """The switches of the model and of the lowering, as the checker reads them.

    Attributes
    ----------
    model, circuits
        ``physical`` or ``paper``; ``continuous`` or ``per-slot``.
    share_circuits
        Transfers of one pair may use one circuit, each at full rate (eq. 6 as printed).
    exclusive_devices
        A device runs one task at a time.
    any_port
        A server may use any switch, with one port on each (eqs 9 and 10 as printed).
    tick
        ``auto``, ``slot`` or a length in ms.
    clock
        ``slots``, or ``continuous``: times are not rounded at all. Circuits that are drawn slot by
        slot know slots only.
    iteration
        ``repeated``: the next one begins with the circuits that this one ends with, when its last
        task has ended. ``first``, also where a result does not say: the first circuit of every port
        stands before the iteration begins.
    rings, strides, all_reduce_on_network, steps, broadcast, algorithm, group
        How collectives became transfers.
    """

    model: Annotated[str, setting(choices=MODELS)]
    circuits: Annotated[str, setting(choices=CIRCUIT_RULES)]
    share_circuits: bool
    exclusive_devices: bool
    any_port: bool
    tick: Literal["auto", "slot"] | Annotated[float, setting(gt=0)] = "auto"
    rings: Annotated[int, setting(ge=1)] = 1
    strides: tuple[Annotated[int, setting(ge=1)], ...] = ()
    all_reduce_on_network: bool = True
    steps: Literal["fluid", "stepwise"] = "fluid"
    broadcast: Literal["chain", "tree"] = "chain"
    algorithm: Mapping[str, Any] = field(default_factory=dict)
    group: Annotated[int, setting(ge=0)] = 0
    iteration: Literal["first", "repeated"] = "first"
    clock: str = "slots"

    def __post_init__(self) -> None:
        if not all(isinstance(word, str) for word in self.algorithm.values()):
            problem = f"must be a record of names of algorithms (got {shown(self.algorithm)})"
            raise InputError(problem, field="algorithm")
        if self.continuous and (self.share_circuits or self.any_port):
            raise InputError(
                "continuous circuits book real ports: they are neither shared nor on any switch a server likes, "
                "as the printed model has them",
                field="circuits",
            )

    @property
    def repeats(self) -> bool:
        """Whether the last circuit of a port is before its first."""
        return self.iteration == "repeated" and self.continuous

    @property
    def on_slots(self) -> bool:
        """Whether tasks last whole ticks and transfers whole slots; if not, nothing is rounded."""
        return self.clock == "slots"

    @property
    def continuous(self) -> bool:
        """Whether a transfer stays on its switch and ports have a state."""
        return self.circuits == "continuous"

    def ports_on_switch(self, cluster: Cluster) -> int:
        """Return k, the circuits that a server may send (and receive) on one switch (right-hand side of eqs 9, 10).

        Raises
        ------
        InputError
            If the ports do not spread evenly over the switches and the rules need them to.
        """
        if self.any_port:
            return 1
        if cluster.ports_per_server % cluster.switches:
            raise InputError(
                f"must be a multiple of switches, {cluster.switches} (got {cluster.ports_per_server}): only the "
                "printed model lets a server use any switch",
                item="cluster",
                field="ports_per_server",
            )
        return cluster.ports_per_server // cluster.switches

    @staticmethod
    def of(
        settings: Mapping[str, Any],
        file: str = "",
        model: str | None = None,
        circuits: str | None = None,
        clock: str = "slots",
    ) -> Rules:
        """Return the rules of a result's settings and its clock.

        ``model`` and ``circuits`` win over them where given.

        A given model brings all its own switches: ``physical`` means exclusive devices, a circuit
        for each transfer and k ports on every switch; ``paper`` none of these, and circuits slot by
        slot.

        Raises
        ------
        InputError
            If a value is of the wrong kind; the field is named.
        """
        if model is not None:
            check_one_of(model, MODELS, field="model")
        if circuits is not None:
            check_one_of(circuits, CIRCUIT_RULES, field="circuits")
        known = fields_of(Rules).keys() - {"clock"}
        given = {key: value for key, value in settings.items() if key in known}
        chosen = model or given.get("model", "physical")
        paper = chosen == "paper"
        printed = {"share_circuits": paper, "exclusive_devices": not paper, "any_port": paper}
        rule = "per-slot" if paper else "continuous"
        if circuits is not None:
            rule = circuits
        elif model != "paper":
            rule = given.get("circuits", rule)
        held = {**printed, **given, **(printed if model else {}), "model": chosen, "circuits": rule}
        clock = clock if rule == "continuous" else "slots"
        return from_values(Rules, held, file, "settings", clock=clock)


def changed_cluster(cluster: Cluster, changes: Any, file: str) -> Cluster:
    """Return the cluster with the keys that a result's settings override.

    Raises
    ------
    InputError
        If they are no record, or a key or a value is not a cluster's.
    """
    if changes is None:
        return cluster
    if not isinstance(changes, Mapping):
        raise wrong("a record of cluster keys", changes, file, "settings", "cluster")
    try:
        return cluster.changed(**{str(key): value for key, value in changes.items()})
    except InputError as error:
        raise InputError(
            error.problem, file=file, item="settings", field=f"cluster.{error.field}"
        ) from None
    except OverflowError:
        raise InputError(
            "holds a number of too many digits", file=file, item="settings", field="cluster"
        ) from None
