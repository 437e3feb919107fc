"""What holds at every point of a subject where a study says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from topox_core.economics.comparison import Running
from topox_core.economics.networks import Counting
from topox_core.economics.price_sets import DEFAULT_SET, SET_BY_SPEED
from topox_core.fabrics.options import FabricOptions
from topox_core.rails.presets import settings_of
from topox_core.schedule.settings import AUTO, Settings
from topox_core.studies.keys import FABRIC_FIELDS, SEED, Key, Value
from topox_core.studies.keys import BILL, FABRIC, RAIL
from topox_core.studies.subject import Resolved
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.jobs import Reading
from topox_core.tdm.model.round import TdmSettings
from topox_core.training.job import Job

Values = Mapping[str, Value]
DEFAULT_FABRIC = "scheduled"
GPUS = 1_024
# The settings of a solve that have keys of their own name.
SETTINGS = (
    *(
        "model",
        "circuits",
        "clock",
        "iteration",
        "switching",
        "share_circuits",
        "exclusive_devices",
    ),
    *("any_port", "time_limit_s", "gap", "threads"),
)
# Whoever sets one of them describes a fat-tree that does not cost the same.
FAT_TREE_SHAPE = ("oversubscription", "servers_per_rack")


def own_values(resolved: Resolved) -> dict[str, Value]:
    """Return what holds where a study says nothing, by key."""
    runs = resolved.subject.runs
    if runs == FABRIC:
        return _of_graph(resolved)
    if runs == RAIL:
        assert resolved.job is not None
        return _of_rails(resolved.job)
    if runs == BILL:
        counting = {f"network.{k}": v for k, v in asdict(Counting()).items() if v is not None}
        return {"network.gpus": GPUS, **counting, "prices": DEFAULT_SET}
    set_up = {f"tdm.{k}": v for k, v in asdict(SetUp()).items() if isinstance(v, int | float)}
    del set_up["tdm.seed"], set_up["tdm.literal_eq8"]
    reading = {f"tdm.{k}": v for k, v in Reading().as_record().items()}
    return {**set_up, **reading, "tdm.algorithm": TdmSettings.algorithm, SEED: 0}


def _of_graph(resolved: Resolved) -> dict[str, Value]:
    assert resolved.cluster is not None
    cluster = {f"cluster.{k}": v for k, v in asdict(resolved.cluster).items() if k != "name"}
    preset, options = Settings.of(), FabricOptions()
    workload = resolved.subject.workload
    parameters: dict[str, Value] = {}
    if workload is not None:
        own = resolved.subject.parameters
        parameters = {
            f"{resolved.subject.kind}.{one.key}": one.value(own.get(one.key, one.default), "")
            for one in workload.parameters
        }
    return {
        **cluster,
        **parameters,
        "fabric": DEFAULT_FABRIC,
        "fabric.fat_tree": "cost",
        **{f"fabric.{k}": getattr(options, k) for k in FABRIC_FIELDS},
        "settings.effort": "first",
        **{f"settings.{name}": getattr(preset, name) for name in SETTINGS},
        "lowering.rings": AUTO,
        "lowering.all_reduce_on_network": True,
        **dict.fromkeys(_algorithm_keys(resolved.subject.keys), AUTO),
        "prices": SET_BY_SPEED,
        **{f"running.{k}": v for k, v in asdict(Running()).items()},
        SEED: 0,
    }


def _algorithm_keys(keys: Mapping[str, Key]) -> list[str]:
    return [n for n in keys if n.startswith("lowering.") and keys[n].kind == "choice"]


def _of_rails(job: Job) -> dict[str, Value]:
    keys = {f"rails.{key}": value for key, value in settings_of(job).items()}
    del keys["rails.reduce"], keys["rails.iteration_ms"]
    return {
        "rails.reconfiguration_ms": 0.0,
        "rails.control": "provisioned",
        "rails.link_up_ms": 0.0,
        "rails.latency_us": 0.0,
        **keys,
        SEED: 0,
    }

