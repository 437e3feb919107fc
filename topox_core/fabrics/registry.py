"""All fabrics by name, in the order in which every list and legend shows them."""

from __future__ import annotations

from types import MappingProxyType

from topox_core.fabrics.circuits import run_provisioned, run_reactive
from topox_core.fabrics.packet import run_fat_tree, run_ideal
from topox_core.fabrics.run import FABRICS, Fabric, Registry
from topox_core.fabrics.scheduled import run_scheduled
from topox_core.fabrics.static import run_static

_RUN: dict[str, Fabric] = {
    "ideal": run_ideal,
    "fat_tree": run_fat_tree,
    "static": run_static,
    "reactive": run_reactive,
    "provisioned": run_provisioned,
    "scheduled": run_scheduled,
}

REGISTRY: Registry = MappingProxyType({name: _RUN[name] for name in FABRICS})
# Only circuits that change can be late; the others run the same whatever a change takes.
PAYS_DELAY = frozenset({"reactive", "provisioned", "scheduled"})
