"""What fabrics are asked in tests: a job on a cluster, lowered as the settings say."""

from typing import Any

from topox_core.fabrics.comparison.compare import run_one
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.settings import Settings

LIST = Settings.of(engine="list")
# As the references count: from the first task to the last, not from one iteration to the next.
FIRST = Settings.of(engine="list", iteration="first")


def request(job: TaskGraph, of: Cluster, how: Settings = LIST, **options: Any) -> FabricRequest:
    return FabricRequest(lower(job, how.lowering), of, how, FabricOptions(**options))


def run(
    fabric: str, job: TaskGraph, of: Cluster, how: Settings = LIST, **options: Any
) -> FabricRun:
    return run_one(fabric, request(job, of, how, **options))
