"""How often one explicit choice of rings or of an algorithm beats the automatic one, on small random graphs with collectives.

    python -m benchmarks.single_choices [--graphs 330] [--first 0] [--fixed] [--ideal]

Each graph has up to six tasks, one or two collectives among them, on three to six servers. Explicit are 1, 2 and 4
rings and, for each kind of collective in the graph, each algorithm that fits its members; all else stays automatic.
Circuits change; with ``--fixed`` they may also stay fixed, whose search takes some hundred times as long. Prints each
graph on which an explicit choice is shorter or lies below the automatic answer's bound, then how many are beaten by
more than 0, 2 and 5 % and by how much at most: over those plans and, with ``--ideal``, on the ideal switch.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

from topox_core.fabrics.comparison.compare import run_with_best_lowering
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.run import JobRequest
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.algorithm_choice import DEFAULT, algorithms_that_fit
from topox_core.model.task_graph import COLLECTIVE_KINDS, Task, TaskGraph
from topox_core.schedule.settings import Settings, lowering_and_free

BYTES_MS = 1_250_000  # that take 1 ms at 10 Gbit/s
SHARES = (1e-6, 0.02, 0.05)


def made(seed: int) -> tuple[TaskGraph, Cluster]:
    """Return a small random graph with at least one collective, and a cluster for it."""
    rng = random.Random(seed)
    servers, ports = rng.randint(3, 6), rng.randint(1, 3)
    tasks: list[Task] = []

    def after(most: int = 2) -> tuple[str, ...]:
        return tuple(t.id for t in rng.sample(tasks, min(len(tasks), rng.randint(0, most))))

    def collective(name: str) -> Task:
        members = tuple(rng.sample(range(servers), rng.randint(2, servers)))
        kind = rng.choice(COLLECTIVE_KINDS)
        root = rng.choice(members) if kind == "broadcast" else None
        size = rng.randint(1, 12) * BYTES_MS
        return Task(name, kind, dependencies=after(), members=members, size_bytes=size, root=root)

    for j in range(rng.randint(1, 5)):
        name, kind = f"t{j}", rng.random()
        if kind < 0.15:
            tasks.append(collective(name))
        elif kind < 0.6:
            x, y = rng.sample(range(servers), 2)
            size = rng.randint(1, 8) * BYTES_MS / 2
            tasks.append(
                Task(
                    name,
                    "communication",
                    dependencies=after(),
                    source=x,
                    destination=y,
                    size_bytes=size,
                )
            )
        else:
            ms, at = rng.randint(1, 8) / 2, rng.randrange(servers)
            tasks.append(
                Task(name, "forward", dependencies=after(), server=at, device=0, duration_ms=ms)
            )
    tasks.append(collective("C"))
    if rng.random() < 0.3:
        at = rng.randrange(servers)
        tasks.append(
            Task("Z", "forward", dependencies=("C",), server=at, device=0, duration_ms=2.0)
        )
    cluster = Cluster(
        servers=servers,
        ports_per_server=ports,
        switches=ports,
        ports_per_switch=2 * servers,
        port_gbps=10.0,
        slot_ms=1.0,
        reconfiguration_ms=rng.choice((0.0, 0.0, 0.5, 2.0)),
        duplex=rng.choice(("full", "half")),
    )
    return validated(f"random {seed}", tasks, "benchmark"), cluster


def single_choices(graph: TaskGraph) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every explicit choice with its words, as fields of a lowering."""
    for k in (1, 2, 4):
        yield f"{k} rings", {"rings": k}
    for kind in COLLECTIVE_KINDS:
        sizes = {len(task.members or ()) for task in graph.tasks if task.kind == kind}
        if any(n > 1 for n in sizes):
            for name in (DEFAULT, *algorithms_that_fit(kind, sizes)):
                yield f"{kind}={name}", {"algorithm": ((kind, name),)}


def times_ms(job: JobRequest, ideal: bool) -> tuple[float, dict[str, float]]:
    """Return the bound of the answer to a job, and its times by what is compared."""
    result = schedule(job.task_graph, job.cluster, job.settings)
    times = {"plans": result.makespan_ms or 0.0}
    if ideal:
        times["ideal switch"] = run_with_best_lowering("ideal", job).iteration_ms
    return result.bound_ms, times


def main() -> int:
    """Measure, and print what was beaten."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--graphs", type=int, default=330)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--ideal", action="store_true")
    options = parser.parse_args()
    switching = "auto" if options.fixed else "planned"
    leads: dict[str, list[float]] = {}
    below, automatic_s, began = 0, 0.0, time.process_time()
    for seed in range(options.first, options.first + options.graphs):
        graph, cluster = made(seed)

        def answered(**given: Any) -> tuple[float, dict[str, float]]:
            lowering, free = lowering_and_free(given, "physical")
            settings = Settings.of(engine="list", switching=switching, lowering=lowering, free=free)
            return times_ms(JobRequest(graph, cluster, settings), options.ideal)  # noqa: B023 (called at once)

        before = time.process_time()
        bound_ms, own = answered()
        automatic_s += time.process_time() - before
        lead = dict.fromkeys(own, 0.0)
        for words, given in single_choices(graph):
            _, other = answered(**given)
            shares = {name: 1 - ms / own[name] for name, ms in other.items()}
            lead = {name: max(lead[name], share) for name, share in shares.items()}
            told = [f"{name} {share:.2%}" for name, share in shares.items() if share > SHARES[0]]
            if other["plans"] < bound_ms * (1 - 1e-9):
                below += 1
                told.append(f"{other['plans']:g} below the bound of {bound_ms:g}")
            if told:
                print(f"{seed}: {words}: {', '.join(told)}", flush=True)
        for name, share in lead.items():
            leads.setdefault(name, []).append(share)
    for name, of_graphs in leads.items():
        counts = ", ".join(f"{sum(x > s for x in of_graphs)} by > {s:.0%}" for s in SHARES)
        print(f"{name}: of {len(of_graphs)} beaten {counts}, at most {max(of_graphs):.1%}")
    whole_s = time.process_time() - began
    print(
        f"{below} choices below the bound; automatic {automatic_s:.1f} of {whole_s:.0f} s of a core"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
