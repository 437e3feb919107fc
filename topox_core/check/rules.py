"""Which constraints hold for a result: the choices it was made with, or those the reader asks for instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topox_core.check.rows import is_finite, wrong
from topox_core.errors import InputError, shown
from topox_core.io.ranges import is_whole
from topox_core.model.cluster import Cluster

MODELS = ("physical", "paper")
ITERATIONS = ("first", "repeated")
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

    model: str
    circuits: str
    share_circuits: bool
    exclusive_devices: bool
    any_port: bool
    tick: str | float = "auto"
    rings: int = 1
    strides: tuple[int, ...] = ()
    all_reduce_on_network: bool = True
    steps: str = "fluid"
    broadcast: str = "chain"
    algorithm: Mapping[str, str] = dataclasses.field(default_factory=dict)
    group: int = 0
    clock: str = "slots"
    iteration: str = "first"

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

        def word(key: str, words: tuple[str, ...], default: str) -> str:
            value = settings.get(key, default)
            if value not in words:
                raise wrong(f"one of {', '.join(words)}", value, file, "settings", key)
            return str(value)

        def flag(key: str, default: bool) -> bool:
            value = settings.get(key, default)
            if not isinstance(value, bool):
                raise wrong("true or false", value, file, "settings", key)
            return value

        for field, value, words in (
            ("model", model, MODELS),
            ("circuits", circuits, CIRCUIT_RULES),
        ):
            if value is not None and value not in words:
                raise InputError(
                    f"must be one of {', '.join(words)} (got {shown(value)})", field=field
                )
        chosen = model or word("model", MODELS, "physical")
        paper = chosen == "paper"
        rule = word("circuits", CIRCUIT_RULES, "per-slot" if paper else "continuous")
        if circuits is not None:
            rule = circuits
        elif model == "paper":
            rule = "per-slot"
        printed = {"share_circuits": paper, "exclusive_devices": not paper, "any_port": paper}
        switches = (
            printed if model else {key: flag(key, default) for key, default in printed.items()}
        )
        if rule == "continuous" and (switches["share_circuits"] or switches["any_port"]):
            raise InputError(
                "continuous circuits book real ports: they are neither shared nor on any switch a server likes, "
                "as the printed model has them",
                file=file,
                item="settings",
                field="circuits",
            )
        return Rules(
            chosen,
            rule,
            **switches,
            tick=_tick(settings, file),
            rings=_count(settings.get("rings", 1), "rings", file),
            strides=_strides(settings, file),
            all_reduce_on_network=flag("all_reduce_on_network", True),
            steps=word("steps", ("fluid", "stepwise"), "fluid"),
            broadcast=word("broadcast", ("chain", "tree"), "chain"),
            algorithm=_words(settings.get("algorithm", {}), file),
            group=_count(settings.get("group", 0), "group", file, least=0),
            clock=clock if rule == "continuous" else "slots",
            iteration=word("iteration", ITERATIONS, "first"),
        )


def _count(value: Any, key: str, file: str, least: int = 1) -> int:
    if not is_whole(value, least):
        raise wrong(f"a whole number of at least {least}", value, file, "settings", key)
    return value


def _words(value: Any, file: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise wrong("a record of names of algorithms", value, file, "settings", "algorithm")
    return {str(key): word for key, word in value.items()}


def _tick(settings: Mapping[str, Any], file: str) -> str | float:
    tick = settings.get("tick", "auto")
    if isinstance(tick, str) and tick in ("auto", "slot"):
        return tick
    if not is_finite(tick) or tick <= 0:
        raise wrong("'auto', 'slot' or a length in ms above 0", tick, file, "settings", "tick")
    return float(tick)


def _strides(settings: Mapping[str, Any], file: str) -> tuple[int, ...]:
    strides = settings.get("strides", ())
    if not isinstance(strides, list | tuple):
        raise wrong("a list of whole numbers", strides, file, "settings", "strides")
    return tuple(_count(stride, "strides", file) for stride in strides)


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
