"""What a study may vary or fix: one key a setting, with its range and the words of its axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from topox_core.economics.comparison import Running
from topox_core.economics.networks import COUNTINGS, Counting
from topox_core.economics.parts import MOST_USD, MOST_W, PARTS
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.errors import InputError, shown
from topox_core.fabrics.compare import MAX_DELAY_MS
from topox_core.fabrics.layout_search import MAX_STEPS
from topox_core.fabrics.reevaluated import PAUSES, SHORTEST_INTERVAL_MS
from topox_core.fabrics.regional_options import DEALS, GATINGS, HALF, MAX_ITERATIONS, MODES
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.static import LAID_BY
from topox_core.io.ranges import is_number, is_whole
from topox_core.model.cluster import (
    DUPLEXES,
    LONGEST_SLOT_MS,
    MAX_PORTS,
    MAX_SERVERS,
    SHORTEST_SLOT_MS,
)
from topox_core.model.collective_steps import ALGORITHMS as COLLECTIVE_ALGORITHMS
from topox_core.rails.presets import Preset
from topox_core.schedule.settings import AUTO, DEFAULT
from topox_core.tdm.algorithms.catalogue import ALGORITHMS as TDM_ALGORITHMS
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.text.sentences import words_of
from topox_core.workloads.parameter import Parameter

Value = str | int | float | bool
EFFORTS = ("first", "search", "prove")
RAIL_CONTROLS = ("provisioned", "on_demand")
FAT_TREES = ("cost", "full")
MAX_GBPS, MAX_SEED, MAX_LABEL = 1e6, 2**31 - 1, 120
SEED, LABEL = "seed", "label"


@dataclass(frozen=True)
class Key:
    """One setting that a study may vary.

    Attributes
    ----------
    name
        As the study file has it, e.g. ``cluster.port_gbps``.
    words, unit
        The title of its axis.
    kind
        ``number``, ``whole``, ``choice``, ``truth`` or ``text``.
    least, most
        Of numbers, both ends in (``above``: the lower one out).
    choices
        Of a choice; also words that a whole number may be instead.
    """

    name: str
    words: str
    unit: str = ""
    kind: str = "number"
    least: float = 0.0
    most: float = 1e12
    above: bool = False
    choices: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers, which ranges may give."""
        return self.kind in ("number", "whole")

    @property
    def title(self) -> str:
        """Words with the unit, as an axis has them."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "truth":
            return "true or false"
        if self.kind == "text":
            return f"text of at most {MAX_LABEL} characters"
        span = f"{'above' if self.above else 'from'} {self.least:,.10g} {'and at most' if self.above else 'to'} {self.most:,.10g}"
        words = f"a {'whole ' if self.kind == 'whole' else ''}number {span}"
        return f"{words}, or {' or '.join(self.choices)}" if self.choices else words

    def value(self, given: object) -> Value:
        """Return a value as the key's type.

        Raises
        ------
        InputError
            If it cannot be; only the problem is in it.
        """
        if self.kind == "choice" and isinstance(given, str) and given in self.choices:
            return given
        if self.kind == "truth" and isinstance(given, bool):
            return given
        if self.kind == "text" and isinstance(given, str) and len(given) <= MAX_LABEL:
            if given.isprintable():
                return given
            raise InputError(f"must be printable (got {shown(given)})")
        if self.numeric:
            if isinstance(given, str) and given in self.choices:
                return given
            if isinstance(given, float) and self.kind == "whole" and given.is_integer():
                given = int(given)
            if self.kind == "whole" and is_whole(given, int(self.least), self.most):
                return int(given)  # type: ignore[call-overload, no-any-return]
            if self.kind == "number" and is_number(given, self.least, self.most, above=self.above):
                return float(given) + 0.0  # type: ignore[arg-type]
        raise InputError(f"must be {self.expected} (got {shown(given)})")


def _whole(name: str, words: str, least: float, most: float, unit: str = "") -> Key:
    return Key(name, words, unit, "whole", least, most)


def _choice(name: str, words: str, choices: Iterable[str]) -> Key:
    return Key(name, words, kind="choice", choices=tuple(choices))


def _truth(name: str, words: str) -> Key:
    return Key(name, words, kind="truth")


_COMMON = (
    _whole(SEED, "Seed", 0, MAX_SEED),
    Key(LABEL, "Label", kind="text"),
)
_PRICES = (
    _choice("prices", "Price set", PRICE_SETS),
    *(
        Key(f"prices.{part}.{field}", f"{words_of(part)}, {word}", unit, most=most)
        for part in PARTS
        for field, word, unit, most in (
            ("price_usd", "price", "$", MOST_USD),
            ("power_w", "power", "W", MOST_W),
        )
    ),
)
_RUNNING = {
    "usd_per_kwh": ("Price of electricity", "$/kWh", 0.0, 100.0),
    "pue": ("Power usage effectiveness", "", 1.0, 10.0),
    "years": ("Written off over", "years", 0.1, 100.0),
}
assert set(_RUNNING) == {field.name for field in fields(Running)}
_YEARS = tuple(
    Key(f"running.{k}", w, u, "number", lo, hi) for k, (w, u, lo, hi) in _RUNNING.items()
)
_ON_CLUSTER = (
    Key("cluster.reconfiguration_ms", "Reconfiguration delay", "ms", most=MAX_DELAY_MS),
    Key("cluster.port_gbps", "Port speed", "Gbit/s", most=MAX_GBPS, above=True),
    _whole("cluster.degree", "Ports a server, switches with them", 1, MAX_PORTS),
    _whole("cluster.ports_per_server", "Ports a server", 1, MAX_PORTS),
    _whole("cluster.switches", "Circuit switches", 1, MAX_PORTS),
    _whole("cluster.ports_per_switch", "Circuits a switch", 1, 10 * MAX_SERVERS),
    Key("cluster.slot_ms", "Slot", "ms", "number", SHORTEST_SLOT_MS, LONGEST_SLOT_MS),
    Key("cluster.latency_us", "Latency of a transfer", "us", most=1e9),
    _choice("cluster.duplex", "Duplex", DUPLEXES),
    _choice("fabric", "Fabric", FABRICS),
    _choice("fabric.fat_tree", "Fat-tree", FAT_TREES),
    Key("fabric.oversubscription", "Oversubscription of the fat-tree", "", "number", 1.0, 1e6),
    _whole("fabric.servers_per_rack", "Servers a rack", 0, MAX_SERVERS),
    _choice("fabric.topology_variant", "TopologyFinder", ("published", "released")),
    _choice("fabric.layout_by", "Fixed circuits laid by", LAID_BY),
    _whole("fabric.layout_steps", "Layouts tried", 0, MAX_STEPS),
    Key(
        "fabric.reevaluate_ms",
        "Time between re-evaluations",
        "ms",
        "number",
        SHORTEST_INTERVAL_MS,
        1e6,
    ),
    _choice("fabric.pause", "Circuits that a re-evaluation darkens", PAUSES),
    _truth("fabric.forwarding", "Forwarding between re-evaluations"),
    Key(
        "fabric.regional_packet_ports",
        "Packet ports a server beside regional circuits",
        "",
        "whole",
        0,
        MAX_PORTS,
        choices=(HALF,),
    ),
    _whole("fabric.region_servers", "Servers a region", 0, MAX_SERVERS),
    _choice("fabric.regional_circuits", "Regional circuits asked for", MODES),
    _choice("fabric.regional_dealt", "Regional circuits dealt by", DEALS),
    _choice("fabric.gating", "Gating of experts", GATINGS),
    Key("fabric.gating_skew", "Skew of the gating", most=100.0),
    Key("fabric.gating_persistence", "Persistence of the gating", most=1.0),
    _whole("fabric.gating_iterations", "Iterations of the gating", 1, MAX_ITERATIONS),
    _choice("settings.effort", "Effort", EFFORTS),
    _choice("settings.model", "Model", ("physical", "paper")),
    _choice("settings.circuits", "Circuits", ("continuous", "per-slot")),
    _choice("settings.clock", "Clock", ("auto", "continuous", "slots")),
    _choice("settings.iteration", "Iteration", ("repeated", "first")),
    _choice("settings.switching", "Switching", ("auto", "planned", "provisioned", "fixed")),
    _truth("settings.share_circuits", "Shared circuits"),
    _truth("settings.exclusive_devices", "One task a device"),
    _truth("settings.any_port", "Any port"),
    Key("settings.time_limit_s", "Time limit", "s", most=86_400.0),
    Key("settings.gap", "Gap to stop at", "", most=1.0),
    _whole("settings.threads", "Threads", 1, 256),
    Key("lowering.rings", "Rings a collective", "", "whole", 1, 4_096, choices=(AUTO, DEFAULT)),
    _truth("lowering.all_reduce_on_network", "All-reduces on the network"),
    *(
        _choice(f"lowering.{kind}", f"Algorithm of {words_of(kind)}", (AUTO, DEFAULT, *names))
        for kind, names in COLLECTIVE_ALGORITHMS.items()
    ),
)
_RAIL_WORDS = {
    "gpus": "GPUs",
    "tensor": "Tensor parallel",
    "context": "Context parallel",
    "pipeline": "Pipeline stages",
    "data": "Data parallel",
    "expert": "Expert parallel",
    "microbatches": "Microbatches",
    "microbatch_size": "Sequences a microbatch",
    "sequence": "Sequence",
    "virtual_stages": "Stages a rank",
    "gpus_per_server": "GPUs a server",
}
_ON_RAILS = (
    Key("rails.reconfiguration_ms", "Switching delay", "ms", most=MAX_DELAY_MS),
    _choice("rails.control", "Control", RAIL_CONTROLS),
    Key("rails.link_up_ms", "Time until a NIC sees light", "ms", most=MAX_DELAY_MS),
    Key("rails.latency_us", "Latency of a step", "us", most=1e9),
    Key("rails.nic_gbps", "NIC", "Gbit/s", most=MAX_GBPS, above=True),
    Key("rails.host_ms", "Launch of a pass", "ms", most=1e9),
    _truth("rails.fsdp", "Sharded weights (FSDP)"),
    _truth("rails.recompute", "Recomputing"),
    _choice("rails.schedule", "Order of passes", ("1f1b", "afab", "interleaved")),
    *(_whole(f"rails.{name}", words, 1, 100_000_000) for name, words in _RAIL_WORDS.items()),
)
assert set(_RAIL_WORDS) <= {field.name for field in fields(Preset)}
_SET_UP = {
    "jobs": ("Jobs", "", "whole", 1, 20_000),
    "context": ("Context length", "tokens", "whole", 1, 100_000_000),
    "pod_groups": ("Pod groups", "", "whole", 1, 100_000),
    "pods_per_group": ("Pods a group", "", "whole", 1, 100_000),
    "ports_per_pod": ("Ports a pod", "", "whole", 1, 100_000),
    "port_gbps": ("Port speed", "Gbit/s", "number", 1e-6, MAX_GBPS),
    "reconfiguration_ms": ("Reconfiguration delay", "ms", "number", 0.0, MAX_DELAY_MS),
    "degree_min": ("Fewest units of a job", "", "whole", 1, 4_096),
    "degree_max": ("Most units of a job", "", "whole", 1, 4_096),
    "efficiency": ("Share of the peak", "", "number", 0.001, 1.0),
    "gpu_tflops": ("Peak of a GPU", "TFLOP/s", "number", 1e-6, 1e12),
    "gpus_per_pod": ("GPUs a pod", "", "whole", 1, 1_000_000_000),
}
assert set(_SET_UP) <= {field.name for field in fields(SetUp)}
_ON_ROUNDS = (
    _choice("tdm.algorithm", "Algorithm", TDM_ALGORITHMS),
    *(
        Key(f"tdm.{name}", words, unit, kind, least, most)
        for name, (words, unit, kind, least, most) in _SET_UP.items()
    ),
)
_COUNTING_WORDS = {
    "gpus_per_server": ("GPUs a server", 4_096),
    "ocs_ports_per_gpu": ("Optical ports a GPU", 64),
    "ocs_transceivers_per_gpu": ("Transceivers a GPU", 64),
}
_ON_NETWORKS = (
    _whole("network.gpus", "GPUs", 1, 10_000_000),
    _choice("network.method", "Switches counted", COUNTINGS),
    *(_whole(f"network.{name}", words, 1, most) for name, (words, most) in _COUNTING_WORDS.items()),
    *(
        _truth(f"network.{name}", words)
        for name, words in (
            ("nics", "NICs counted"),
            ("fibre", "Fibre counted"),
            ("switch_transceivers", "Transceivers at switches"),
            ("joined_rails", "Spine over the rails"),
            ("look_ahead", "Look-ahead"),
        )
    ),
)
assert {one.name.removeprefix("network.") for one in _ON_NETWORKS} - {"gpus"} <= {
    field.name for field in fields(Counting)
}
GRAPH_KEYS = (*_ON_CLUSTER, *_PRICES, *_YEARS, *_COMMON)
RAIL_KEYS = (*_ON_RAILS, *_COMMON)
ROUND_KEYS = (*_ON_ROUNDS, *_COMMON)
NETWORK_KEYS = (*_ON_NETWORKS, *_PRICES, *_COMMON)


def by_name(keys: Iterable[Key]) -> Mapping[str, Key]:
    """Return keys by their name."""
    return {key.name: key for key in keys}


def parameter_key(prefix: str, parameter: Parameter) -> Key:
    """Return a workload's (or a job's) parameter as a key."""
    name, words = f"{prefix}.{parameter.key}", words_of(parameter.key)
    if parameter.choices and isinstance(parameter.default, str):
        return _choice(name, words, (str(one) for one in parameter.choices))
    if parameter.choices:
        least, most = min(parameter.choices), max(parameter.choices)
        return _whole(name, words, float(least), float(most))
    kind = "whole" if isinstance(parameter.default, int) else "number"
    return Key(name, words, parameter.unit, kind, parameter.least, min(parameter.most, 1e12))
