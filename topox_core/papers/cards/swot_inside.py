"""SWOT's reduction against static circuits, beside ours: one collective with circuits that change inside it."""

from topox_core.fabrics.compare import run_one, run_with_best_lowering
from topox_core.fabrics.run import JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.papers.card import CardRun, Rows
from topox_core.schedule.settings import Settings as PlannerSettings

MEMBERS, GBPS = 8, 100.0
MEGABYTES = (1.0, 10.0, 100.0, 1000.0)
KINDS = ("all_to_all", "all_reduce")


def saved(kind: str, megabytes: float, ports: int, delay_ms: float) -> float:
    """Return by which share switching inside a collective shortens it against fixed circuits."""
    task = Task("c", kind, (), members=tuple(range(MEMBERS)), size_bytes=1e6 * megabytes)
    cluster = Cluster(MEMBERS, ports, 1, MEMBERS * ports, GBPS).changed(reconfiguration_ms=delay_ms)
    settings = PlannerSettings.of(engine="list", free=("rings", "algorithm"))
    request = JobRequest(TaskGraph("one collective", (task,)), cluster, settings)
    fixed = run_one("static", request.lowered(settings.lowering)).iteration_ms
    return 1 - run_with_best_lowering("in_collective", request).iteration_ms / fixed


def rows(run: CardRun) -> Rows:
    ports, delay_ms = int(run.settings["ports"]), float(run.settings["delay_ms"])
    shares = []
    for kind in KINDS:
        for megabytes in MEGABYTES:
            shares.append(100 * saved(kind, megabytes, ports, delay_ms))
            yield run.row(kind, f"{megabytes:g} MB", shares[-1])
    yield run.row("most", "up to", max(shares))


def said(run: CardRun) -> dict[str, str]:
    reduced = max(row.ours for row in run.of("all_reduce"))
    return {"rings": f"by up to {reduced:.3g} %" if reduced > 0.05 else "not at all"}
