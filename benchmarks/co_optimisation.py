"""Search strategies on the fabrics that will run them, and print the table of strategies by fabrics.

    python -m benchmarks.co_optimisation [--model M] [--servers N] [--port-gbps X] [--delay-ms X]
                                         [--fabrics LIST] [--proposals N] [--seeds N]

The defaults are the goal: DLRM No. 2 on 16 servers with four ports of 10 Gbit/s and a delay of
0.01 ms, on static and on scheduled circuits. Prints for each seed every time with its bound, and
the seconds.
"""

from __future__ import annotations

import argparse
import sys
import time

from topox_core.fabrics.registry import FABRICS
from topox_core.strategy.fabric_table import strategy_table, table_sentence
from topox_core.strategy.models import named
from topox_core.strategy.on_fabrics import ModelOnCluster, cluster_of
from topox_core.strategy.search.moves import SearchSettings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="dlrm-16")
    parser.add_argument("--servers", type=int, help="instead of the model's own")
    parser.add_argument("--ports", type=int, default=4)
    parser.add_argument("--port-gbps", type=float, default=10.0)
    parser.add_argument("--delay-ms", type=float, default=0.01)
    parser.add_argument("--fabrics", default="static,scheduled", help="names, or all")
    parser.add_argument("--proposals", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 0 to N - 1")
    options = parser.parse_args()
    model = named(options.model)
    servers = options.servers or model.servers
    cluster = cluster_of(servers, options.ports, options.port_gbps, options.delay_ms)
    fabrics = list(FABRICS) if options.fabrics == "all" else options.fabrics.split(",")
    for seed in range(options.seeds):
        began, busy = time.perf_counter(), time.process_time()
        table = strategy_table(
            ModelOnCluster(model.build(servers), cluster),
            fabrics,
            SearchSettings(options.proposals, seed=seed),
        )
        wall_s, cpu_s = time.perf_counter() - began, time.process_time() - busy
        print(f"{model.name}, seed {seed}: {wall_s:.0f} s, {cpu_s:.0f} s of a core")
        for k, row in enumerate(table.rows):
            cells = [
                f"{name} {one.iteration_ms:.4f} ({one.bound_ms:.4f})"
                for name, one in row.outcomes.items()
            ]
            words = ["data parallel"] if k == 0 else []
            words += [f"best for {','.join(row.found_for)}"] if row.found_for else []
            print(f"  {', '.join(words)}: {'; '.join(cells)}")
        print(f"  {table_sentence(table, table.fabrics[-1])}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
