"""Time the fluid simulator on one task graph: ideal switch, fat-tree, static circuits.

    python benchmarks/fluid.py [--graph FILE] [--port-gbps 100] [--ports 4] [--rings 1]

Prints, for each fabric, seconds (compiled code warm), the iteration time, its lower bound and what
binds it, and the bandwidth tax. The layout of the static circuits is found by TopologyFinder and
timed apart; the second static row has the all-reduces moved onto its rings.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.real_inputs import REAL_INPUTS
from topox_core.fabrics.fixed.static import run_static
from topox_core.fabrics.fluid.links import run_fat_tree
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.io.task_graph_file import load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import TRANSFER
from topox_core.schedule.settings import Settings
from topox_core.topology.finder import find_layout
from topox_core.topology.ring_circuits import on_rings
from topox_core.topology.traffic import demand_of

DEFAULT = REAL_INPUTS / "flexnet" / "100dlrm_128.fbuf"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", type=Path, default=DEFAULT)
    parser.add_argument("--port-gbps", type=float, default=100.0)
    parser.add_argument("--ports", type=int, default=4, help="ports of a server")
    parser.add_argument("--rings", type=int, default=1)
    given = parser.parse_args()
    tasks = load_graph(given.graph.read_bytes(), given.graph.name)
    lowering = Lowering(rings=given.rings)
    graph = lower(tasks, lowering)
    servers = tasks.servers
    cluster = Cluster(
        servers=servers,
        ports_per_server=given.ports,
        switches=given.ports,
        ports_per_switch=servers,
        port_gbps=given.port_gbps,
    )
    began = time.perf_counter()
    result = find_layout(demand_of(graph, servers), given.ports)
    layout, moved = result.layout, on_rings(graph, result)
    print(
        f"{given.graph.name}: {len(graph):,} nodes, {(graph.kind == TRANSFER).sum():,} transfers; "
        f"layout of {len(layout.links[0])} links found in {time.perf_counter() - began:.1f} s"
    )
    print(
        f"{'fabric':10} {'transfers':>9} {'seconds':>8} {'iteration ms':>13} {'bound ms':>10} {'tax':>6}  bound by"
    )
    options = FabricOptions(layout=layout, servers_per_rack=16, oversubscription=4.0)
    for run, on in (
        (run_fat_tree, graph),
        (run_static, graph),
        (run_static, moved),
    ):
        order = FabricRequest(on, cluster, Settings(lowering=lowering), options)
        run(order, lambda: False)  # compiled code warm
        began = time.perf_counter()
        answer = run(order, lambda: False)
        seconds = time.perf_counter() - began
        print(
            f"{answer.fabric:10} {(on.kind == TRANSFER).sum():9,} {seconds:8.2f} {answer.iteration_ms:13.3f} "
            f"{answer.bound_ms:10.3f} {answer.traffic.bandwidth_tax:6.2f}  {answer.bound_by}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
