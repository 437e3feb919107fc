"""How often a network is slower with faster ports, with more of them, or with less delay, on small random graphs.

    python -m benchmarks.monotone [--graphs 60] [--first 0] [--cases]

Each graph has up to fifteen tasks on three to seven servers of one to three ports. Four speeds, four numbers of ports
(one on each switch) and five delays, each step between neighbours a case, all else as the graph's cluster has it.
Plans are counted twice: made for each setting alone, and with those of harder settings passed on, as pages do. Prints
for each network the steps that make it slower and by how much at most (``--cases``: each of them), then how often
circuits that a controller or a plan never changed are shorter than circuits fixed by the task graph.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.planning.passed_plans import PassedPlan, PlanChoice
from topox_core.fabrics.registry import BY_RULE, FABRICS
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import COLLECTIVE_KINDS, Task, TaskGraph
from topox_core.schedule.settings import FREE, Settings

BYTES_MS = 1_250_000  # that take 1 ms at 10 Gbit/s
SETTINGS = Settings.of(engine="list", free=FREE)
PASSED = "scheduled, passed on"
SLOWER = 1 + 1e-9
# From the hardest setting to the easiest.
STEPS: Mapping[str, tuple[Mapping[str, float], ...]] = {
    "more speed": tuple({"port_gbps": gbps} for gbps in (10.0, 20.0, 40.0, 100.0)),
    "more ports": tuple({"ports_per_server": k, "switches": k} for k in (1, 2, 3, 4)),
    "less delay": tuple({"reconfiguration_ms": ms} for ms in (20.0, 5.0, 1.0, 0.1, 0.0)),
}


def made(seed: int) -> tuple[TaskGraph, Cluster]:
    """Return a random graph with now and then a collective, and a cluster for it."""
    rng = random.Random(seed)
    servers, ports = rng.randint(3, 7), rng.randint(1, 3)
    tasks: list[Task] = []
    for j in range(rng.randint(8, 15)):
        name, kind = f"t{j}", rng.random()
        after = tuple(t.id for t in rng.sample(tasks, min(len(tasks), rng.randint(0, 2))))
        if kind < 0.12:
            members = tuple(rng.sample(range(servers), rng.randint(2, servers)))
            what = rng.choice(COLLECTIVE_KINDS)
            root = rng.choice(members) if what == "broadcast" else None
            size = rng.randint(1, 8) * BYTES_MS / 2
            tasks.append(
                Task(name, what, dependencies=after, members=members, size_bytes=size, root=root)
            )
        elif kind < 0.65:
            x, y = rng.sample(range(servers), 2)
            given = rng.random() < 0.3  # a duration, which is that of a port at any speed
            size, ms = rng.randint(1, 8) * BYTES_MS / 2, rng.randint(1, 8) / 2
            what = {"duration_ms": ms} if given else {"size_bytes": size}
            tasks.append(
                Task(name, "communication", dependencies=after, source=x, destination=y, **what)
            )
        else:
            ms, at = rng.randint(1, 8) / 2, rng.randrange(servers)
            tasks.append(
                Task(name, "forward", dependencies=after, server=at, device=0, duration_ms=ms)
            )
    cluster = Cluster(
        servers=servers,
        ports_per_server=ports,
        switches=ports,
        ports_per_switch=2 * servers,
        port_gbps=10.0,
        reconfiguration_ms=rng.choice((0.1, 1.0, 5.0, 20.0)),
    )
    return validated(f"random {seed}", tasks, "benchmark"), cluster


def along(
    graph: TaskGraph, clusters: list[Cluster]
) -> Iterator[tuple[dict[str, float], dict[str, FabricRun]]]:
    """Yield the times of every network on clusters from the hardest to the easiest, and its runs."""
    plans: list[PassedPlan] = []
    for cluster in clusters:
        runs = compare(graph, cluster, SETTINGS, FABRICS)
        times = {name: run.iteration_ms for name, run in runs.items()}
        result = runs["scheduled"].result
        assert result is not None
        passed = PlanChoice(JobRequest(graph, cluster, SETTINGS), result).among(plans)
        assert passed.makespan_ms is not None
        times[PASSED] = passed.makespan_ms
        plans += [one for one in (PassedPlan.of(result), PassedPlan.of(passed)) if one is not None]
        yield times, runs


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--graphs", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", action="store_true", help="print each case")
    asked = parser.parse_args()
    worst: dict[tuple[str, str], list[float]] = defaultdict(list)
    steps, unchanged, behind = Counter[str](), 0, []
    for seed in range(asked.first, asked.first + asked.graphs):
        graph, cluster = made(seed)
        for way, changes in STEPS.items():
            # A name for each, so that no setting has from another one what pages keep.
            clusters = [cluster.changed(name=f"{way} {k}", **one) for k, one in enumerate(changes)]
            found = list(along(graph, clusters))
            for at, ((hard, _), (easy, _)) in enumerate(pairwise(found)):
                steps[way] += 1
                for name in easy:
                    if easy[name] > hard[name] * SLOWER:
                        worst[way, name].append(easy[name] / hard[name] - 1)
                        if asked.cases:
                            print(
                                f"{seed} {way} {at} {name} {hard[name]:.6g} {easy[name]:.6g}",
                                flush=True,
                            )
            for at, (_, runs) in enumerate(found):
                fixed_ms = runs["static_graph"].iteration_ms
                still = [runs[name] for name in BY_RULE if not runs[name].circuits_changed]
                planned = runs["scheduled"]
                if planned.result.switching != "fixed" and not planned.circuits_changed:
                    still.append(planned)
                for run in still:
                    unchanged += 1
                    if run.iteration_ms < fixed_ms / SLOWER:
                        behind.append(fixed_ms / run.iteration_ms - 1)
                        if asked.cases:
                            print(
                                f"{seed} {way} {at} {run.fabric} {run.iteration_ms:.6g} fixed {fixed_ms:.6g}",
                                flush=True,
                            )
    for way, count in steps.items():
        said = ", ".join(
            f"{name} {len(worst[way, name])} (+{max(worst[way, name]):.0%})"
            for name in (*FABRICS, PASSED)
            if worst[way, name]
        )
        print(f"{way}, of {count} steps: {said or 'none'}")
    print(
        f"circuits that never changed: {unchanged}; shorter than circuits fixed by the task graph: {len(behind)}"
        + (f" (+{max(behind):.0%})" if behind else "")
    )


if __name__ == "__main__":
    main()
