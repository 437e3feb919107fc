"""Compile the scheduling kernels before anybody waits for them: ``python -m topox_core.warm_up``.

The machine code is cached on disk, so that only the first call on a machine takes long; a later one
loads it. The app has a process compile all of them beside its first visitor, which tells how far it
is; the tests want them before, side by side (with the arguments ``fabrics`` and ``jobs``).
"""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numba

from topox_core.compiled import forget_old_code, tell_compiled
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.runs.cores import NICENESS, lower_priority
from topox_core.runs.run import never
from topox_core.schedule.bounds.propagation import Propagator, raised_bound
from topox_core.schedule.planning.fold import fold
from topox_core.schedule.planning.local_search import LocalSearch
from topox_core.schedule.planning.planner import prepare
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve

SERVERS = 3
# How many kernels a machine without any compiles: `python -m topox_core.warm_up all | wc -l`.
KERNELS = 216
# How long they take on two shared cores (benchmarks/first_minute.py), which is what is said before
# any is compiled, and counts like so many of this machine's until there are more.
USUAL_S, USUAL_COUNTS = 156.0, 30
# Tells each kernel that it has compiled in a line.
COMMAND = (sys.executable, "-m", "topox_core.warm_up", "all")


def warm_up() -> None:
    """Schedule a tiny iteration under both models and both rules for circuits."""
    graph, cluster = _everyone_to_everyone()
    for duplex in ("full", "half"):
        for changes, settings in (
            ({"reconfiguration_ms": 0.5}, Settings.of("physical", engine="list")),
            ({}, Settings.of("physical", circuits="per-slot", engine="list")),
            ({}, Settings.of("paper", engine="list")),
        ):
            solve(graph, cluster.changed(duplex=duplex, **changes), settings)
    _propagate(graph, cluster)
    _search(graph, cluster)


def get_ready() -> None:
    """Compile what an exact solve needs, once for each installation, so that its time limit is for solving."""
    if not is_ready("") and os.access(_stamp("").parent, os.W_OK):
        warm_up()
        _remember("")


def is_ready(*parts: str) -> bool:
    """Return whether parts of the kernels (by default all of them) are compiled on this machine."""
    return all(_stamp(part).exists() for part in parts or PARTS)


def _stamp(part: str) -> Path:
    """Return the file that says that a part of the kernels is compiled."""
    folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    return folder / f"ready{part}-{numba.__version__}-{sys.version_info[1]}"


def _remember(part: str) -> None:
    with suppress(OSError):
        _stamp(part).touch()


def warm_up_fabrics() -> None:
    """Run the same iteration on every fabric, and time one strategy and one job."""
    from topox_core.fabrics.comparison.compare import compare
    from topox_core.fabrics.registry import FABRICS
    from topox_core.strategy.models import named
    from topox_core.strategy.search.evaluator import FastEvaluator, non_blocking
    from topox_core.strategy.strategy import data_parallel
    from topox_core.training.iteration import iteration
    from topox_core.training.job import JOBS

    graph, cluster = _everyone_to_everyone()
    slow = cluster.changed(reconfiguration_ms=0.5)
    compare(graph, slow, Settings.of("physical", engine="list"), FABRICS)
    model = named("dlrm-16").build(16)
    FastEvaluator(model, non_blocking(16))(data_parallel(model, 16))
    iteration(JOBS["llama3-8b"])


def load_kernels() -> None:
    """Load all that a list schedule needs, as a process does that makes many."""
    warm_up()
    warm_up_fabrics()


def warm_up_jobs() -> None:
    """Share a small fabric among a few jobs by every method that is compiled, and bound it."""
    from topox_core.tdm.algorithms.catalogue import ALGORITHMS, solve
    from topox_core.tdm.algorithms.round_bounds import bounded
    from topox_core.tdm.mixes.deployment import SetUp, deploy
    from topox_core.tdm.model.jobs import TdmSettings

    jobs = deploy(SetUp(jobs=8, pod_groups=2, pods_per_group=4, ports_per_pod=8, degree_max=6))
    for name in ALGORITHMS:
        if name not in ("milp", "best"):  # compiled no further, and a worker process would start
            bounded(solve(jobs, TdmSettings(algorithm=name, time_limit_s=30.0, steps=200)))


def _everyone_to_everyone() -> tuple[TaskGraph, Cluster]:
    """Return a tiny iteration in which every server sends to every other at once over a single port.

    So no rule meets the bound at the first try: all of them are called, forwards and backwards, and
    circuits have to change.
    """
    tasks = []
    for server in range(SERVERS):
        tasks.append(Task(f"f{server}", "forward", server=server, device=0, duration_ms=1.5))
        others = [other for other in range(SERVERS) if other != server]
        tasks += [
            Task(
                f"{server}to{other}.{part}",
                "communication",
                dependencies=(f"f{server}",),
                source=server,
                destination=other,
                size_bytes=25e6 * (1 + other),
            )
            for other in others
            for part in range(2)
        ]
        arrivals = tuple(f"{other}to{server}.{part}" for other in others for part in range(2))
        tasks.append(
            Task(
                f"b{server}",
                "backward",
                dependencies=arrivals,
                server=server,
                device=0,
                duration_ms=2.5,
            )
        )
    graph = validated("warm-up", tasks, "warm-up")
    cluster = Cluster(
        servers=SERVERS, ports_per_server=1, switches=1, ports_per_switch=2, port_gbps=100.0
    )
    return graph, cluster


def _propagate(graph: TaskGraph, cluster: Cluster) -> None:
    """Raise a bound by propagation, as an exact solve does first; fold, as a large problem is."""
    prepared = prepare(graph, cluster, Settings.of("physical", tick="slot"))
    problem, planner = prepared.reduction.problem, prepared.planner
    makespan = planner.best_plan().makespan
    fold(problem, least=0.5)
    raised_bound(Propagator(problem), 0, lambda: makespan, 1, math.inf, never)


def _search(graph: TaskGraph, cluster: Cluster) -> None:
    """Take a few steps of the local search, per slot and on ports, and count ancestors with and without dark time."""
    for settings in (Settings.of("physical", circuits="per-slot"), Settings.of("physical")):
        prepared = prepare(
            graph,
            cluster.changed(reconfiguration_ms=0.5 if settings.circuits == "continuous" else 0.0),
            settings,
        )
        LocalSearch(prepared.planner, prepared.planner.best_plan()).go_on(3)
        prepared.planner.with_ancestor_tails()


class Preparation:
    """Compiles all kernels in a process of its own where this machine has not got them yet.

    Where they cannot be kept, nothing is prepared: who needs one compiles it.

    Parameters
    ----------
    command
        What compiles them, and writes a line for each.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._began, self._compiled, self._over = time.monotonic(), 0, threading.Event()
        folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
        if is_ready() or not os.access(folder, os.W_OK):
            self._over.set()
            return
        threading.Thread(target=self._compile, name="preparation", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether nothing is being compiled, and nobody need wait."""
        return self._over.is_set()

    def wait(self) -> None:
        """Wait until it is ready."""
        self._over.wait()

    @property
    def words(self) -> str:
        """How far it is, and about how long it will take."""
        done, spent_s = self._compiled, time.monotonic() - self._began
        each_s = (spent_s + USUAL_S * USUAL_COUNTS / KERNELS) / (done + USUAL_COUNTS)
        left_s = each_s * (KERNELS - done)
        about = f"{max(5, 5 * round(left_s / 5))} s" if left_s < 90 else f"{round(left_s / 60)} min"
        return f"{min(done, KERNELS)} of {KERNELS}, about {about}"

    def _compile(self) -> None:
        """Count the lines of the process that compiles; one that fails leaves the rest to whoever needs it."""
        package = str(Path(__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONPATH": package}
        try:
            with subprocess.Popen(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as child:
                for _ in child.stdout or ():
                    self._compiled += 1
        finally:
            self._over.set()


# What the command compiles; without a name the scheduler's kernels, with ``all`` one part after the
# other, and each kernel is told in a line.
PARTS = {"": warm_up, "fabrics": warm_up_fabrics, "jobs": warm_up_jobs}


def _tell(name: str) -> None:
    sys.stdout.write(f"{name}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    forget_old_code()
    asked = "".join(sys.argv[1:])
    if asked == "all":  # beside somebody who looks at a page
        lower_priority(NICENESS)
        tell_compiled(_tell)
    for part in PARTS if asked == "all" else (asked,):
        began = time.perf_counter()
        PARTS[part]()
        _remember(part)
        if asked != "all":
            sys.stdout.write(f"Kernels ready after {time.perf_counter() - began:.1f} s\n")
