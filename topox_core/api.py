"""The public interface: what a script or a notebook needs, a function a question.

``import topox_core`` offers these functions; each loads the part of the core that it needs when it
is first called. Everything they take and return is frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.errors import InputError, wrong_setting
from topox_core.io.content import read

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from topox_core.check.report import CheckReport
    from topox_core.economics.networks import Bill
    from topox_core.fabrics.crossover.verdict import Effort, Verdict
    from topox_core.fabrics.run import FabricRun
    from topox_core.model.cluster import Cluster
    from topox_core.model.task_graph import TaskGraph
    from topox_core.model.transfer_graph import TransferGraph
    from topox_core.rails.delay import DelayStudy
    from topox_core.schedule.results.result import Result
    from topox_core.studies.study import Study
    from topox_core.studies.study_run import StudyResult
    from topox_core.tdm.model.jobs import Jobs, Round

__all__ = [
    "InputError",
    "check_schedule",
    "compare_fabrics",
    "draw",
    "generate_workload",
    "load_cluster",
    "load_graph",
    "load_sample",
    "lower_collectives",
    "price_networks",
    "run_study",
    "schedule_iteration",
    "share_fabric",
    "study_rail_delay",
    "verdict",
]


def load_graph(path: str | Path) -> TaskGraph:
    """Read the task graph of one training iteration.

    Parameters
    ----------
    path
        ``.taskgraph.json``, ``.csv`` or FlexNet ``.fbuf``, each also gzipped (docs/files.md).

    Returns
    -------
    TaskGraph
        Validated and frozen; ``digest`` identifies its content.

    Raises
    ------
    InputError
        If the file cannot be used: file, task and field are named in one line.
    """
    from topox_core.io.task_graph_file import load_graph as graph_of

    return graph_of(read(path), Path(path).name)


def load_cluster(path: str | Path) -> Cluster:
    """Read a cluster: servers, ports, switches, slot length, reconfiguration delay.

    Raises
    ------
    InputError
        If the file cannot be used: file and field are named in one line.
    """
    from topox_core.io.cluster_file import load_cluster as cluster_of

    return cluster_of(read(path), Path(path).name)


def load_sample(name: str) -> tuple[TaskGraph, Cluster]:
    """Return the task graph and the cluster of a sample that comes with the workbench.

    Parameters
    ----------
    name
        One of ``topox_core.workloads.samples.SAMPLES``, e.g. ``"moe"`` or ``"dlrm-16"``.

    Raises
    ------
    InputError
        If there is no sample of that name; the known ones are listed.
    """
    from topox_core.workloads.samples import load_sample as sample_of

    return sample_of(name)


def generate_workload(name: str, **parameters: object) -> tuple[TaskGraph, Cluster]:
    """Generate a training workload and the cluster it suggests.

    Parameters
    ----------
    name
        ``dlrm``, ``pipeline``, ``fsdp``, ``moe``, ... (docs/workloads.md; ``topox workload --list``).
    **parameters
        Changes to its parameters; the rest keep their defaults.

    Raises
    ------
    InputError
        If the workload or a parameter is unknown, or a value is out of range.
    """
    from topox_core.workloads.catalogue import generate

    return generate(name, parameters)


def lower_collectives(graph: TaskGraph, **lowering: Any) -> TransferGraph:
    """Return the graph with every collective as point-to-point transfers on rings, between barriers.

    Parameters
    ----------
    graph
        Tasks and collectives.
    **lowering
        Fields of :class:`topox_core.model.transfer_graph.Lowering`: ``rings``, ``strides``,
        ``all_reduce_on_network``, ``steps``, ``broadcast``, ``algorithm`` (a mapping such as
        ``{"all_reduce": "two_level(4)"}``), ``group``, ``chunks``, ``parts``.

    Returns
    -------
    TransferGraph
        Arrays, a row per node: compute tasks, transfers and barriers.

    Raises
    ------
    InputError
        If a choice is out of range for the graph.
    """
    from topox_core.model.lowering.lowering import lower
    from topox_core.model.lowering_choices import Lowering

    return lower(graph, Lowering(**lowering))


def schedule_iteration(
    graph: TaskGraph,
    cluster: Cluster,
    *,
    engine: str = "list",
    time_limit_s: float = 60.0,
    model: str = "physical",
    lowering: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Result:
    """Schedule one training iteration on optical circuits (TOPO-X, eqs 2 to 10).

    The same schedule as on the Schedule page, in the command ``topox schedule`` and in
    :func:`compare_fabrics`.

    Parameters
    ----------
    graph, cluster
        What runs, on what; change a cluster with ``cluster.changed(port_gbps=400)``.
    engine
        ``list`` (at once), ``auto``, ``cpsat``, ``highs`` or ``printed`` (exact, within the limit).
    time_limit_s
        Of an exact engine, in seconds.
    model
        ``physical``, or ``paper`` for the equations as printed.
    lowering
        As in :func:`lower_collectives`; rings and algorithms that it does not name are free: every
        circuit fabric takes the fastest of those it tries.
    **settings
        Other fields of :class:`topox_core.schedule.settings.Settings`, e.g. ``seed``, ``threads``.

    Returns
    -------
    Result
        ``makespan_ms`` and ``bound_ms`` (of unrounded times, but on slots), ``gap`` (0 to 1), ``status``,
        ``stopped_by`` and the ``execution``: start and end of every task, every circuit.

    Raises
    ------
    InputError
        If graph, cluster and settings do not go together; file and field are named.
    """
    from topox_core.fabrics.planning.scheduled import schedule

    return schedule(graph, cluster, _settings(engine, time_limit_s, model, lowering, settings))


def check_schedule(graph: TaskGraph, cluster: Cluster, result: Result) -> CheckReport:
    """Check a schedule against every constraint, by code that the engines do not share.

    Returns
    -------
    CheckReport
        ``ok``, and a line for each constraint with its equation and its violations.

    Raises
    ------
    InputError
        If graph and cluster do not fit together.
    """
    from topox_core.check.checker import check
    from topox_core.schedule.results.result_file import to_record

    return check(graph, cluster, to_record(result))


def compare_fabrics(
    graph: TaskGraph,
    cluster: Cluster,
    fabrics: Iterable[str] | None = None,
    *,
    engine: str = "list",
    time_limit_s: float = 60.0,
    lowering: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, FabricRun]:
    """Run one iteration on every fabric; the fat-tree is the one of the same cost.

    Parameters
    ----------
    fabrics
        Some of ``ideal``, ``fat_tree``, ``static``, ``reactive``, ``provisioned``, ``scheduled``,
        ``reevaluated``, ``phased``, ``in_collective``; None means the first six.
    engine, time_limit_s, lowering, **settings
        As in :func:`schedule_iteration`.

    Returns
    -------
    dict of FabricRun
        By fabric: ``iteration_ms``, ``bound_ms``, ``breakdown``, ``traffic``, ``execution``.

    Raises
    ------
    InputError
        If a name is no fabric, or a fabric cannot run the graph; the fabric is named.
    """
    from topox_core.fabrics.comparison.compare import compare
    from topox_core.fabrics.registry import USUAL

    chosen = _settings(engine, time_limit_s, "physical", lowering, settings)
    return compare(graph, cluster, chosen, USUAL if fabrics is None else tuple(fabrics))


def verdict(
    graph: TaskGraph,
    cluster: Cluster,
    *,
    effort: Effort = "list",
    time_limit_s: float = 60.0,
    lowering: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Verdict:
    """Return up to which delay changing circuits pays for a job, and from which delay on no plan can.

    Parameters
    ----------
    effort
        ``list`` (a few plans by rules), ``search`` (as many as the answer needs) or ``prove`` (exact
        engines besides).
    time_limit_s
        Of all exact solves together, in seconds.
    lowering, **settings
        As in :func:`schedule_iteration`; of the settings ``seed`` and ``threads`` count.

    Returns
    -------
    Verdict
        ``sentence``, and for each rival (the best fixed circuits found, a fat-tree of the same cost, a
        full one) ``iteration_ms``, ``pays_up_to_ms`` and ``cannot_pay_from_ms``.

    Raises
    ------
    InputError
        If graph and cluster do not go together, or the effort is unknown.
    """
    from topox_core.fabrics.crossover.verdict import verdict as find

    chosen = _settings("list", time_limit_s, "physical", lowering, settings)
    return find(graph, cluster, chosen, effort)


def study_rail_delay(
    preset: str, delays_ms: Sequence[float] | None = None, **changes: Any
) -> DelayStudy:
    """Return the iteration of a job on photonic rails against the switching delay (Opus, Fig. 8).

    Parameters
    ----------
    preset
        One of ``topox_core.rails.presets.PRESETS``, e.g. ``"llama3-8b-perlmutter"``.
    delays_ms
        Delays of a switch in milliseconds; None takes the usual ones from 0 to 1,000.
    **changes
        Keys of the preset, e.g. ``pipeline=8``.

    Returns
    -------
    DelayStudy
        ``base_ms`` without any delay, and a row a delay: ``on_demand_ms``, ``provisioned_ms``.

    Raises
    ------
    InputError
        If the preset is unknown, its degrees do not fit, or a delay is out of range.
    """
    from topox_core.rails import presets
    from topox_core.rails.builder import build
    from topox_core.rails.delay import RAIL_DELAYS_MS, iteration_source, study
    from topox_core.rails.iteration import Rail

    job = presets.changed(presets.preset(preset), changes)
    source = iteration_source(build(job, fold=True), Rail(nic_gbps=job.machine.network_gbps))
    return study(source, RAIL_DELAYS_MS if delays_ms is None else delays_ms)


def share_fabric(
    jobs: Jobs | str | Path,
    algorithm: str = "hill-climbing",
    *,
    time_limit_s: float = 60.0,
    seed: int = 0,
) -> Round:
    """Let several jobs share one optical fabric by time division, and bound the round.

    Parameters
    ----------
    jobs
        Jobs and their fabric, or the path of a jobs file (docs/files.md).
    algorithm
        ``hill-climbing`` (the drafts'), ``best``, ``milp``, ``non-tdm``, ... (docs/tdm.md).
    time_limit_s
        In seconds.
    seed
        Of algorithms that draw.

    Returns
    -------
    Round
        ``round_s`` and ``bound_s`` in seconds, the group of every job, the links of every stage.

    Raises
    ------
    InputError
        If the file cannot be used, there is no such algorithm, or ports are too few.
    """
    from topox_core.tdm.algorithms.catalogue import solve
    from topox_core.tdm.algorithms.round_bounds import bounded
    from topox_core.tdm.model.jobs import TdmSettings
    from topox_core.tdm.model.jobs_file import load_jobs

    if isinstance(jobs, str | Path):
        jobs = load_jobs(read(jobs), Path(jobs).name)
    settings = TdmSettings(algorithm=algorithm, time_limit_s=time_limit_s, seed=seed)
    return bounded(solve(jobs, settings))


def price_networks(
    gpus: int, prices: str | None = None, *, gpus_per_server: int = 8, **counting: Any
) -> dict[str, Bill]:
    """Return what each network of a cluster costs and draws, part by part.

    Parameters
    ----------
    gpus
        Of the cluster, in whole servers.
    prices
        One of ``topox_core.economics.price_sets.PRICE_SETS``; None takes the default set.
    gpus_per_server, **counting
        Fields of :class:`topox_core.economics.networks.Counting`.

    Returns
    -------
    dict of Bill
        By network: ``cost_usd``, ``power_w`` and the lines they add up from.

    Raises
    ------
    InputError
        If the GPUs do not fill servers, or there is no such price set.
    """
    from topox_core.economics.networks import Counting, bills
    from topox_core.economics.price_sets import DEFAULT_SET, price_set

    chosen = Counting(gpus_per_server=gpus_per_server, **counting)
    return bills(gpus, price_set(DEFAULT_SET if prices is None else prices), chosen)


def run_study(
    study: Study | Mapping[str, Any] | str | Path,
    *,
    library: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> StudyResult:
    """Compute many points of one question, on all cores or on a cluster; what is kept is not computed again.

    Parameters
    ----------
    study
        A study file's path or what is in one (docs/studies.md), the name of a ready study
        (``topox study ready``), or a :class:`topox_core.studies.study.Study`.
    library
        The run library in which every point is kept as soon as it is there; None keeps nothing.
    workers, scheduler
        Processes on this machine (default: one a core), or the address of a Dask scheduler.

    Returns
    -------
    StudyResult
        ``rows`` in the order of the design, each with its ``point`` and ``measures``;
        :func:`topox_core.studies.slices.records` makes a flat table of them.

    Raises
    ------
    InputError
        If the study cannot be used, a subject is gone, or the scheduler cannot be reached.
    """
    from contextlib import ExitStack

    from topox_core.library.run_library import RunLibrary
    from topox_core.runs.cells import executor_for
    from topox_core.runs.run import finish
    from topox_core.studies.ready import study_given
    from topox_core.studies.study_run import StudyRun, plan_of

    with ExitStack() as stack:
        kept = None if library is None else stack.enter_context(RunLibrary.open(Path(library)))
        chosen, folder = study_given(study, kept)
        plan = plan_of(chosen, kept, folder)
        executor = executor_for(scheduler, workers)
        stack.callback(executor.kill)
        result = finish(StudyRun(plan, kept, executor))
        assert result is not None  # a study has a table from its start
        return result


def draw(subject: Any, theme: str = "light") -> go.Figure:
    """Draw a result of this interface as the pages do.

    Parameters
    ----------
    subject
        What :func:`schedule_iteration` (Gantt chart), :func:`compare_fabrics` (a bar a fabric),
        :func:`study_rail_delay` (overhead against delay), :func:`share_fabric` (one round on a
        clock) or :func:`price_networks` (cost by part) returned.
    theme
        ``light`` or ``dark``.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there is no figure for such an object, or nothing in it to draw.
    """
    from topox_core.figures.drawing import figure_of

    return figure_of(subject, theme)


def _settings(
    engine: str,
    time_limit_s: float,
    model: str,
    lowering: Mapping[str, Any] | None,
    others: Mapping[str, Any],
) -> Any:
    from topox_core.schedule.settings import Settings, lowering_and_free

    unknown = sorted(set(others) - set(Settings.__dataclass_fields__))
    if unknown:
        raise wrong_setting(unknown[0], "unknown setting")
    fixed, free = lowering_and_free(lowering or {}, model)
    return Settings.of(
        model,  # type: ignore[arg-type]
        engine=engine,
        time_limit_s=time_limit_s,
        lowering=fixed,
        **{"free": free, **others},
    )
