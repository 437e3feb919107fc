"""The jobs of TopoOpt's figures and one iteration of each on a fabric.

Called in child processes.
"""

from functools import lru_cache

import numpy as np
from msgspec import structs

from topox_core.fabrics.comparison.compare import run_one
from topox_core.fabrics.controllers.reevaluated import mean_ms, reevaluated
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import TransferGraph
from topox_core.papers.card import Settings
from topox_core.runs.run import never
from topox_core.schedule.settings import Settings as PlannerSettings
from topox_core.strategy.models import named
from topox_core.strategy.operators import Blueprint, OperatorGraph
from topox_core.strategy.recommenders import dlrm_layers
from topox_core.strategy.strategy import data_parallel, task_graph
from topox_core.topology.finder import find_layout
from topox_core.topology.ring_circuits import bandwidth_tax as tax_of
from topox_core.topology.traffic import demand_of

# TopoOpt's simulator puts no limit on memory.
NO_LIMIT_GB = 1e9
TABLES, DIMENSION, BOTTOM, TOP = 128, 128, 2048, 4096
PLANNER = PlannerSettings.of(engine="list")
# Figures 12 and 13.
BATCHES, DEGREES, SERVERS = (64, 128, 256, 512, 1024, 2048), (4, 8), 128


def dlrm_of_batch(batch: int, element_bytes: int, servers: int) -> OperatorGraph:
    """Return the DLRM of TopoOpt's figures 12 and 13: 128 tables, ``batch`` samples per GPU, 4 GPUs per server.

    Sizes: tables of 10^7 x 128, 7 bottom layers of 2048, 16 top layers of 4096. With 8 bytes an
    element, as FlexNet counts them, and 2048 samples per GPU its all-to-all moves 0.79 of its
    all-reduce (the paper: 80 %).
    """
    plan = Blueprint(
        "dlrm-batch",
        f"DLRM, 128 tables, batch {batch}",
        "sizes: TopoOpt's scripts (NSDI 2023); A100 times "
        "published with TopoOpt where there are any, else a "
        "roofline",
        servers,
        4 * batch,
        "dlrm128",
    )
    return dlrm_layers(plan, TABLES, DIMENSION, BOTTOM, TOP, element_bytes)


@lru_cache(maxsize=4)
def job(model: str, servers: int) -> TaskGraph:
    """Return one iteration of a model, data parallel, with what cannot be split on one server each.

    ``model`` is a name of the catalogue, or ``dlrm-batch/<samples per GPU>/<bytes per element>``.
    """
    if model.startswith("dlrm-batch/"):
        batch, element_bytes = model.split("/")[1:]
        graph = dlrm_of_batch(int(batch), int(element_bytes), servers)
    else:
        graph = named(model).build(servers)
    return task_graph(graph, data_parallel(graph, servers), NO_LIMIT_GB)


@lru_cache(maxsize=2)
def lowered(model: str, servers: int, rings: int = 1) -> TransferGraph:
    """Return a job as transfers, its all-reduces on so many rings."""
    return lower(job(model, servers), Lowering(rings=rings))


def network(servers: int, degree: int, port_gbps: float, delay_ms: float = 0.0) -> Cluster:
    """Return a cluster with one port of every server on each of ``degree`` switches."""
    return one_port_a_switch(servers, degree, port_gbps, reconfiguration_ms=delay_ms)


def rival_fabrics(settings: Settings, cluster: Cluster) -> dict[str, FabricOptions]:
    """Return the fabrics of a dedicated cluster: circuits as laid out, ideal, of similar cost."""
    nic_gbps = float(settings["fat_tree"]) * cluster.ports_per_server * cluster.port_gbps
    return {
        "static": FabricOptions(topology_variant=str(settings["variant"])),
        "ideal": FabricOptions(),
        "fat_tree": FabricOptions(equivalent_gbps=nic_gbps),
    }


def fabric_ms(
    fabric: str,
    graph: TransferGraph,
    cluster: Cluster,
    options: FabricOptions | None = None,
    planner: PlannerSettings = PLANNER,
) -> float:
    """Return the iteration time of a lowered graph on a fabric."""
    request = FabricRequest(graph, cluster, planner, options or FabricOptions())
    return run_one(fabric, request).iteration_ms


def iteration_ms(
    model: str, cluster: Cluster, fabric: str, options: FabricOptions, rings: int = 1
) -> float:
    """Return the iteration time of a job on a fabric; the paper's ideal switch shares its links fairly.

    Of circuits that are re-evaluated, the mean over the iterations that are run.
    """
    fabric = "fat_tree" if fabric == "ideal" else fabric  # the options say how fast its links are
    graph = lowered(model, cluster.servers, rings)
    if fabric == "reevaluated":
        return mean_ms(reevaluated(FabricRequest(graph, cluster, PLANNER, options), never))
    return fabric_ms(fabric, graph, cluster, options)


def iterations_ms(model: str, cases: tuple[tuple[Cluster, str, FabricOptions], ...]) -> list[float]:
    """Return :func:`iteration_ms` of several cases of one job, which is built once."""
    return [iteration_ms(model, *case) for case in cases]


def bandwidth_taxes(
    model: str, servers: int, degrees: tuple[int, ...], variant: str
) -> list[tuple[float, float]]:
    """Return :func:`bandwidth_tax` of several degrees; the job is built once."""
    return [bandwidth_tax(model, servers, degree, variant) for degree in degrees]


def bandwidth_tax(model: str, servers: int, degree: int, variant: str) -> tuple[float, float]:
    """Return (bytes times hops over bytes on TopologyFinder's circuits, model-parallel over all-reduce bytes)."""
    demand = demand_of(lowered(model, servers), servers)
    tax = tax_of(find_layout(demand, degree, variant), demand)
    return tax, demand.model_parallel_bytes / demand.all_reduce_bytes


def placed_jobs(models: tuple[str, ...], each: int, places: tuple[int, ...]) -> TaskGraph:
    """Return several jobs as one graph.

    Place k of ``places`` is the server that stands for server k of job after job.
    """
    tasks: list[Task] = []
    for number, model in enumerate(models):
        at = places[number * each : (number + 1) * each]
        tasks += [_placed(task, number, at) for task in job(model, each).tasks]
    return validated("shared cluster", tasks, "jobs")


def _placed(task: Task, number: int, at: tuple[int, ...]) -> Task:
    """Return a task of job ``number`` on the servers that it was given."""
    return structs.replace(
        task,
        id=f"{number}:{task.id}",
        dependencies=tuple(f"{number}:{d}" for d in task.dependencies),
        server=None if task.server is None else at[task.server],
        source=None if task.source is None else at[task.source],
        destination=None if task.destination is None else at[task.destination],
        members=None if task.members is None else tuple(at[m] for m in task.members),
        group=None if task.group is None else f"{number}:{task.group}",
    )


def shared_iterations_ms(
    models: tuple[str, ...],
    each: int,
    places: tuple[int, ...],
    cluster: Cluster,
    options: FabricOptions,
) -> list[float]:
    """Return every job's iteration time when all start together on one fat-tree."""
    tasks = placed_jobs(models, each, places)
    run = run_one("fat_tree", FabricRequest(lower(tasks, Lowering()), cluster, PLANNER, options))
    of_task = np.array([int(task.id.partition(":")[0]) for task in tasks.tasks])
    ends = np.zeros(len(models))
    np.maximum.at(ends, of_task[run.execution.graph.origin], run.execution.end_ms)
    return [float(end) for end in ends]
