"""What the user leaves free is chosen, on every circuit fabric alike: number of rings, algorithms of collectives.

Each choice is run and the fastest is kept, in a fixed order and within limits counted in tasks, so
that the same input gives the same answer on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from topox_core.errors import InputError
from topox_core.fabrics.collective_choice import CHOOSES, with_fastest_algorithms
from topox_core.fabrics.run import Chosen, FabricRun
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.rings import RING_KINDS, distinct_rings
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import Lowering, TransferGraph
from topox_core.schedule.settings import Settings

# Nodes of a lowered graph. Beyond the first nothing is tried; beyond the second a plan takes what
# the provisioned controller chose.
MAX_NODES = 60_000
MAX_PLANNED_NODES = 5_000

RunLowered = Callable[[TransferGraph, Settings], FabricRun]


@dataclass(frozen=True)
class Case:
    """What a choice depends on: a graph on a cluster under settings, on one fabric."""

    fabric: str
    graph: TaskGraph
    cluster: Cluster
    settings: Settings
    variant: str = "published"

    @property
    def free(self) -> bool:
        """Whether there is anything to choose."""
        return bool(self.settings.free) and self.fabric in CHOOSES


def fastest_run(case: Case, run: RunLowered, provisioned: RunLowered) -> FabricRun:
    """Return the fastest run over all free choices; of equal ones the first, the settings' own lowering foremost.

    Parameters
    ----------
    run
        Runs a lowered graph on the case's fabric; its settings carry the same lowering.
    provisioned
        The same on the provisioned fabric, which decides where plans are too many.

    Raises
    ------
    InputError
        If the fabric cannot run the settings' own lowering.
    """
    own = case.settings.lowering
    nodes = len(lower(case.graph, own))
    if not case.free or nodes > MAX_NODES:
        return _run(case, own, run)
    if case.fabric == "scheduled" and nodes > MAX_PLANNED_NODES:
        at_once = fastest_run(replace(case, fabric="provisioned"), provisioned, provisioned)
        return _run(case, at_once.chosen.lowering if at_once.chosen else own, run)
    best = _run(case, own, run)
    for lowering in ring_choices(case):
        best = _faster(case, best, lowering, run)
    return _faster(case, best, algorithm_choice(case, best), run)


def _faster(case: Case, best: FabricRun, lowering: Lowering | None, run: RunLowered) -> FabricRun:
    """Return the faster of a run and one of another lowering, if there is one that can be run."""
    if lowering is None:
        return best
    try:
        if case.fabric == "scheduled" and len(lower(case.graph, lowering)) > MAX_PLANNED_NODES:
            return best
        other = _run(case, lowering, run)
    except InputError:
        return best  # too many transfers, or a fabric that cannot carry them
    return other if other.iteration_ms < best.iteration_ms * (1 - 1e-9) else best


def _run(case: Case, lowering: Lowering, run: RunLowered) -> FabricRun:
    result = run(lower(case.graph, lowering), replace(case.settings, lowering=lowering))
    return replace(result, chosen=Chosen(lowering, case.settings.free)) if case.free else result


def ring_choices(case: Case) -> tuple[Lowering, ...]:
    """Return the lowerings on one ring and on one a port, as far as they differ from the settings' own.

    Static circuits need no choice: TopologyFinder moves ring collectives onto the rings it lays.
    """
    own = case.settings.lowering
    if "rings" not in case.settings.free or own.strides or case.fabric == "static":
        return ()
    sizes = {
        len(task.members or ())
        for task in case.graph.tasks
        if (task.kind in RING_KINDS or task.kind == "broadcast")
        and (own.all_reduce_on_network or task.kind != "all_reduce")
    }
    most = max((len(distinct_rings(n)) for n in sizes if n > 1), default=1)
    wanted = dict.fromkeys((1, min(case.cluster.ports_per_server, most)))
    return tuple(replace(own, rings=k) for k in wanted if k != min(own.rings, most))


def algorithm_choice(case: Case, best: FabricRun) -> Lowering | None:
    """Return the lowering of a run with the fastest algorithms; None where they are its own or fixed."""
    if "algorithm" not in case.settings.free or best.chosen is None:
        return None
    own = best.chosen.lowering
    settings = replace(case.settings, lowering=own)
    fastest = with_fastest_algorithms(case.fabric, case.graph, case.cluster, settings, case.variant)
    return None if fastest == own else fastest
