"""The contest that the Compare page chooses: which fabrics, how they are built, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from topox_core.economics.clusters import same_cost_nic_gbps, same_cost_ratio, same_cost_words
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import FABRICS, SPOKEN
from topox_core.model.cluster import Cluster
from topox_ui.answers.case import Case
from topox_ui.answers.state import ContestState
from topox_ui.state.prices import cluster_catalogue


@dataclass(frozen=True)
class Contest:
    """Which fabrics compete, with their options, their names in words and those within a sentence."""

    fabrics: tuple[str, ...]
    options: FabricOptions
    labels: Mapping[str, str]
    spoken: Mapping[str, str]


def contest_of(case: Case) -> Contest:
    """Return the contest that the Compare page chooses on a case's cluster."""
    cluster, now = case.cluster, ContestState.now()
    options = FabricOptions(topology_variant=now.variant)
    words, spoken = "Fat-tree, same cost", "a fat-tree of the same cost"
    if now.fat_tree == "cost":
        nic_gbps = same_cost_nic_gbps(cluster, cluster_catalogue(), now.cost_ratio)
        options = replace(options, equivalent_gbps=nic_gbps)
    else:
        rack = now.servers_per_rack or max(1, cluster.servers // 4)
        options = replace(
            options,
            oversubscription=now.oversubscription,
            servers_per_rack=min(rack, cluster.servers),
        )
        words = f"Fat-tree, {options.oversubscription:g}:1"
        spoken = f"a fat-tree oversubscribed {options.oversubscription:g}:1"
    fabrics = tuple(name for name in FABRICS if name in now.fabrics)
    return Contest(fabrics, options, {**FABRICS, "fat_tree": words}, {**SPOKEN, "fat_tree": spoken})


def priced_ratio(cluster: Cluster) -> float:
    """Return the ratio of a fat-tree of the same cost, by the prices that hold."""
    return same_cost_ratio(cluster, cluster_catalogue())


def priced_words(cluster: Cluster) -> str:
    """Say what the circuits' money buys, by the prices that hold."""
    return same_cost_words(cluster, cluster_catalogue())
