"""Text files of ASTRA-sim: workloads (also SimAI's), layers that are expanded to equal servers; and networks, as clusters."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from topox_core.errors import InputError, errors_in_file, refuse_if, shown
from topox_core.io.content import gc_paused
from topox_core.io.foreign.yaml_text import loaded_yaml
from topox_core.io.limits import (
    MAX_EXPANDED_TASKS,
    NETWORK,
    TEXT_WORKLOAD,
    check_count,
    check_whole,
    number_in,
)
from topox_core.model.cluster import MAX_SERVERS, Cluster, one_port_a_switch
from topox_core.text.numbers import size as size_words, time
from topox_core.traces.checks import PASSED, Check
from topox_core.traces.importing import Imported, made_import
from topox_core.traces.run_graph import Node, RunGraph, at_speed, replay_ms
from topox_core.traces.source import Content, ImportSettings, Refused, Source

COLUMNS = 12
_KINDS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
    "ALLTOALLV": "all_to_all",
    "BROADCAST": "broadcast",
}
_WORDS = re.compile(r"[A-Z][A-Z_]*$")


@dataclass(frozen=True)
class Layer:
    """One row of a file.

    Attributes
    ----------
    ticks
        Of forward, input gradient, weight gradient and update.
    calls
        A collective's word and bytes for each of the first three.
    """

    ticks: tuple[float, ...]
    calls: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class TextWorkload:
    """A file: its header's word (such as ``HYBRID_TRANSFORMER``), the header's values, its layers."""

    word: str
    header: dict[str, str]
    layers: tuple[Layer, ...]

    def most_tasks(self, servers: int) -> int:
        """Return how many tasks it has on so many servers at most: those of 0 bytes are left out."""
        updates = sum(layer.ticks[3] > 0 for layer in self.layers)
        calls = sum(word != "NONE" for layer in self.layers for word, _ in layer.calls)
        return (3 * len(self.layers) + updates) * servers + calls


def read_text_workload(source: Source) -> TextWorkload:
    """Read a text workload.

    Raises
    ------
    InputError
        If it is none; the row and the column are named.
    """
    content = Content(source, TEXT_WORKLOAD)
    text = b"".join(content).decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()]
    refuse_if((len(lines) < 2, "has no header and number of rows"), file=source.name)
    words = lines[0].split()
    refuse_if(
        (
            not _WORDS.match(words[0]),
            f"must begin with a word such as HYBRID_TRANSFORMER (got {shown(words[0])})",
        ),
        file=source.name,
    )
    try:
        announced = int(lines[1].split()[0])
    except ValueError:
        raise InputError(
            f"must be the number of rows (got {shown(lines[1])})", file=source.name, item="line 2"
        ) from None
    check_count(len(lines) - 2, TEXT_WORKLOAD.entries, "rows a workload may have", source.name)
    refuse_if(
        (announced != len(lines) - 2, f"announces {announced:,} rows and has {len(lines) - 2:,}"),
        (not announced, "holds no row"),
        file=source.name,
    )
    layers = tuple(_layer(line, f"row {n}", source.name) for n, line in enumerate(lines[2:], 1))
    header = {key.rstrip(":"): value for key, value in pairwise(words[1:]) if key.endswith(":")}
    return TextWorkload(words[0], header, layers)


def _layer(line: str, item: str, file: str) -> Layer:
    cells = line.split()
    refuse_if(
        (len(cells) < COLUMNS, f"must have {COLUMNS} columns (got {len(cells)})"),
        file=file,
        item=item,
    )

    def number(at: int, field: str) -> float:
        return _number(cells[at], field, file, item, most=1e18)

    def call(at: int, field: str) -> tuple[str, float]:
        word, size = cells[at].upper(), number(at + 1, f"{field}_bytes")
        if word != "NONE" and word.partition("_")[0] not in _KINDS:
            problem = f"must be NONE or one of {', '.join(_KINDS)} (got {shown(cells[at])})"
            raise InputError(problem, file=file, item=item, field=f"{field}_comm")
        return word, size

    ticks = tuple(
        number(at, field)
        for at, field in ((2, "fwd_time"), (5, "ig_time"), (8, "wg_time"), (11, "update_time"))
    )
    return Layer(ticks, (call(3, "fwd"), call(6, "ig"), call(9, "wg")))


@gc_paused()
def import_text(
    source: Source,
    settings: ImportSettings,
    servers: int = 8,
    tick_ns: float = 1.0,
    name: str = "workload",
) -> Imported:
    """Read a text workload and return it on so many equal servers.

    Parameters
    ----------
    tick_ns
        Unit of the file's times.

    Raises
    ------
    InputError
        If the file cannot be used or a value is out of range.
    Refused
        If there would be more tasks than a graph may have.
    """
    check_whole(servers, 2, MAX_SERVERS, file="settings", field="servers")
    refuse_if(
        (not 0 < tick_ns < 1e12, f"must be above 0 (got {tick_ns:g})"),
        file="settings",
        field="tick_ns",
    )
    workload = read_text_workload(source)
    most = workload.most_tasks(servers)
    refuse_if(
        (
            most > MAX_EXPANDED_TASKS,
            f"up to {most:,} tasks on {servers:,} servers, more than the {MAX_EXPANDED_TASKS:,} that are expanded: "
            "give fewer --servers",
        ),
        file=source.name,
        kind=Refused,
    )
    maker = _Expansion(workload, servers, tick_ns)
    maker.expand()
    graph = RunGraph(maker.nodes, servers, tuple(range(servers)), 0.0, list(maker.notes()))
    graph.recorded_ms = replay_ms(graph, at_speed(settings.nic_gbps))
    compute_ms = sum(sum(layer.ticks) for layer in workload.layers) * tick_ns / 1e6
    checks = (
        Check("rows", PASSED, f"all {len(workload.layers):,} rows are expanded"),
        Check(
            "unit",
            PASSED,
            f"one tick is {tick_ns:g} ns: a server computes for {time(compute_ms)}, "
            f"the iteration takes {time(graph.recorded_ms)} at {settings.nic_gbps:g} Gbit/s",
        ),
    )
    facts = {
        "files": [source.name],
        "ranks": list(range(servers)),
        "world": servers,
        "nodes": len(workload.layers),
        "header": {"word": workload.word, **workload.header},
        "compute_ms": compute_ms,
        "inside_servers": {
            "calls": len(maker.inside_bytes),
            "size_bytes": sum(maker.inside_bytes, 0.0),
        },
    }
    # The limit of tasks is for recordings, whose number nobody chose; here --servers chooses it.
    of_file = replace(settings, gpus_per_server=1, max_tasks=len(graph.nodes))
    return made_import(graph, graph, of_file, name, checks, facts)


class _Expansion:
    """The layers on servers that are all alike."""

    def __init__(self, workload: TextWorkload, servers: int, tick_ns: float) -> None:
        self._workload, self._servers, self._tick_ns = workload, servers, tick_ns
        self.nodes: list[Node] = []
        self.inside_bytes: list[float] = []
        self._empty = 0
        # What the next computing of every server waits for, besides the one before it.
        self._last: list[int] = []
        self._blocks: int | None = None

    def expand(self) -> None:
        """Make all nodes: forward rows in order, backward rows in reverse, updates at the end."""
        layers = self._workload.layers
        for number, layer in enumerate(layers):
            self._compute(f"f{number}", "forward", layer.ticks[0])
            self._call(f"f{number}", layer.calls[0], data=False)
        updates: list[tuple[int, float, int | None]] = []
        for number in reversed(range(len(layers))):
            layer = layers[number]
            self._compute(f"i{number}", "backward", layer.ticks[1])
            self._call(f"i{number}", layer.calls[1], data=False)
            self._compute(f"w{number}", "backward", layer.ticks[2])
            waited = self._call(f"w{number}", layer.calls[2], data=True)
            updates.append((number, layer.ticks[3], waited))
        for number, ticks, waited in updates:
            if ticks > 0:
                self._blocks = waited
                self._compute(f"u{number}", "update", ticks)

    def notes(self) -> Iterator[str]:
        """Yield what was left out."""
        if inside := self.inside_bytes:
            yield (
                f"{len(inside):,} collectives of tensor groups ({size_words(sum(inside))}) stay inside servers"
            )
        if self._empty:
            yield f"{self._empty:,} collectives of 0 bytes are left out"
        header = self._workload.header
        if header.get("pp", "1") not in ("", "1") or "pp_comm" in header:
            yield "the chunks of its pipeline, and what they send each other, are not expanded"

    def _compute(self, name: str, kind: str, ticks: float) -> None:
        lasts = ticks * self._tick_ns / 1e6
        first = len(self.nodes)
        blocks = [] if self._blocks is None else [self._blocks]
        self.nodes += [
            Node(
                f"s{server}.{name}",
                kind,
                [*blocks, *self._last[server : server + 1]],
                lasts,
                (server,),
            )
            for server in range(self._servers)
        ]
        self._last = list(range(first, first + self._servers))
        self._blocks = None

    def _call(self, name: str, call: tuple[str, float], *, data: bool) -> int | None:
        """Add a collective after the last computing; return it if nothing waits for it yet."""
        word, size = call
        if word == "NONE":
            return None
        kind_word, _, suffix = word.partition("_")
        if not size:
            self._empty += 1
            return None
        of_tensors = not data and not suffix
        if of_tensors and self._workload.word != "MODEL":
            self.inside_bytes.append(size)
            return None
        label = "ep" if suffix == "EP" else "mp" if of_tensors else "dp"
        kind = _KINDS[kind_word]
        self.nodes.append(
            Node(
                f"{name}.{kind}",
                kind,
                list(self._last),
                0.0,
                tuple(range(self._servers)),
                is_call=True,
                size_bytes=size,
                size_from="metadata",
                group=label,
                description=label,
                parallelism=label,
                stream=label,
                root=0 if kind == "broadcast" else None,
            )
        )
        if data:
            return len(self.nodes) - 1
        self._blocks = len(self.nodes) - 1
        return None


_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_TOPOLOGIES = ("ring", "fullyconnected", "switch")
# Of its unit of bandwidth, per second.
BANDWIDTH_BYTES = 1 << 30


def read_network(
    source: Source, optical: int | None = None, ports: int = 2
) -> tuple[Cluster, tuple[str, ...]]:
    """Return the cluster that a network file describes, and what the file says beyond it, a sentence each.

    The optical dimension becomes the switches: as many servers as it has members, each with the GPUs
    of the dimensions before it. ``bandwidth`` is in 2^30 bytes per second, ``latency`` in ns of a hop,
    of which a message through a switch takes two (ASTRA-sim 2, both analytical networks).

    Parameters
    ----------
    optical
        Number of the dimension, from 1; None: the last.
    ports
        Ports of a server, which share its bandwidth; as many switches.

    Raises
    ------
    InputError
        If the file is none, or has more than one dimension after the optical one.
    """
    check_whole(ports, 1, 64, file="settings", field="ports")
    found = _keys(b"".join(Content(source, NETWORK)).decode("utf-8", "replace"), source.name)
    file = source.name
    kinds = found.get("topology", [])
    n = len(kinds)
    for key in _KEYS:
        refuse_if((key not in found, "is missing"), file=file, field=key)
        refuse_if(
            (
                not (len(found[key]) == n and 1 <= n <= 16),
                f"must list one value for each of the {n} dimensions (got {len(found[key])})",
            ),
            file=file,
            field=key,
        )
    for kind in kinds:
        refuse_if(
            (
                _plain(kind) not in _TOPOLOGIES,
                f"must be Ring, FullyConnected or Switch (got {shown(kind)})",
            ),
            file=file,
            field="topology",
        )
    counts = [int(_number(one, "npus_count", file, least=1.0)) for one in found["npus_count"]]
    at = n - 1 if optical is None else optical - 1
    refuse_if(
        (not 0 <= at < n, f"must be from 1 to {n} (got {optical})"),
        file="settings",
        field="optical",
    )
    refuse_if(
        (
            n - 1 - at > 1,
            f"has {n - 1 - at} dimensions after the optical one: one at most is left out",
        ),
        file=file,
    )
    notes = []
    if at < n - 1:
        notes.append(
            f"the last dimension ({kinds[-1]} of {counts[-1]}) is left out: one of its members is the cluster"
        )
    if at:
        inner = ", ".join(f"{k} of {c}" for k, c in zip(kinds[:at], counts[:at], strict=True))
        notes.append(f"inside servers: {inner}")
    speed = (
        8 * BANDWIDTH_BYTES / 1e9 * _number(found["bandwidth"][at], "bandwidth", file, least=1e-9)
    )
    hops = 2 if _plain(kinds[at]) == "switch" else 1
    latency = hops * _number(found["latency"][at], "latency", file)
    with errors_in_file(file):
        cluster = one_port_a_switch(
            counts[at],
            ports,
            speed / ports,
            latency_us=latency / 1_000,
            devices_per_server=math.prod(counts[:at]),
            name=f"{counts[at]} servers, {ports} OCS, in place of a {kinds[at]}",
        )
    return cluster, tuple(notes)


def _plain(kind: str) -> str:
    return kind.lower().replace("_", "")


def _number(
    text: str, field: str, file: str, item: str = "", *, least: float = 0.0, most: float = 1e9
) -> float:
    """Return a number from ``least`` (1: a whole one) to below ``most``."""
    value = number_in(text)
    if not least <= value < most or (least == 1 and value != int(value)):
        kind = {0.0: "a number from 0", 1.0: "a whole number from 1"}.get(least, "a number above 0")
        raise InputError(f"must be {kind} (got {shown(text)})", file=file, item=item, field=field)
    return value


def _keys(text: str, file: str) -> dict[str, list[str]]:
    """Return the lists of a file of plain keys, ``key: [a, b]`` or ``key: a``, as text."""
    values = loaded_yaml(text, file, NETWORK)
    refuse_if(
        (not isinstance(values, dict), f"must be keys and values (got {shown(values)})"), file=file
    )
    return {
        str(key): [str(one) for one in (value if isinstance(value, list) else [value])]
        for key, value in values.items()
    }
