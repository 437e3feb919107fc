"""A quantity has one range, whichever record has it: what one file may say another may say too."""

import pkgutil
from contextlib import suppress
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import topox_core
from topox_core.fabrics.options import FabricOptions
from topox_core.model.cluster import Cluster
from topox_core.model.quantities import DelayMs, Gbps, LatencyUs
from topox_core.rails.iteration import Rail
from topox_core.schema.fields import field_of, fields_of
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.jobs import PodNetwork, TorGbps
from topox_core.traces.source import ImportSettings
from topox_core.training.machine import Machine

SKEW = fields_of(FabricOptions)["gating_skew"].hint
# By what the names of fields end with; the first that fits.
QUANTITIES = {
    "tor_gbps": TorGbps,  # of all ports of a pod
    "_gbps": Gbps,
    "reconfiguration_ms": DelayMs,
    "delay_ms": DelayMs,
    "link_up_ms": DelayMs,
    "switch_ms": DelayMs,
    "latency_us": LatencyUs,
    "gating_skew": SKEW,
}


def limits(field):
    return [(one.ge, one.gt, one.le) for _, one in field.alternatives]


def differing(records):
    """Return the fields whose range is not that of their quantity, of those that say a range."""
    wrong = []
    for record in records:
        for name, field in fields_of(record).items():
            quantity = next((of for end, of in QUANTITIES.items() if name.endswith(end)), None)
            if quantity is None or limits(field) == [(None, None, None)]:
                continue
            if limits(field) != limits(field_of(quantity)):
                wrong.append((record.__name__, name, limits(field)))
    return wrong


def read_from_outside(record):
    """Return whether a dataclass says what its fields may be: of one for results the types may not even be loaded."""
    with suppress(NameError, TypeError):
        return any(limits(one) != [(None, None, None)] for one in fields_of(record).values())
    return False


def records_of(package):
    """Return every dataclass of a package whose fields have ranges; other files are left out: engines share no process."""
    files = {
        one.name: Path(one.module_finder.path, f"{one.name.rpartition('.')[2]}.py")
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not one.ispkg
    }
    every = [
        vars(import_module(name))
        for name, file in files.items()
        if "Annotated[" in file.read_text(encoding="utf-8")
    ]
    return {
        one
        for there in every
        for one in there.values()
        if isinstance(one, type)
        and is_dataclass(one)
        and one.__module__ == there["__name__"]
        and read_from_outside(one)
    }


def test_equal_quantities_have_equal_ranges():
    records = records_of(topox_core)
    assert {Cluster, FabricOptions, ImportSettings, Machine, PodNetwork, Rail, SetUp} <= records
    assert differing(sorted(records, key=lambda one: one.__name__)) == []
