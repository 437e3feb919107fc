"""Options of fabrics that several commands share: how the fat-tree is built, the layout of fixed circuits, regional circuits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from topox_core.cli.options import Group, Option, given_of, option_of, wrong_option
from topox_core.fabrics.options import FabricOptions
from topox_core.schema.fields import fields_of

if TYPE_CHECKING:
    from topox_core.model.cluster import Cluster

_SHAPE = ("oversubscription", "servers_per_rack", "equivalent_gbps")
# Options that have another name than their field.
_FLAGS = {"regional_packet_ports": "packet_ports"}


_FIELDS = tuple(name for name in fields_of(FabricOptions) if name != "layout")
# How fabrics are built.
FABRICS = Group(
    "fabrics",
    (
        Option(
            "--fat-tree",
            ("same-cost", "full"),
            "a fat-tree of the cost of the circuits (default), or of their full bandwidth d_S B",
        ),
        *(
            option_of(fields_of(FabricOptions)[name], _FLAGS.get(name, name), dest=name)
            for name in _FIELDS
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
    from topox_core.fabrics.compare import default_options

    chosen = given_of(options, _FIELDS)
    if options.fat_tree is not None and not chosen.keys().isdisjoint(_SHAPE):
        raise wrong_option(
            "--fat-tree",
            "describes another fat-tree than the options of its racks or its NIC: leave it out",
        )
    if options.fat_tree != "full" and chosen.keys().isdisjoint(_SHAPE):
        chosen["equivalent_gbps"] = default_options(cluster).equivalent_gbps
    return FabricOptions(**chosen)
