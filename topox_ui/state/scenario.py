"""What the user has chosen, as one frozen value, and its words in a link."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from topox_core.errors import InputError
from topox_core.fabrics.run import FABRICS
from topox_core.model.cluster import DUPLEXES, Cluster
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.settings import Settings
from topox_ui.state.link_words import one_of, yes

Source = Literal["none", "sample", "workload", "upload"]
Choices = tuple[tuple[str, Any], ...]


def _whole(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1_000_000:
        raise ValueError(text)
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return value


def _tick(text: str) -> str | float:
    return text if text in ("auto", "slot") else _number(text)


def _ratio(text: str) -> float:
    value = _number(text)
    if not 1 <= value <= 1000:
        raise ValueError(text)
    return value


def _cores(text: str) -> int:
    value = int(text)
    if not 1 <= value <= max(2, os.cpu_count() or 1):
        raise ValueError(text)
    return value


def _race(text: str) -> float:
    value = _number(text)
    if not 0.5 <= value <= 300:
        raise ValueError(text)
    return value


def _degree(text: str) -> int:
    """Read a degree; which ones a layout can have is TopologyFinder's to say, with a line of its own."""
    value = int(text)
    if not 0 <= value <= 1_000_000:
        raise ValueError(text)
    return value


def _fabrics(text: str) -> str:
    """Read names of fabrics, separated by commas, into their order."""
    asked = text.split(",")
    if not asked or any(name not in FABRICS for name in asked):
        raise ValueError(text)
    return ",".join(name for name in FABRICS if name in asked)


CLUSTER_KEYS: dict[str, Callable[[str], Any]] = {
    "port_gbps": _number,
    "ports_per_server": _whole,
    "switches": _whole,
    "ports_per_switch": _whole,
    "slot_ms": _number,
    "reconfiguration_ms": _number,
    "duplex": one_of(DUPLEXES),
    "latency_us": _number,
}
LOWERING_KEYS: dict[str, Callable[[str], Any]] = {"rings": _whole, "all_reduce_on_network": yes}
SWITCH_KEYS: dict[str, Callable[[str], Any]] = {
    "circuits": one_of(("continuous", "per-slot")),
    "share_circuits": yes,
    "exclusive_devices": yes,
    "any_port": yes,
}
SETTING_KEYS: dict[str, Callable[[str], Any]] = {
    "model": one_of(("physical", "paper")),
    **SWITCH_KEYS,
    **LOWERING_KEYS,
    "tick": _tick,
    "engine": one_of(("auto", "highs", "cpsat", "printed")),
    "time_limit_s": _number,
    "threads": _cores,
}
VIEW_KEYS: dict[str, Callable[[str], Any]] = {
    "from_ms": _number,
    "to_ms": _number,
    "slot": lambda text: _whole(str(int(text) + 1)) - 1,
    "fabrics": _fabrics,
    "fat_tree": one_of(("cost", "racks", "full")),
    "cost_ratio": _ratio,
    "oversubscription": _ratio,
    "servers_per_rack": _whole,
    "variant": one_of(("published", "released")),
    "degree": _degree,
    "traffic": one_of(("graph", "ring")),
    "step": lambda text: _whole(str(int(text) + 1)) - 1,
    "race_s": _race,
}
# Choices of view that a link need not carry, because they are what a page begins with.
VIEW_DEFAULTS: dict[str, Any] = {
    "fabrics": ",".join(FABRICS),
    "fat_tree": "cost",
    "oversubscription": 4.0,
    "variant": "published",
    "traffic": "graph",
    "race_s": 5.0,
}
PARAMETER = "set."
# What a link says to one page alone; that page reads it.
OF_PAGES = ("rails.", "cost.")


@dataclass(frozen=True)
class Scenario:
    """Where graph and cluster come from, and everything changed since: cluster keys, settings, what is in view."""

    source: Source = "none"
    name: str = ""
    parameters: Choices = ()
    cluster: Choices = ()
    settings: Choices = ()
    view: Choices = ()

    def value(self, key: str) -> Any:
        """Return a changed cluster key, setting or view key; None where nothing was changed."""
        return dict((*self.cluster, *self.settings, *self.view)).get(key)

    def with_choice(self, key: str, value: Any, file: Cluster) -> Scenario:
        """Return the scenario with one choice made, and those that hang on it made to fit.

        More switches move the ports to the next multiple; a model brings its own switches; circuits
        drawn per slot have no state that could pay a delay, circuits that stay cannot be shared.
        """
        if key in VIEW_KEYS:
            return replace(self, view=_put(self.view, {key: value}, VIEW_DEFAULTS))
        cluster: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        if key in CLUSTER_KEYS:
            cluster[key] = value
        else:
            settings[key] = value
        if key == "model":
            settings |= dict.fromkeys(SWITCH_KEYS)
            settings["any_port"] = None
        if key == "circuits" and value == "continuous":
            settings |= {"share_circuits": False, "any_port": False}
        after = replace(
            self, cluster=_put(self.cluster, cluster, _of(file)), settings=self._settings(settings)
        )
        made = after.made()
        if made.circuits == "per-slot" and after.changed(file).reconfiguration_ms > 0:
            after = replace(
                after, cluster=_put(after.cluster, {"reconfiguration_ms": 0.0}, _of(file))
            )
        elif (
            key in ("model", "circuits")
            and made.circuits == "continuous"
            and after.value("reconfiguration_ms") == 0
        ):
            after = replace(after, cluster=_put(after.cluster, {"reconfiguration_ms": None}, {}))
        now = after.changed(file)
        if not made.any_port and now.ports_per_server % now.switches:
            fitting = max(1, round(now.ports_per_server / now.switches)) * now.switches
            after = replace(
                after, cluster=_put(after.cluster, {"ports_per_server": fitting}, _of(file))
            )
        return after

    def _settings(self, changes: dict[str, Any]) -> Choices:
        model = changes.get("model", dict(self.settings).get("model", "physical"))
        preset = Settings.of(model)
        defaults = {
            **{
                k: getattr(preset, k)
                for k in (*SWITCH_KEYS, "tick", "engine", "time_limit_s", "threads")
            },
            **{k: getattr(preset.lowering, k) for k in LOWERING_KEYS},
            "model": "physical",
        }
        return _put(self.settings, changes, defaults)

    def changed(self, file: Cluster) -> Cluster:
        """Return the file's cluster with the what-ifs on top; raises InputError where a value is out of range."""
        try:
            return file.changed(**dict(self.cluster))
        except InputError as error:
            raise error.in_file("cluster") from None

    def made(self) -> Settings:
        """Return the settings of a solve; raises InputError where choices contradict each other."""
        chosen = dict(self.settings)
        lowering = Lowering(**{key: chosen.pop(key) for key in LOWERING_KEYS if key in chosen})
        return Settings.of(chosen.pop("model", "physical"), lowering=lowering, **chosen)

    def without_what_ifs(self) -> Scenario:
        """Return the scenario as the files have it."""
        return replace(self, cluster=(), settings=())

    def as_query(self) -> dict[str, str]:
        """Return the scenario as query parameters; an upload stays on the machine it was made on, so it has none."""
        if self.source in ("none", "upload"):
            return {}
        query: dict[str, str] = {self.source: self.name}
        query |= {PARAMETER + key: str(value) for key, value in self.parameters}
        return query | {
            key: _word(value) for key, value in (*self.cluster, *self.settings, *self.view)
        }


def of_query(query: Mapping[str, str], names: Mapping[str, Any]) -> tuple[Scenario, list[str]]:
    """Return the scenario of a link, and what in it could not be understood, as ``key=value``.

    Parameters
    ----------
    query
        The parameters of the address.
    names
        ``{"sample": known sample names, "workload": {name: known parameters}}``.
    """
    ignored: list[str] = []
    source: Source = "none"
    name = ""
    kinds: tuple[Source, ...] = ("sample", "workload")
    for kind in kinds:
        if kind in query and source == "none" and query[kind] in names[kind]:
            source, name = kind, query[kind]
        elif kind in query:
            ignored.append(_told(kind, query[kind]))
    parameters: dict[str, str] = {}
    chosen: dict[str, dict[str, Any]] = {"cluster": {}, "settings": {}, "view": {}}
    for key, text in query.items():
        if key in ("sample", "workload") or key.startswith(OF_PAGES):
            continue
        if (
            key.startswith(PARAMETER)
            and source == "workload"
            and key[len(PARAMETER) :] in names["workload"][name]
        ):
            parameters[key[len(PARAMETER) :]] = text
            continue
        for part, readers in (
            ("cluster", CLUSTER_KEYS),
            ("settings", SETTING_KEYS),
            ("view", VIEW_KEYS),
        ):
            if key in readers:
                try:
                    chosen[part][key] = readers[key](text)
                except (ValueError, KeyError, OverflowError):
                    ignored.append(_told(key, text))
                break
        else:
            ignored.append(_told(key, text))
    cluster, settings, view = (
        tuple(chosen[part].items()) for part in ("cluster", "settings", "view")
    )
    return Scenario(source, name, tuple(parameters.items()), cluster, settings, view), ignored


def _told(key: str, value: str) -> str:
    return f"{key[:40]}={value[:40]}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _of(cluster: Cluster) -> dict[str, Any]:
    return {key: getattr(cluster, key) for key in CLUSTER_KEYS}


def _put(choices: Choices, changes: Mapping[str, Any], defaults: Mapping[str, Any]) -> Choices:
    """Return choices with changes on top; None and the default itself take a choice away."""
    after = {**dict(choices), **changes}
    return tuple(
        (k, v)
        for k, v in after.items()
        if v is not None and not (k in defaults and defaults[k] == v)
    )
