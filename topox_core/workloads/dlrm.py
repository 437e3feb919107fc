"""DLRM as in TOPO-X Table II: dense layers on all servers, tables on one each.

The graph has the shape that FlexNet gives it (TopoOpt, NSDI 2023): forward and backward of every
operator on every server, an all-reduce for each weight and each bias of the dense layers, and
between each embedding table and every other server one transfer forward and one backward.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.workloads.parameter import Parameter, Workload, compute_task, suggested_cluster

SOURCE = (
    "A100 operator times published with TopoOpt (NSDI 2023), Apache-2.0; sizes: TOPO-X Table II"
)


@dataclass(frozen=True)
class Configuration:
    """One row of TOPO-X Table II with the layer counts of the released scripts.

    Times are (forward, backward) in ms of one server of 4 A100 when the batch is split over all
    servers; an embedding lookup is not split. Layers are (inputs, outputs, how many).
    """

    servers: int
    samples_per_server: int
    tables: int
    dimension: int
    bottom: tuple[int, int, int]
    top: tuple[tuple[int, int, int], ...]
    dense_ms: dict[tuple[int, int], tuple[float, float]]
    embedding_ms: tuple[float, float]
    concat_ms: tuple[float, float]


# Row "No." of Table II: 1 has 128 samples a GPU on 128 servers, 2 has 256 on 16; a server has 4
# GPUs.
CONFIGURATIONS = {
    1: Configuration(
        servers=128,
        samples_per_server=512,
        tables=64,
        dimension=128,
        bottom=(2048, 2048, 7),
        top=((10240, 4096, 1), (4096, 4096, 14), (4096, 1, 1)),
        dense_ms={
            (2048, 2048): (0.193536, 0.296346),
            (10240, 4096): (0.614707, 1.21088),
            (4096, 4096): (0.269824, 0.521523),
            (4096, 1): (0.0151552, 0.040448),
        },
        embedding_ms=(4.30858, 8.61716),
        concat_ms=(0.226202, 0.226406),
    ),
    2: Configuration(
        servers=16,
        samples_per_server=1024,
        tables=16,
        dimension=256,
        bottom=(1024, 1024, 7),
        top=((5120, 2048, 1), (2048, 2048, 14), (2048, 1, 1)),
        dense_ms={
            (1024, 1024): (0.109363, 0.253542),
            (5120, 2048): (0.326144, 0.619315),
            (2048, 2048): (0.150835, 0.281395),
            (2048, 1): (0.0137216, 0.0433152),
        },
        embedding_ms=(1.613, 3.226),
        concat_ms=(0.054784, 0.055296),
    ),
}


def layers(configuration: Configuration) -> list[tuple[str, int, int]]:
    """Return the dense layers in forward order as (name, inputs, outputs)."""
    inputs, outputs, count = configuration.bottom
    names = [(f"bottom{i}", inputs, outputs) for i in range(count)]
    i = 0
    for inputs, outputs, count in configuration.top:
        names += [(f"top{i + k}", inputs, outputs) for k in range(count)]
        i += count
    return names


def _tasks(values: dict[str, Any]) -> Iterator[Task]:
    c = CONFIGURATIONS[values["configuration"]]
    dense = layers(c)
    home = {table: table % c.servers for table in range(c.tables)}
    size = c.samples_per_server * c.dimension * values["mp_element_bytes"]
    yield from _forward(c, dense, home, size)
    yield from _backward(c, dense, home, size)
    everyone = tuple(range(c.servers))
    for number, (name, inputs, outputs) in enumerate(dense):
        waits = tuple(f"b.{name}.{s}" for s in everyone)
        for part, elements in (("weight", inputs * outputs), ("bias", outputs)):
            yield Task(
                f"sum.{name}.{part}",
                "all_reduce",
                waits,
                members=everyone,
                size_bytes=4.0 * elements,
                parallelism="dp",
                group="dp",
                layer=number,
            )


def _count(values: dict[str, Any]) -> int:
    """Count lookups and transfers of every table both ways, dense layers and the join on every server, two sums a layer."""
    c = CONFIGURATIONS[values["configuration"]]
    dense = len(layers(c))
    return 2 * (c.tables * c.servers + c.servers * (dense + 1) + dense)


def _forward(
    c: Configuration, dense: list[tuple[str, int, int]], home: dict[int, int], size: float
) -> Iterator[Task]:
    for table, server in home.items():
        yield compute_task(f"f.table{table}", "forward", (), server, c.embedding_ms[0])
        for s in range(c.servers):
            if s != server:
                yield Task(
                    f"f.table{table}.to{s}",
                    "communication",
                    (f"f.table{table}",),
                    source=server,
                    destination=s,
                    size_bytes=float(size),
                    parallelism="mp",
                    group=f"table{table}",
                )
    for s in range(c.servers):
        before: tuple[str, ...] = ()
        for number, (name, inputs, outputs) in enumerate(dense):
            if number == c.bottom[2]:
                lookups = tuple(
                    f"f.table{t}" if s == at else f"f.table{t}.to{s}" for t, at in home.items()
                )
                yield compute_task(f"f.concat.{s}", "forward", before + lookups, s, c.concat_ms[0])
                before = (f"f.concat.{s}",)
            yield compute_task(
                f"f.{name}.{s}", "forward", before, s, c.dense_ms[inputs, outputs][0], layer=number
            )
            before = (f"f.{name}.{s}",)


def _backward(
    c: Configuration, dense: list[tuple[str, int, int]], home: dict[int, int], size: float
) -> Iterator[Task]:
    for s in range(c.servers):
        after: tuple[str, ...] = ()
        for number, (name, inputs, outputs) in reversed(list(enumerate(dense))):
            if number == c.bottom[2] - 1:
                yield compute_task(
                    f"b.concat.{s}", "backward", (*after, f"f.concat.{s}"), s, c.concat_ms[1]
                )
                after = (f"b.concat.{s}",)
            yield compute_task(
                f"b.{name}.{s}",
                "backward",
                (*after, f"f.{name}.{s}"),
                s,
                c.dense_ms[inputs, outputs][1],
                layer=number,
            )
            after = (f"b.{name}.{s}",)
    for table, server in home.items():
        for s in range(c.servers):
            if s != server:
                yield Task(
                    f"b.table{table}.from{s}",
                    "communication",
                    (f"b.concat.{s}",),
                    source=s,
                    destination=server,
                    size_bytes=float(size),
                    parallelism="mp",
                    group=f"table{table}",
                )
        arrived = tuple(
            f"b.concat.{s}" if s == server else f"b.table{table}.from{s}" for s in range(c.servers)
        )
        yield compute_task(
            f"b.table{table}", "backward", (f"f.table{table}", *arrived), server, c.embedding_ms[1]
        )


def _cluster(values: dict[str, Any]) -> Cluster:
    servers = CONFIGURATIONS[values["configuration"]].servers
    return suggested_cluster(servers, values["port_gbps"], 4)


DLRM = Workload(
    "dlrm",
    "DLRM (TOPO-X Table II)",
    "Recommendation model: dense layers data parallel with all-reduce, embedding tables placed round robin "
    "and reached by all servers, one all-to-all each way.",
    SOURCE,
    (
        Parameter(
            "configuration",
            2,
            "",
            "row of TOPO-X Table II: 1 is 128 servers and 64 tables, 2 is 16 servers and 16 tables",
            choices=(1, 2),
        ),
        Parameter(
            "mp_element_bytes",
            8,
            "bytes",
            "of an embedding element on the network: 8 as FlexNet released it, 4 for FP32",
            choices=(4, 8),
        ),
        Parameter(
            "port_gbps",
            40.0,
            "Gbit/s",
            "port speed of the suggested cluster (TOPO-X Table III has 10 to 200)",
            0.001,
            1e6,
        ),
    ),
    _tasks,
    _count,
    _cluster,
)
