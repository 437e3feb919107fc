"""All workloads by name: DLRM as in TOPO-X Table II, training jobs, and two drawn by chance (bursts of inference, random layers)."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from topox_core.errors import errors_in_file, refuse_if
from topox_core.io.limits import MAX_GENERATED_TASKS, check_one_of
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.quantities import Gbps
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schema.fields import fields_of, plain_setting, setting
from topox_core.workloads.workload import TRAINING_JOBS, Workload, compute_task

SOURCE = (
    "A100 operator times published with TopoOpt (NSDI 2023), Apache-2.0; sizes: TOPO-X Table II"
)


def _switched(servers: int, port_gbps: float, switches: int = 2) -> Cluster:
    """Return a cluster whose servers have one port on each optical switch."""
    name = f"{servers} servers, {switches} OCS"
    return one_port_a_switch(servers, switches, port_gbps, name=name)


def _counted(title: str, description: str, most: int, least: int = 1) -> Any:
    return plain_setting(title, description, ge=least, le=most)


def _time(title: str, unit: str, description: str) -> Any:
    return setting(title, unit, description, ge=0.001, le=1e6)


_Seed = Annotated[int, _counted("Seed", "of all random choices", 2**31, least=0)]


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


# Row "No." of Table II: 1 has 128 samples per GPU on 128 servers, 2 has 256 on 16; a server has 4
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


@dataclass(frozen=True)
class Dlrm:
    """A recommendation model as TOPO-X Table II has it."""

    configuration: Annotated[
        int,
        plain_setting(
            "Configuration",
            "row of TOPO-X Table II: 1 is 128 servers and 64 tables, 2 is 16 servers and 16 tables",
            choices=tuple(CONFIGURATIONS),
        ),
    ] = 2
    mp_element_bytes: Annotated[
        int,
        setting(
            "Element",
            "bytes",
            "of an embedding element on the network: 8 as FlexNet released it, 4 for FP32",
            choices=(4, 8),
        ),
    ] = 8
    port_gbps: Annotated[
        Gbps,
        setting(description="port speed of the suggested cluster (TOPO-X Table III has 10 to 200)"),
    ] = 40.0

    words = ""

    def tasks(self) -> Iterator[Task]:
        """Yield lookups and dense layers forward, the same backward, and the sums of all gradients."""
        c = CONFIGURATIONS[self.configuration]
        dense = layers(c)
        home = {table: table % c.servers for table in range(c.tables)}
        size = c.samples_per_server * c.dimension * self.mp_element_bytes
        yield from _forward(c, dense, home, size)
        yield from _backward(c, dense, home, size)
        everyone = tuple(range(c.servers))
        for number, (name, inputs, outputs) in enumerate(dense):
            waits = tuple(f"b.{name}.{s}" for s in everyone)
            for part, elements in (("weight", inputs * outputs), ("bias", outputs)):
                yield Task(
                    f"sum.{name}.{part}",
                    "all_reduce",
                    dependencies=waits,
                    members=everyone,
                    size_bytes=4.0 * elements,
                    parallelism="dp",
                    group="dp",
                    layer=number,
                )

    def count(self) -> int:
        """Count lookups and transfers of every table both ways, dense layers and the join on every server, two sums a layer."""
        c = CONFIGURATIONS[self.configuration]
        dense = len(layers(c))
        return 2 * (c.tables * c.servers + c.servers * (dense + 1) + dense)

    def cluster(self) -> Cluster:
        """Return as many servers as the table has, on four switches."""
        return _switched(CONFIGURATIONS[self.configuration].servers, self.port_gbps, 4)


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
                    dependencies=(f"f.table{table}",),
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
                    dependencies=(f"b.concat.{s}",),
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


DLRM = Workload(
    "dlrm",
    "DLRM (TOPO-X Table II)",
    "Recommendation model: dense layers data parallel with all-reduce, embedding tables placed round robin "
    "and reached by all servers, one all-to-all each way.",
    SOURCE,
    tuple(fields_of(Dlrm).values()),
    Dlrm,
)


CLOCK = 1  # the device of server 0 that only counts the time between bursts


@dataclass(frozen=True)
class Bursts:
    """Inference whose requests come in bursts.

    Prompts are read on some servers, in turn, and move to others that answer, where chance has it. Chunks of one prompt
    are read one after another, and each is sent as soon as it is read.
    """

    readers: Annotated[int, _counted("Readers", "servers that read prompts", 50_000)] = 4
    writers: Annotated[int, _counted("Writers", "servers that answer", 50_000)] = 4
    bursts: Annotated[int, _counted("Bursts", "bursts", 10_000)] = 6
    requests: Annotated[int, _counted("Requests", "requests in a burst", 10_000)] = 8
    gap_ms: Annotated[float, _time("Gap", "ms", "from burst to burst")] = 60.0
    tokens: Annotated[int, _counted("Tokens", "mean length of a prompt, in tokens", 10_000_000)] = (
        2000
    )
    spread: Annotated[
        float,
        plain_setting(
            "Spread", "spread of the lengths (of their logarithm; 0: all alike)", ge=0, le=3
        ),
    ] = 0.6
    chunks: Annotated[
        int, _counted("Chunks", "pieces in which a prompt is read and sent", 1_000)
    ] = 4
    token_bytes: Annotated[
        int, setting("Token", "B", "keys and values of a token", ge=1, le=1_000_000_000)
    ] = 131_072
    read_us: Annotated[float, _time("Read", "us", "time to read a token")] = 10.0
    answer_ms: Annotated[float, _time("Answer", "ms", "from the last piece to the first word")] = (
        15.0
    )
    port_gbps: Annotated[Gbps, setting(description="port speed of the suggested cluster")] = 100.0
    seed: _Seed = 0

    words = ""

    def tasks(self) -> Iterator[Task]:
        """Yield bursts: the clock, then each request's chunks of reading, their transfers, and the first answer."""
        rng = random.Random(self.seed)
        number = 0
        tick: tuple[str, ...] = ()
        for burst in range(self.bursts):
            if burst:
                yield Task(
                    f"clock.{burst}",
                    "forward",
                    dependencies=tick,
                    server=0,
                    device=CLOCK,
                    duration_ms=self.gap_ms,
                )
                tick = (f"clock.{burst}",)
            for _ in range(self.requests):
                chunk_tokens = self._tokens(rng) / self.chunks
                writer = self.readers + rng.randrange(self.writers)
                yield from self._request(number, tick, chunk_tokens, writer)
                number += 1

    def _tokens(self, rng: random.Random) -> float:
        """Draw the length of a prompt: log-normal about the mean, at most eight times it."""
        spread = self.spread
        drawn = math.exp(rng.gauss(-spread * spread / 2, spread))
        return float(max(1, round(self.tokens * min(drawn, 8.0))))

    def _request(
        self, number: int, tick: tuple[str, ...], chunk_tokens: float, writer: int
    ) -> Iterator[Task]:
        reader = number % self.readers
        before, moved = tick, []
        for chunk in range(self.chunks):
            name = f"read.{number}.{chunk}"
            yield compute_task(name, "forward", before, reader, chunk_tokens * self.read_us / 1e3)
            before = (name,)
            moved.append(f"cache.{number}.{chunk}")
            yield Task(
                moved[-1],
                "communication",
                dependencies=before,
                source=reader,
                destination=writer,
                size_bytes=float(round(chunk_tokens * self.token_bytes)),
            )
        yield compute_task(f"answer.{number}", "forward", tuple(moved), writer, self.answer_ms)

    def count(self) -> int:
        """Count the ticks of the clock, and of every request its chunks, their transfers and the answer."""
        return self.bursts * self.requests * (2 * self.chunks + 1) + self.bursts - 1

    def cluster(self) -> Cluster:
        """Return readers and writers, one device of each for the clock."""
        servers = self.readers + self.writers
        return _switched(servers, self.port_gbps).changed(devices_per_server=CLOCK + 1)


SERVING_BURSTS = Workload(
    "serving-bursts",
    "Serving in bursts",
    "Inference with prompts read on some servers and answered on others: requests come in bursts, and the keys and "
    "values of a prompt move to the server that answers.",
    "our own construction; 131,072 bytes per token are the keys and values of Llama 3 8B (32 layers, 8 heads of 128, two "
    "bytes each); the seed fixes every byte",
    tuple(fields_of(Bursts).values()),
    Bursts,
)


@dataclass(frozen=True)
class RandomLayers:
    """Compute tasks in layers on random servers."""

    layers: Annotated[int, _counted("Layers", "layers", 100_000)] = 20
    width: Annotated[int, _counted("Width", "compute tasks in a layer", 10_000)] = 8
    servers: Annotated[int, _counted("Servers", "servers", 100_000, least=2)] = 8
    fan_in: Annotated[
        int, _counted("Fan in", "most tasks of the layer before that one waits for", 64)
    ] = 2
    mean_ms: Annotated[
        float, _time("Mean", "ms", "mean compute time (uniform from 0.2 to 1.8 times it)")
    ] = 5.0
    mean_mb: Annotated[
        float,
        setting("Mean", "MB", "mean transfer (uniform from 0.2 to 1.8 times it)", ge=0, le=1e6),
    ] = 20.0
    port_gbps: Annotated[Gbps, setting(description="port speed of the suggested cluster")] = 40.0
    seed: _Seed = 0

    words = ""

    def tasks(self) -> Iterator[Task]:
        """Yield each layer's tasks, before each the transfers that it waits for."""
        rng = random.Random(self.seed)
        above: list[tuple[str, int]] = []
        for layer in range(self.layers):
            row: list[tuple[str, int]] = []
            for k in range(self.width):
                server = rng.randrange(self.servers)
                name = f"c.{layer}.{k}"
                waits = []
                for parent, at in (
                    rng.sample(above, min(len(above), rng.randint(1, self.fan_in))) if above else []
                ):
                    if at == server:
                        waits.append(parent)
                        continue
                    size = float(round(rng.uniform(0.2, 1.8) * self.mean_mb * 1e6))
                    transfer = f"x.{layer}.{k}.{parent[2:]}"
                    yield Task(
                        transfer,
                        "communication",
                        dependencies=(parent,),
                        source=at,
                        destination=server,
                        size_bytes=size,
                    )
                    waits.append(transfer)
                kind = "forward" if 2 * layer < self.layers else "backward"
                yield compute_task(
                    name,
                    kind,
                    tuple(waits),
                    server,
                    round(rng.uniform(0.2, 1.8) * self.mean_ms, 3),
                    layer=layer,
                )
                row.append((name, server))
            above = row

    def count(self) -> int:
        """Return how many tasks compute; transfers between them are up to chance."""
        return self.layers * self.width

    def cluster(self) -> Cluster:
        """Return its servers on two switches."""
        return _switched(self.servers, self.port_gbps)


RANDOM_LAYERED = Workload(
    "random-layered",
    "Random layers",
    "Compute tasks in layers on random servers; each waits for a few tasks of the layer before, over the network "
    "where servers differ.",
    "our own construction; the seed fixes every byte",
    tuple(fields_of(RandomLayers).values()),
    RandomLayers,
)


WORKLOADS: dict[str, Workload] = {
    w.name: w for w in (DLRM, *TRAINING_JOBS.values(), SERVING_BURSTS, RANDOM_LAYERED)
}


def workload_of(name: str) -> Workload:
    """Return a workload by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    check_one_of(name, WORKLOADS, file="workload", field="name")
    return WORKLOADS[name]


def generate(
    name: str, overrides: Mapping[str, object] | None = None, most_tasks: int = MAX_GENERATED_TASKS
) -> tuple[TaskGraph, Cluster]:
    """Return a workload's task graph and cluster; same choices give the same bytes.

    Parameters
    ----------
    name
        A key of :data:`WORKLOADS`.
    overrides
        Parameters to change, as text (from the command line) or numbers.
    most_tasks
        How many tasks the graph may have, at most ``MAX_GENERATED_TASKS``.

    Raises
    ------
    InputError
        If the workload or a parameter is unknown, a value has the wrong type or range, or the graph
        would have more than ``most_tasks`` tasks.
    """
    workload = workload_of(name)
    usual, values = workload.chosen({}), workload.chosen(overrides or {})
    most = min(most_tasks, MAX_GENERATED_TASKS)
    with errors_in_file(f"workload {name}"):
        made = workload.made(**values)
        _check_size(made.count(), most)
        tasks: list[Task] = list(islice(made.tasks(), most + 1))
        _check_size(len(tasks), most)
    title, changed = workload.title, [key for key in overrides or () if values[key] != usual[key]]
    if changed:
        words = (f"{k}={v:g}" if isinstance(v := values[k], float) else f"{k}={v}" for k in changed)
        title = made.words or f"{title} ({', '.join(words)})"
    return validated(title, tasks, f"workload {name}"), made.cluster()


def count_tasks(
    name: str, overrides: Mapping[str, object], most_tasks: int = MAX_GENERATED_TASKS
) -> int:
    """Return about how many tasks a workload's graph has, without generating it; raises InputError as :func:`generate`."""
    workload = workload_of(name)
    with errors_in_file(f"workload {name}"):
        count = workload.made(**workload.chosen(overrides)).count()
        _check_size(count, min(most_tasks, MAX_GENERATED_TASKS))
    return count


def _check_size(count: int, most: int) -> None:
    refuse_if(
        (
            count > most,
            f"would have more than {most:,} tasks: ask for fewer servers, layers or microbatches",
        )
    )
