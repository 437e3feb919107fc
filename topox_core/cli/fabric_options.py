"""Options of fabrics that several commands share: how the fat-tree is built, the layout of fixed circuits, regional circuits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from topox_core.cli.options import Option, option_of, wrong_option
from topox_core.fabrics.options import FabricOptions
from topox_core.schema.fields import fields_of

if TYPE_CHECKING:
    from topox_core.model.cluster import Cluster

_SHAPE = ("oversubscription", "servers_per_rack", "equivalent_gbps")
# Options that have another name than their field, and those that say yes or no.
_FLAGS = {"regional_packet_ports": "packet_ports"}


def add_fabric_options(command: argparse.ArgumentParser) -> None:
    """Add the group of options that say how fabrics are built."""
    group = command.add_argument_group("fabrics")
    Option(
        "--fat-tree",
        ("same-cost", "full"),
        "a fat-tree of the cost of the circuits (default), or of their full bandwidth d_S B",
    ).add_to(group)
    for name, field in fields_of(FabricOptions).items():
        if name != "layout":
            option_of(field, _FLAGS.get(name, name), dest=name).add_to(group)


def fabric_options(options: argparse.Namespace, cluster: Cluster) -> FabricOptions:
    """Return the options of the fabrics; the fat-tree costs the same as the circuits unless another is described.

    Raises
    ------
    InputError
        If the fat-tree is described twice.
    """
    from topox_core.fabrics.compare import default_options

    chosen = {
        name: value
        for name in fields_of(FabricOptions)
        if name != "layout" and (value := getattr(options, name, None)) is not None
    }
    if options.fat_tree is not None and not chosen.keys().isdisjoint(_SHAPE):
        raise wrong_option(
            "--fat-tree",
            "describes another fat-tree than the options of its racks or its NIC: leave it out",
        )
    if options.fat_tree != "full" and chosen.keys().isdisjoint(_SHAPE):
        chosen["equivalent_gbps"] = default_options(cluster).equivalent_gbps
    return FabricOptions(**chosen)
