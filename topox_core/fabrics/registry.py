"""The one list of fabrics: a new fabric is a row here and a file with its function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from topox_core.fabrics.run import Fabric


@dataclass(frozen=True)
class FabricEntry:
    """One fabric, as every list, legend, table, price and map knows it.

    Attributes
    ----------
    label
        Its name on pages and in tables.
    spoken
        The same within a sentence.
    function
        ``module:function`` of the :class:`~topox_core.fabrics.run.Fabric` that runs it; loaded when
        it is first asked for.
    built_as
        The network of :data:`topox_core.economics.networks.NETWORKS` whose parts it is made of;
        empty for one that nobody sells, which is a yardstick and no contender.
    pays_delay
        Whether circuits change while it runs. Only such a fabric depends on the reconfiguration
        delay.
    mapped
        Whether the crossover map shows it unless other fabrics are chosen.
    usual
        Whether a comparison runs it unless fabrics are named.
    options
        The fields of :class:`~topox_core.fabrics.run.FabricOptions` that it reads.
    letter
        What stands for it where there is no room for its name.
    """

    label: str
    spoken: str
    function: str
    built_as: str
    pays_delay: bool = False
    mapped: bool = True
    usual: bool = True
    options: tuple[str, ...] = ()
    letter: str = ""


# In the order of every list, legend and table.
ENTRIES: Mapping[str, FabricEntry] = MappingProxyType(
    {
        "ideal": FabricEntry(
            "Ideal switch",
            "an ideal switch",
            "topox_core.fabrics.ideal:run_ideal",
            "",
            mapped=False,
            letter="I",
        ),
        "fat_tree": FabricEntry(
            "Fat-tree",
            "a fat-tree",
            "topox_core.fabrics.packet:run_fat_tree",
            "fat_tree",
            mapped=False,
            options=("oversubscription", "servers_per_rack", "equivalent_gbps"),
            letter="T",
        ),
        "fat_tree_full": FabricEntry(
            "Fat-tree, full",
            "a full fat-tree",
            "topox_core.fabrics.packet:run_full_fat_tree",
            "fat_tree",
            mapped=False,
            letter="U",
        ),
        "static": FabricEntry(
            "Fixed by TopoOpt",
            "circuits fixed by TopoOpt",
            "topox_core.fabrics.static:run_static",
            "topoopt_patch_panel",
            options=("layout", "topology_variant", "layout_by", "layout_steps"),
            letter="F",
        ),
        "static_graph": FabricEntry(
            "Fixed by task graph",
            "circuits fixed by the task graph",
            "topox_core.fabrics.static:run_static_graph",
            "topoopt_patch_panel",
            options=("topology_variant", "layout_steps"),
            letter="G",
        ),
        "reevaluated": FabricEntry(
            "Re-evaluated circuits",
            "circuits re-evaluated at intervals",
            "topox_core.fabrics.reevaluated:run_reevaluated",
            "topoopt_ocs",
            pays_delay=True,
            mapped=False,
            usual=False,
            options=(
                *("layout", "topology_variant", "layout_by", "layout_steps"),
                *("reevaluate_ms", "pause", "forwarding"),
            ),
            letter="E",
        ),
        "regional": FabricEntry(
            "Regional circuits",
            "regional circuits for experts",
            "topox_core.fabrics.regional:run_regional",
            "regional_ocs",
            pays_delay=True,
            mapped=False,
            usual=False,
            options=(
                *("regional_packet_ports", "region_servers", "regional_circuits"),
                *("regional_dealt", "gating", "gating_skew", "gating_persistence"),
                "gating_iterations",
            ),
            letter="R",
        ),
        "reactive": FabricEntry(
            "Circuits on demand",
            "circuits on demand",
            "topox_core.fabrics.circuits:run_reactive",
            "topoopt_ocs",
            pays_delay=True,
            letter="D",
        ),
        "provisioned": FabricEntry(
            "Provisioned circuits",
            "provisioned circuits",
            "topox_core.fabrics.circuits:run_provisioned",
            "topoopt_ocs",
            pays_delay=True,
            letter="V",
        ),
        "phased": FabricEntry(
            "Phase by phase",
            "switching phase by phase",
            "topox_core.fabrics.phases:run_phased",
            "topoopt_ocs",
            pays_delay=True,
            mapped=False,
            usual=False,
            letter="H",
        ),
        "in_collective": FabricEntry(
            "Inside collectives",
            "switching inside collectives",
            "topox_core.fabrics.scheduled:run_in_collective",
            "topoopt_ocs",
            pays_delay=True,
            mapped=False,
            usual=False,
            letter="N",
        ),
        "scheduled": FabricEntry(
            "Planned circuits",
            "planned circuits",
            "topox_core.fabrics.scheduled:run_scheduled",
            "topoopt_ocs",
            pays_delay=True,
            letter="P",
        ),
    }
)
FABRICS: Mapping[str, str] = MappingProxyType({name: one.label for name, one in ENTRIES.items()})
SPOKEN: Mapping[str, str] = MappingProxyType({name: one.spoken for name, one in ENTRIES.items()})
LETTERS: Mapping[str, str] = MappingProxyType({name: one.letter for name, one in ENTRIES.items()})
PAYS_DELAY = frozenset(name for name, one in ENTRIES.items() if one.pays_delay)
USUAL = tuple(name for name, one in ENTRIES.items() if one.usual)
UNUSUAL = tuple(name for name in ENTRIES if name not in USUAL)
# Controllers that follow a rule and make no plan: a shorter delay can make their iteration longer.
BY_RULE = ("reactive", "provisioned", "phased", "in_collective")
MAPPED = tuple(name for name, one in ENTRIES.items() if one.mapped)


def fabric(name: str) -> Fabric:
    """Return the function that runs one iteration on a fabric."""
    return cast("Fabric", resolve_name(ENTRIES[name].function))
