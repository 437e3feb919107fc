"""Warming up leaves nothing to compile for the first user."""

from __future__ import annotations

import importlib
import pkgutil

from tests.topox_core.small_graphs import list_schedule
from topox_core.schedule import kernels
from topox_core.schedule.settings import Settings
from topox_core.warm_up import warm_up
from topox_core.workloads.samples import load_sample


def compiled_versions() -> dict[str, int]:
    """How many versions, one for each combination of argument types, every kernel has been compiled to."""
    versions: dict[str, int] = {}
    for module in pkgutil.iter_modules(kernels.__path__):
        for name, value in vars(
            importlib.import_module(f"{kernels.__name__}.{module.name}")
        ).items():
            if hasattr(value, "signatures"):
                versions[f"{module.name}.{name}"] = len(value.signatures)
    return versions


def test_after_warming_up_no_schedule_compiles_anything_more() -> None:
    seconds = warm_up()
    ready = compiled_versions()
    assert seconds > 0
    assert sum(ready.values()) > 0
    graph, cluster = load_sample("blackboard")
    for settings in (
        Settings.of("physical"),
        Settings.of("physical", circuits="per-slot"),
        Settings.of("paper"),
    ):
        list_schedule(graph, cluster.changed(reconfiguration_ms=0.0), settings)
        list_schedule(graph, cluster.changed(reconfiguration_ms=0.0, duplex="half"), settings)
    assert compiled_versions() == ready
