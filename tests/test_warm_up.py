"""Warming up leaves nothing to compile for the first user."""

import importlib
import pkgutil

from tests.topox_core.small_graphs import list_schedule
from topox_core.schedule import kernels
from topox_core.schedule.settings import Settings
from topox_core.warm_up import warm_up
from topox_core.workloads.samples import load_sample


def compiled_versions() -> dict[str, int]:
    """How many versions, one for each combination of argument types, every kernel has been compiled to."""
    modules = [f"{kernels.__name__}.{one.name}" for one in pkgutil.iter_modules(kernels.__path__)]
    return {
        f"{module}.{name}": len(value.signatures)
        for module in modules
        for name, value in vars(importlib.import_module(module)).items()
        if hasattr(value, "signatures")
    }


def test_after_warming_up_no_schedule_compiles_anything_more() -> None:
    warm_up()
    ready = compiled_versions()
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
