"""The one list of fabrics: ours, and those of packages that name one under the entry points ``topox.fabrics``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from topox_core.errors import one_line
from topox_core.fabrics.entry import FabricEntry

if TYPE_CHECKING:
    from topox_core.fabrics.run import Fabric

GROUP = "topox.fabrics"


_LAYOUT = ("layout", "topology_variant", "layout_by", "layout_steps")
_OURS = {
    "ideal": FabricEntry(
        "Ideal switch",
        "an ideal switch",
        "topox_core.fabrics.fluid.ideal:run_ideal",
        "I",
        ("#B4BDC8", "#56626F"),
        "dot",
        "x",
        usual=True,
    ),
    "fat_tree": FabricEntry(
        "Fat-tree",
        "a fat-tree",
        "topox_core.fabrics.fluid.links:run_fat_tree",
        "T",
        ("#2B3440", "#6B7686"),
        "dash",
        "triangle-up",
        built_as="fat_tree",
        usual=True,
        options=("oversubscription", "servers_per_rack", "equivalent_gbps"),
    ),
    "fat_tree_full": FabricEntry(
        "Fat-tree, full",
        "a full fat-tree",
        "topox_core.fabrics.fluid.links:run_full_fat_tree",
        "U",
        ("#6E5A7B", "#B59BC4"),
        "12px,4px",
        "triangle-left",
        built_as="fat_tree",
        usual=True,
    ),
    "static": FabricEntry(
        "Fixed by TopoOpt",
        "circuits fixed by TopoOpt",
        "topox_core.fabrics.fixed.static:run_static",
        "F",
        ("#DDCC77", "#F0E08A"),
        "2px,3px",
        "square",
        plural=True,
        built_as="topoopt_patch_panel",
        mapped=True,
        usual=True,
        options=_LAYOUT,
        alone_on=("static",),
        on_ideal="shares",
    ),
    "static_graph": FabricEntry(
        "Fixed by task graph",
        "circuits fixed by the task graph",
        "topox_core.fabrics.fixed.static:run_static_graph",
        "G",
        ("#664400", "#994433"),
        "4px,2px",
        "hexagon",
        plural=True,
        built_as="topoopt_patch_panel",
        mapped=True,
        usual=True,
        options=("topology_variant", "layout_steps"),
        on_ideal="shares",
    ),
    "reevaluated": FabricEntry(
        "Re-evaluated circuits",
        "circuits re-evaluated at intervals",
        "topox_core.fabrics.controllers.reevaluated:run_reevaluated",
        "E",
        ("#BB8855", "#FFBB00"),
        "10px,2px,2px,2px,2px,2px",
        "x",
        plural=True,
        built_as="topoopt_ocs",
        pays_delay=True,
        options=(*_LAYOUT, "reevaluate_ms", "pause", "forwarding"),
        on_ideal="shares",
    ),
    "regional": FabricEntry(
        "Regional circuits",
        "regional circuits for experts",
        "topox_core.fabrics.controllers.regional:run_regional",
        "R",
        ("#005533", "#AACC99"),
        "3px,2px,8px,2px",
        "pentagon",
        plural=True,
        built_as="regional_ocs",
        pays_delay=True,
        options=(
            *("regional_packet_ports", "region_servers", "regional_circuits", "regional_dealt"),
            *("gating", "gating_skew", "gating_persistence", "gating_iterations"),
        ),
        on_ideal="shares",
    ),
    "reactive": FabricEntry(
        "Circuits on demand",
        "circuits on demand",
        "topox_core.fabrics.controllers.circuits:run_reactive",
        "D",
        ("#CC6677", "#E07B5A"),
        "solid",
        "circle",
        plural=True,
        built_as="topoopt_ocs",
        pays_delay=True,
        by_rule=True,
        mapped=True,
        usual=True,
        alone_on=("reactive",),
        on_ideal="circuits",
    ),
    "provisioned": FabricEntry(
        "Provisioned circuits",
        "provisioned circuits",
        "topox_core.fabrics.controllers.circuits:run_provisioned",
        "V",
        ("#88CCEE", "#88CCEE"),
        "6px,3px",
        "diamond",
        plural=True,
        built_as="topoopt_ocs",
        pays_delay=True,
        by_rule=True,
        mapped=True,
        usual=True,
        alone_on=("provisioned", "reactive"),
        on_ideal="circuits",
    ),
    "phased": FabricEntry(
        "Phase by phase",
        "switching phase by phase",
        "topox_core.fabrics.controllers.phases:run_phased",
        "H",
        ("#2288AA", "#00FFDD"),
        "9px,3px,2px,3px",
        "cross",
        built_as="topoopt_ocs",
        pays_delay=True,
        by_rule=True,
        alone_on=("provisioned", "reactive"),
        on_ideal="circuits",
    ),
    "in_collective": FabricEntry(
        "Inside collectives",
        "switching inside collectives",
        "topox_core.fabrics.planning.scheduled:run_in_collective",
        "N",
        ("#BB88EE", "#883399"),
        "longdash",
        "triangle-down",
        built_as="topoopt_ocs",
        pays_delay=True,
        by_rule=True,
        # Also tries messages in uneven parts, set-ups behind other ports' sending.
        alone_on=("in_collective", "provisioned", "reactive"),
        on_ideal="circuits",
    ),
    "scheduled": FabricEntry(
        "Planned circuits",
        "planned circuits",
        "topox_core.fabrics.planning.scheduled:run_scheduled",
        "P",
        ("#4B3FA8", "#8F86E8"),
        "solid",
        "star",
        plural=True,
        built_as="topoopt_ocs",
        pays_delay=True,
        mapped=True,
        usual=True,
        alone_on=("provisioned", "reactive"),
        on_ideal="circuits",
    ),
}


def _brought_along() -> Iterator[tuple[str, FabricEntry]]:
    """Yield the fabrics of other packages; one that cannot be taken is left out, with a line on stderr."""
    letters = {one.letter: name for name, one in _OURS.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            entry = point.load()
        except Exception as error:  # whatever another's module raises when it is imported
            entry, problem = None, f"cannot be loaded ({type(error).__name__}: {error})"
        else:
            problem = _problem(point.name, entry, letters)
        if problem:
            line = f"{GROUP}, {point.name} ({point.value}): {problem}; the fabric is left out"
            print(one_line(line), file=sys.stderr)
        else:
            letters[entry.letter] = point.name
            yield point.name, entry


def _problem(name: str, entry: object, letters: Mapping[str, str]) -> str:
    """Return what is wrong with a fabric that comes along, or nothing."""
    # Needed where there is one alone; every command reads this file.
    from topox_core.economics.clusters import CLUSTER_NETWORKS
    from topox_core.fabrics.options import FabricOptions
    from topox_core.schema.fields import fields_of

    if not isinstance(entry, FabricEntry):
        return f"must be a FabricEntry (got {type(entry).__name__})"
    if not name.isidentifier() or name in _OURS:
        return f"its name must be a word that is none of {', '.join(_OURS)}"
    if entry.letter in letters:
        return (
            f"letter must be one that is not taken: {', '.join(letters)} are (got {entry.letter!r})"
        )
    for field, named, known in (
        ("alone_on", entry.alone_on, _OURS),
        ("built_as", filter(None, (entry.built_as,)), CLUSTER_NETWORKS),
        ("options", entry.options, fields_of(FabricOptions)),
    ):
        for one in named:
            if one not in known:
                return f"{field} must be of {', '.join(known)} (got {one!r})"
    return ""


# In the order of every list, legend and table.
ENTRIES: Mapping[str, FabricEntry] = MappingProxyType({**_OURS, **dict(_brought_along())})
FABRICS: Mapping[str, str] = MappingProxyType({name: one.label for name, one in ENTRIES.items()})
SPOKEN: Mapping[str, str] = MappingProxyType({name: one.spoken for name, one in ENTRIES.items()})
LETTERS: Mapping[str, str] = MappingProxyType({name: one.letter for name, one in ENTRIES.items()})


def _those(which: Callable[[FabricEntry], object]) -> tuple[str, ...]:
    return tuple(name for name, one in ENTRIES.items() if which(one))


PAYS_DELAY = frozenset(_those(lambda one: one.pays_delay))
USUAL = _those(lambda one: one.usual)
UNUSUAL = _those(lambda one: not one.usual)
BY_RULE = _those(lambda one: one.by_rule)
MAPPED = _those(lambda one: one.mapped)
CHOOSES = _those(lambda one: one.alone_on)


def fabric(name: str) -> Fabric:
    """Return the function that runs one iteration on a fabric."""
    function = ENTRIES[name].function
    return cast("Fabric", resolve_name(function)) if isinstance(function, str) else function
