"""Small task graphs and clusters for tests, made by hand or at random."""

import random
from dataclasses import replace
from typing import Any

from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.results.result import Result
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.workloads.samples import load_sample

GBIT_MS = 12_500_000  # bytes that take 1 ms at 100 Gbit/s


def compute(
    task: str, server: int, duration_ms: float, *after: str, kind: str = "forward", device: int = 0
) -> Task:
    return Task(
        task, kind, dependencies=after, server=server, device=device, duration_ms=duration_ms
    )


def transfer(task: str, source: int, destination: int, ms: float, *after: str) -> Task:
    return Task(
        task,
        "communication",
        dependencies=tuple(after),
        source=source,
        destination=destination,
        size_bytes=ms * GBIT_MS,
    )


def graph(*tasks: Task) -> TaskGraph:
    return validated("test", tasks, "test")


def cluster(servers: int = 3, **keys) -> Cluster:
    settings = {
        "ports_per_server": 1,
        "switches": 1,
        "ports_per_switch": servers,
        "port_gbps": 100.0,
    } | keys
    return Cluster(servers=servers, **settings)


def collective(
    kind: str, members: int, size_bytes: float, task: str = "c", *after: str, root: int = 0
) -> Task:
    root_of = {"root": root} if kind == "broadcast" else {}
    return Task(
        task,
        kind,
        dependencies=tuple(after),
        members=tuple(range(members)),
        size_bytes=size_bytes,
        **root_of,
    )


def sample_with(name: str, **changes: Any) -> tuple[TaskGraph, Cluster]:
    """Return a sample on its cluster, some of whose values are others."""
    task_graph, of = load_sample(name)
    return task_graph, of.changed(**changes)


def random_graph(
    seed: int, tasks: int = 25, servers: int = 4, collectives: bool = True
) -> TaskGraph:
    """Make a random acyclic graph of compute, transfers and now and then a collective; times off the grid."""
    rng = random.Random(seed)
    made: list[Task] = []
    for j in range(tasks):
        after = tuple(t.id for t in made if rng.random() < 2.0 / (len(made) + 1))
        kind = rng.random()
        if collectives and kind < 0.08:
            members = tuple(sorted(rng.sample(range(servers), rng.randint(1, servers))))
            made.append(
                Task(
                    f"t{j}",
                    rng.choice(("all_reduce", "all_gather", "all_to_all")),
                    dependencies=after,
                    members=members,
                    size_bytes=rng.random() * 4 * GBIT_MS,
                )
            )
        elif kind < 0.6:
            x, y = rng.sample(range(servers), 2)
            made.append(transfer(f"t{j}", x, y, rng.choice((0.3, 1.0, 2.2, 3.7)), *after))
        elif kind < 0.66:
            made.append(Task(f"t{j}", "barrier", dependencies=after))
        else:
            made.append(
                compute(f"t{j}", rng.randrange(servers), rng.choice((0.0, 0.4, 1.0, 2.6)), *after)
            )
    return graph(*made)


def list_schedule(task_graph: TaskGraph, on: Cluster, settings: Settings) -> Result:
    """Return the list schedule by the priority rules alone, whatever engine the settings name."""
    return solve(task_graph, on, replace(settings, engine="list"))
