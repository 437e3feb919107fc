"""What is scheduled and under which what-ifs: one frozen model that the views of Schedule and Compare share."""

import os
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from msgspec import defstruct

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.algorithm_choice import DEFAULT
from topox_core.model.lowering.collective_steps import ALGORITHMS
from topox_core.model.lowering_choices import Lowering
from topox_core.model.quantities import SMALL_COUNTS
from topox_core.schedule.rcpsp.reduction import ports_on_switch
from topox_core.schedule.settings import FREE, Settings
from topox_core.schema.fields import fields_of, setting
from topox_core.workloads.catalogue import WORKLOADS
from topox_core.workloads.samples import SAMPLES
from topox_ui.runs.limits import server_limits
from topox_ui.state.session import PageState

# What a link says of a generator: set.servers=32.
PARAMETER = "set."
SOURCE = ("source", "name", "parameters")
SOURCES = {"sample": SAMPLES, "workload": WORKLOADS}
CLUSTER = (
    "port_gbps",
    "ports_per_server",
    "switches",
    "ports_per_switch",
    "slot_ms",
    "reconfiguration_ms",
    "duplex",
    "latency_us",
)
AUTO = "auto"
RINGS_AUTO = 0
ALGORITHM_WORDS = {kind: (AUTO, DEFAULT, *names) for kind, names in ALGORITHMS.items()}
LOWERING = ("rings", "all_reduce_on_network")
SWITCHES = ("circuits", "share_circuits", "exclusive_devices", "any_port")


def _fields(record: type, *names: str) -> dict[str, Any]:
    """Return choices that take the place of a record's fields: None, or what the record takes."""
    return {name: (fields_of(record)[name].hint | None, None) for name in names}


# In this order: of choices that do not go together the last one is not taken.
CHANGED = {
    **_fields(Cluster, *CLUSTER),
    "model": (fields_of(Settings)["model"].hint, Settings.model),
    **_fields(Settings, *SWITCHES),
    **_fields(Lowering, *LOWERING),
    **{
        kind: (Annotated[str, setting(choices=of)] | None, None)
        for kind, of in ALGORITHM_WORDS.items()
    },
    **_fields(Settings, "tick"),
    "clock": (Literal["continuous", "slots"] | None, None),
    **_fields(Settings, "iteration"),
    "switching": (Literal["planned", "provisioned", "fixed"] | None, None),
    "engine": (Literal["auto", "highs", "cpsat", "printed"] | None, None),
    **_fields(Settings, "time_limit_s"),
    # Of a record, with as many cores as there are.
    "threads": (
        Annotated[
            int,
            setting("Cores", ge=1, le=max(2, os.cpu_count() or 1), steps=(*SMALL_COUNTS, 12, 16)),
        ]
        | None,
        None,
    ),
}


class Scenario(  # type: ignore[misc]
    defstruct("Changed", [(k, *of) for k, of in CHANGED.items()], bases=(PageState,), frozen=True)
):
    """Where graph and cluster come from, and every what-if since; None is the value of the files or of the model."""

    source: Literal["none", "sample", "workload", "upload"] = "none"
    name: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def cluster(self, base: Cluster) -> Cluster:
        """Return a file's cluster with the what-ifs on top; raises InputError where a value is out of range.

        Circuits drawn per slot pay no delay: while they are chosen it is 0, whatever the file and
        the reader say, and counts again afterwards.
        """
        chosen = self._chosen(CLUSTER)
        if self.per_slot:
            chosen["reconfiguration_ms"] = 0.0
        try:
            return base.changed(**chosen)
        except InputError as error:
            raise error.in_file("cluster") from None

    @property
    def per_slot(self) -> bool:
        """Whether circuits are drawn afresh in each slot, by choice or as the model has it."""
        return (self.circuits or Settings.of(self.model).circuits) == "per-slot"

    def delay_not_charged(self, base: Cluster) -> float:
        """Return the delay of the file or the reader that circuits drawn per slot do not pay; 0 if they do."""
        delay = self.reconfiguration_ms
        kept = base.reconfiguration_ms if delay is None else delay
        return kept if self.per_slot else 0.0

    def settings(self) -> Settings:
        """Return the settings of a solve; raises InputError where choices contradict each other or the server's limits.

        What the reader leaves open is free, except in the printed model.
        """
        limits = server_limits()
        limits.check_time_limit(self.time_limit_s or 0.0)
        fixed = {k: name for k, name in self._chosen(ALGORITHM_WORDS).items() if name != AUTO}
        lowering = Lowering(**self._chosen(LOWERING), algorithm=tuple(sorted(fixed.items())))
        free: tuple[str, ...] = ()
        if self.model == "physical":
            free = ("algorithm",) if self.rings else FREE
        others = (*CLUSTER, "model", *LOWERING, *ALGORITHM_WORDS)
        names = [name for name in CHANGED if name not in others]
        chosen = {
            "time_limit_s": limits.allowed_s(Settings.time_limit_s),
            **self._chosen(names),
        }
        return Settings.of(self.model, lowering=lowering, free=free, **chosen)

    def _chosen(self, names: Collection[str]) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def typed_parameters(self) -> dict[str, Any]:
        """Parameters of the generator as values: a link has them as text."""
        values = WORKLOADS[self.name].chosen(dict(self.parameters))
        return {key: values[key] for key, _ in self.parameters}

    def without_what_ifs(self) -> "Scenario":
        """Return the scenario as the files have it."""
        return Scenario(**{name: getattr(self, name) for name in SOURCE})

    def with_what_if(self, base: Cluster, /, **changes: Any) -> "Scenario":
        """Return the scenario with choices made, and those that hang on them made to fit.

        More switches move the ports to the next multiple; a model brings its own switches; circuits
        that stay cannot be shared.

        Raises
        ------
        ValueError
            If a value is out of range; an InputError where choices contradict each other.
        """
        if "model" in changes:
            changes = {**dict.fromkeys((*SWITCHES, "clock", "iteration", "switching")), **changes}
        if changes.get("circuits") == "continuous":
            changes |= {"share_circuits": False, "any_port": False}
        elif changes.get("circuits") == "per-slot":
            changes |= {"clock": None, "iteration": None, "switching": None}
        after = self._put(base, changes)
        now = after.cluster(base)
        if not after.settings().any_port and now.ports_per_server % now.switches:
            fitting = max(1, round(now.ports_per_server / now.switches)) * now.switches
            after = after._put(base, {"ports_per_server": fitting})
        return after

    def _put(self, base: Cluster, changes: Mapping[str, Any]) -> "Scenario":
        """Return the scenario with changes; the value of the file or of the model itself takes a choice away."""
        preset = Settings.of(changes.get("model") or self.model)
        own = {**vars(preset.lowering), **vars(preset), **vars(base), "model": "physical"}
        own |= {"clock": "continuous"}
        own |= {"rings": RINGS_AUTO, **dict.fromkeys(ALGORITHM_WORDS, AUTO)}
        return self.changed(
            **{k: None if own[k] == value else value for k, value in changes.items()}
        )

    def check_on(self, base: Cluster) -> None:
        """Raise InputError where the choices do not go together on a file's cluster."""
        cluster, settings = self.cluster(base), self.settings()
        ports_on_switch(cluster, settings)

    def local(self) -> Collection[str]:
        """Return everything for an upload: it stays on the machine that it was made on."""
        return fields_of(Scenario) if self.source == "upload" else ()

    @classmethod
    def owns(cls, key: str) -> bool:
        """Return True for a source, a parameter of a generator, and a what-if."""
        source = key in SOURCES or key.startswith(PARAMETER)
        return source or (key not in SOURCE and super().owns(key))

    def to_query(self) -> dict[str, str]:
        """Return the scenario as parameters of a link."""
        if self.source in ("none", "upload"):
            return {}
        parameters = {PARAMETER + key: value for key, value in self.parameters}
        what_ifs = {k: text for k, text in super().to_query().items() if k not in SOURCE}
        return {self.source: self.name, **parameters, **what_ifs}

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "tuple[Scenario, dict[str, str]]":
        """Return the scenario of a link, and why not by the keys whose values it cannot have."""
        source = next((kind for kind, known in SOURCES.items() if query.get(kind) in known), "none")
        name = query.get(source, "")
        generator = WORKLOADS[name].parameters if source == "workload" else ()
        known = {source, *(PARAMETER + one.name for one in generator)}
        what_ifs = {key: text for key, text in query.items() if key in CHANGED}
        state, wrong = super().of_query(what_ifs)
        unknown = {key: "" for key in query if key not in known and key not in CHANGED}
        parameters = tuple(
            (key.removeprefix(PARAMETER), text)
            for key, text in query.items()
            if key in known and key != source
        )
        return state.changed(source=source, name=name, parameters=parameters), unknown | wrong
