"""Options of commands that solve: the model's switches, collectives, when to stop, cluster keys, fabrics; and what they say."""

import argparse
from typing import Any

from topox_core.cli.shared.options import (
    Group,
    Option,
    Written,
    given_of,
    options_of,
    positive,
    reader,
)
from topox_core.errors import refuse_if
from topox_core.fabrics.options import FabricOptions
from topox_core.model.cluster import Cluster
from topox_core.model.lowering_choices import Lowering
from topox_core.schedule.settings import AUTO, DEFAULT, Settings, lowering_and_free
from topox_core.schema.fields import fields_of

tick = reader(
    lambda text: text if text in ("auto", "slot") else float(text), "auto, slot or a length in ms"
)

strides = reader(
    lambda text: tuple(map(int, text.split(","))),
    "whole numbers",
    lambda values: min(values) >= 1 and len(set(values)) == len(values),
    "different whole numbers of at least 1, such as 1,3",
)


def algorithms(text: str) -> tuple[dict[str, str], str]:
    """Read algorithms such as ``all_reduce=tree,broadcast=chain(8)``, the other kinds ``auto`` or ``default``.

    Return those that are named by kind of collective, and what the other kinds have.
    """
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.partition("=") for part in parts if part not in (AUTO, DEFAULT)]
    others = [part for part in parts if part in (AUTO, DEFAULT)]
    if len(others) > 1 or not all(sign and key and name for key, sign, name in pairs):
        raise argparse.ArgumentTypeError(
            f"must be auto, default, or KIND=NAME such as all_reduce=ring,all_to_all=pairwise (got {text!r})"
        )
    words = {key.strip(): name.strip() for key, _, name in pairs}
    return words, others[0] if others else AUTO


# Fields whose options are written in a way of their own.
_LOWERING: Written = {
    "rings": ("--rings K|auto", lambda text: AUTO if text == AUTO else positive(text)),
    "strides": ("--strides 1,3", strides),
    "algorithm": ("--algorithm auto|default|KIND=NAME,...", algorithms),
    "group": ("--group M", positive),
    "chunks": ("--chunks C", positive),
    "parts": ("--parts K", positive),
}
_SETTINGS: Written = {
    "tick": ("--tick-ms X|slot|auto", tick),
    "clock": ("--clock continuous|slots", str),
    "iteration": ("--iteration repeated|first", str),
    "switching": ("--switching auto|planned|provisioned|fixed", str),
    "time_limit_s": "--time-limit",
}


def _of_settings(*names: str) -> tuple[Option, ...]:
    return options_of(Settings, *names, written=_SETTINGS)


def planner(engines: str, who: str) -> tuple[Option, ...]:
    """Return who plans circuits (``--engine``), on which clock (``--clock``, ``--tick-ms``), and whether they switch."""
    of_plans = _of_settings("tick", "clock", "iteration", "switching")
    return (Option(f"--engine {engines}", str, who), *of_plans)


(ITERATION,) = _of_settings("iteration")
# The model's preset, and its switches one by one.
PRESET = _of_settings("model", "circuits")
MODEL = Group("model", (*PRESET, *_of_settings("share_circuits", "exclusive_devices", "any_port")))
# How collectives become transfers.
LOWERING = Group("collectives", options_of(Lowering, written=_LOWERING))
# When a solve stops, and what makes it repeatable.
LIMITS = Group("solve", _of_settings("time_limit_s", "gap", "seed", "threads"))
_CLUSTER = "cluster_"
# One option a cluster key, so that each can be changed without touching the file.
CLUSTER_KEYS = Group(
    "cluster keys, in place of the file's",
    options_of(Cluster, *(name for name in fields_of(Cluster) if name != "name"), prefix=_CLUSTER),
)
SOLVE = (MODEL, LOWERING, LIMITS, CLUSTER_KEYS)


def cluster_overrides(options: argparse.Namespace) -> dict[str, object]:
    """Return the cluster keys that were given, by name."""
    return given_of(options, fields_of(Cluster), _CLUSTER)


def settings(options: argparse.Namespace, **usual: Any) -> Settings:
    """Return the settings that the options describe: the model's preset, what is usual, what was given on top."""
    model: Any = getattr(options, "model", None) or "physical"
    fixed = given_of(options, fields_of(Lowering))
    others = None
    if "algorithm" in fixed:
        fixed["algorithm"], others = fixed["algorithm"]
    lowering, free = lowering_and_free(fixed, model, others)
    changes = usual | given_of(options, fields_of(Settings).keys() - {"model"})
    return Settings.of(model, **{**changes, "lowering": lowering, "free": free})


_SHAPE = ("oversubscription", "servers_per_rack", "equivalent_gbps")
_FABRIC_FIELDS = tuple(name for name in fields_of(FabricOptions) if name != "layout")
# How fabrics are built.
FABRICS = Group(
    "fabrics",
    (
        Option(
            "--fat-tree",
            ("same-cost", "full"),
            "a fat-tree of the cost of the circuits (default), or of their full bandwidth d_S B",
        ),
        *options_of(
            FabricOptions, *_FABRIC_FIELDS, written={"regional_packet_ports": "--packet-ports"}
        ),
    ),
)


def fabric_options(options: argparse.Namespace, cluster: Cluster) -> FabricOptions:
    """Return the options of the fabrics; the fat-tree costs the same as the circuits unless another is described.

    Raises
    ------
    InputError
        If the fat-tree is described twice.
    """
    from topox_core.fabrics.comparison.compare import default_options

    chosen = given_of(options, _FABRIC_FIELDS)
    described = not chosen.keys().isdisjoint(_SHAPE)
    refuse_if(
        (
            options.fat_tree is not None and described,
            "describes another fat-tree than the options of its racks or its NIC: leave it out",
        ),
        file="command line",
        field="--fat-tree",
    )
    if options.fat_tree != "full" and not described:
        chosen["equivalent_gbps"] = default_options(cluster).equivalent_gbps
    return FabricOptions(**chosen)
