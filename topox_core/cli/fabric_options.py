"""Options of fabrics that several commands share: how the fat-tree is built, the layout of fixed circuits, regional circuits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from topox_core.cli.options import Option, add_options, number, whole, wrong_option

if TYPE_CHECKING:
    from topox_core.fabrics.run import FabricOptions
    from topox_core.model.cluster import Cluster

_SHAPE = ("oversubscription", "servers_per_rack", "equivalent_gbps")
_PLAIN = (
    *("topology_variant", "layout_by", "layout_steps", "reevaluate_ms", "pause"),
    *("region_servers", "regional_circuits", "regional_dealt"),
    *("gating", "gating_skew", "gating_persistence", "gating_iterations"),
)


def add_fabric_options(command: argparse.ArgumentParser) -> None:
    """Add the group of options that say how fabrics are built."""
    add_options(
        command.add_argument_group("fabrics"),
        Option(
            "--fat-tree",
            ("same-cost", "full"),
            "a fat-tree of the cost of the circuits (default), or of their full bandwidth d_S B",
        ),
        Option(
            "--oversubscription X",
            number,
            "fat-tree of full bandwidth with this oversubscription above its racks (default 1)",
        ),
        Option(
            "--servers-per-rack N",
            whole,
            "fat-tree of full bandwidth with racks of this size (default: all in one rack)",
        ),
        Option(
            "--equivalent-gbps X",
            number,
            "one NIC of this speed a server in the fat-tree, in place of the speed of the same cost",
        ),
        Option(
            "--topology-variant",
            ("published", "released"),
            "how TopologyFinder lays out the static circuits (default published)",
        ),
        Option(
            "--layout-by",
            ("topoopt", "matrix", "graph"),
            "whose circuits the static fabric has: TopologyFinder's (default), those that the matrix of bytes "
            "asks for, or those searched for the task graph",
        ),
        Option(
            "--layout-steps N",
            whole,
            "static_graph, --layout-by graph: layouts that the search tries (default: as many as a first answer has time for)",
        ),
        Option(
            "--reevaluate-ms X",
            number,
            "reevaluated: circuits are chosen anew so often (default 50)",
        ),
        Option(
            "--pause",
            ("all", "changed"),
            "reevaluated: a change darkens all circuits (default), or those that change",
        ),
        Option(
            "--forwarding",
            ("yes", "no"),
            "reevaluated: servers forward for pairs without a circuit (default yes)",
        ),
        Option(
            "--packet-ports E",
            whole,
            "regional: ports of a server on the packet switch (default half, rounded up)",
        ),
        Option(
            "--region-servers N",
            whole,
            "regional: servers of a region, neighbours by number (default: all)",
        ),
        Option(
            "--regional-circuits",
            ("gate", "foreseen", "fixed"),
            "regional: circuits are asked for when the gate is known (default), ahead of each exchange, or once",
        ),
        Option(
            "--regional-dealt",
            ("bottleneck", "bytes"),
            "regional: a circuit goes to the bottleneck (default), or to most bytes",
        ),
        Option(
            "--gating",
            ("given", "walk", "dirichlet", "zipf"),
            "regional: bytes between experts as the graph has them (default), or drawn for each layer and iteration",
        ),
        Option("--gating-skew X", number, "regional: skew of the drawn gating (default 1)"),
        Option(
            "--gating-persistence X",
            number,
            "regional: how much of a walk's popularity stays from iteration to iteration (default 0.9)",
        ),
        Option(
            "--gating-iterations N", whole, "regional: iterations one after the other (default 1)"
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
    from topox_core.fabrics.run import FabricOptions

    chosen = {
        key: value for key in (*_SHAPE, *_PLAIN) if (value := getattr(options, key)) is not None
    }
    if options.packet_ports is not None:
        chosen["regional_packet_ports"] = options.packet_ports
    if options.forwarding is not None:
        chosen["forwarding"] = options.forwarding == "yes"
    if options.fat_tree is not None and not chosen.keys().isdisjoint(_SHAPE):
        raise wrong_option(
            "--fat-tree",
            "describes another fat-tree than the options of its racks or its NIC: leave it out",
        )
    if options.fat_tree != "full" and chosen.keys().isdisjoint(_SHAPE):
        chosen["equivalent_gbps"] = default_options(cluster).equivalent_gbps
    return FabricOptions(**chosen)
