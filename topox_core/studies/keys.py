"""What a study may vary or fix: one key a setting, with its range and the words of its axis; values as people read them.

And what it may report of a point, with the words and units of tables and axes.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Annotated, Any

from topox_core.economics.comparison import Running
from topox_core.economics.networks import LINE_NAMES, MAX_GPUS as MAX_NETWORK_GPUS, Counting
from topox_core.economics.price_sets import (
    DEFAULT_SET,
    PARTS,
    PRICE_SETS,
    SET_BY_SPEED,
    Part,
)
from topox_core.errors import InputError, refuse_if, shown
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import FABRICS
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.collective_steps import ALGORITHMS as COLLECTIVE_ALGORITHMS
from topox_core.model.lowering_choices import Lowering
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import ALIASES
from topox_core.schedule.settings import AUTO, DEFAULT, Settings
from topox_core.schema.fields import (
    PRINTABLE,
    Field,
    expected,
    field_of,
    fields_of,
    setting,
)
from topox_core.schema.records import check_value
from topox_core.tdm.algorithms.catalogue import ALGORITHMS as TDM_ALGORITHMS
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.jobs import Reading, TdmSettings
from topox_core.text.numbers import (
    count,
    delay_label,
    money,
    percent,
    plural,
    power,
    short,
    time,
    uncapitalised,
    words_of,
)
from topox_core.training.job import MAX_GPUS, SETTINGS as JOB_SETTINGS
from topox_core.training.plan import DEGREES

Value = str | int | float | bool
EFFORTS = ("first", "search", "prove")
RAIL_CONTROLS = ("provisioned", "on_demand")
FAT_TREES = ("cost", "full")
DEFAULT_FABRIC, GPUS = "scheduled", 1_024
MAX_LABEL = 120
SEED, LABEL = "seed", "label"
FABRIC, RAIL, ROUND, BILL = "fabric", "rail", "round", "bill"


# What a key's value is, by the type of its field; text that is none of some words is text.
_KINDS: Mapping[type, str] = {bool: "truth", int: "whole", float: "number"}


@dataclass(frozen=True)
class Key:
    """One setting that a study may vary.

    Attributes
    ----------
    name
        As the study file has it, e.g. ``cluster.port_gbps``.
    field
        What it may be, and the words of its axis.
    own
        What holds where a study says nothing; None where the subject itself says what, or nothing does.
    """

    name: str
    field: Field = dataclasses.field(compare=False)
    own: Any = dataclasses.field(default=None, compare=False)

    @property
    def words(self) -> str:
        """What it is called."""
        return self.field.title

    @property
    def unit(self) -> str:
        """What it is counted in."""
        return self.field.unit

    @property
    def title(self) -> str:
        """Words with the unit, as an axis has them."""
        return self.field.label

    @property
    def choices(self) -> tuple[Any, ...]:
        """The words of a choice; also those that a number may be instead."""
        return self.field.choices

    @cached_property
    def kind(self) -> str:
        """``number``, ``whole``, ``choice``, ``truth`` or ``text``."""
        types = dict(self.field.alternatives)
        text = "choice" if self.choices else "text"
        return next((word for one, word in _KINDS.items() if one in types), text)

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers, which ranges may give."""
        return self.kind in ("number", "whole")

    def value(self, given: Any) -> Value:
        """Return a value as the key's type.

        Raises
        ------
        InputError
            If it cannot be; only the problem is in it.
        """
        hint = self.field.hint
        if isinstance(given, float) and self.kind == "whole" and given.is_integer():
            given = int(given)
        if isinstance(given, str) and self.kind == "truth":
            given = self.field.value_of(given)
        if given is None:
            raise InputError(f"must be {expected(hint)} (got {shown(given)})")
        check_value(hint, given)
        real = self.kind == "number" and not isinstance(given, str)
        value: Value = float(given) + 0.0 if real else given
        return value


def _keys(prefix: str, record: type, *names: str) -> tuple[Key, ...]:
    """Return fields of a record as keys; where a study says nothing, their defaults hold."""
    fields = fields_of(record)
    return tuple(Key(f"{prefix}.{name}", fields[name], fields[name].default) for name in names)


def _key(
    name: str, words: str, kind: Any, unit: str = "", own: Value | None = None, **limits: Any
) -> Key:
    """Return a key that is no field of a record; numbers are at least 0."""
    limits = {"ge": 0} | limits if kind in (int, float) else limits
    return Key(name, field_of(Annotated[kind, setting(words, unit, **limits)]), own)


def _called(name: str, field: Field, words: str, own: Value | None = None) -> Key:
    """Return a field of a record as a key of another name."""
    return Key(name, dataclasses.replace(field, title=words), own)


def _choice(name: str, words: str, choices: Iterable[str], own: str) -> Key:
    return _key(name, words, str, own=own, choices=tuple(choices))


# The options of fabrics that have keys: a layout is no number, and the NIC of the fat-tree follows from prices.
FABRIC_FIELDS = tuple(
    name for name in fields_of(FabricOptions) if name not in ("layout", "equivalent_gbps")
)
# The settings of a solve that have keys of their own name.
SETTINGS = (
    *("model", "circuits", "clock", "iteration", "switching", "share_circuits"),
    *("exclusive_devices", "any_port", "time_limit_s", "gap", "threads"),
)
_COMMON = (
    Key(SEED, fields_of(Settings)["seed"], 0),
    _key(LABEL, "Label", str, max_length=MAX_LABEL, without=PRINTABLE),
)
_PRICES = tuple(
    _called(f"prices.{part}.{name}", fields_of(Part)[name], f"{word} of {LINE_NAMES[part]}")
    for part in PARTS
    for name, word in (("price_usd", "Price"), ("power_w", "Power"))
)
_RINGS = Annotated[int, setting(ge=1, le=4_096)] | Annotated[str, setting(choices=(AUTO, DEFAULT))]
_ON_CLUSTER = (
    *_keys("cluster", Cluster, "reconfiguration_ms", "port_gbps"),
    _called(
        "cluster.degree",
        fields_of(Cluster)["ports_per_server"],
        "Ports per server, switches with them",
    ),
    *_keys("cluster", Cluster, "ports_per_server", "switches", "ports_per_switch", "slot_ms"),
    *_keys("cluster", Cluster, "latency_us", "duplex"),
    _choice("fabric", "Fabric", FABRICS, DEFAULT_FABRIC),
    _choice("fabric.fat_tree", "Fat-tree", FAT_TREES, "cost"),
    *_keys("fabric", FabricOptions, *FABRIC_FIELDS),
    _choice("settings.effort", "Effort", EFFORTS, "first"),
    *_keys("settings", Settings, *SETTINGS),
    _key("lowering.rings", "Rings per collective", _RINGS, own=AUTO),
    *_keys("lowering", Lowering, "all_reduce_on_network"),
    *(
        _choice(f"lowering.{kind}", f"Algorithm of {words_of(kind)}", (AUTO, DEFAULT, *names), AUTO)
        for kind, names in COLLECTIVE_ALGORITHMS.items()
    ),
)
# What of a job on rails has a key; files have called the order of its passes the schedule.
_OF_A_RAIL = (
    *(*DEGREES, "microbatches", "microbatch_size", "sequence", "schedule", "virtual_stages"),
    *("gpus_per_server", "nic_gbps", "host_ms"),
)
_ON_RAILS = (
    *_keys("rails", Rail, "reconfiguration_ms"),
    _choice("rails.control", "Control", RAIL_CONTROLS, RAIL_CONTROLS[0]),
    *_keys("rails", Rail, "link_up_ms", "latency_us"),
    _key("rails.fsdp", "Sharded weights (FSDP)", bool),
    _key("rails.recompute", "Recomputing", bool),
    _key("rails.gpus", "GPUs", int, ge=1, le=MAX_GPUS),
    *(Key(f"rails.{one}", JOB_SETTINGS[ALIASES.get(one, (one,))[0]]) for one in _OF_A_RAIL),
)
# A network of pods is built as it is set up; what a study draws with is its seed.
_SET_UP = tuple(
    name for name in fields_of(SetUp) if name not in ("tor_gbps", "seed", "literal_eq8", "mix")
)
_ON_ROUNDS = (
    _choice("tdm.algorithm", "Algorithm", TDM_ALGORITHMS, TdmSettings.algorithm),
    *_keys("tdm", SetUp, *_SET_UP),
    *_keys("tdm", Reading, *fields_of(Reading)),
)
_ON_NETWORKS = (
    _key("network.gpus", "GPUs", int, own=GPUS, ge=1, le=MAX_NETWORK_GPUS),
    *_keys("network", Counting, *(n for n in fields_of(Counting) if n != "fibre_m_per_link")),
)
_YEARS = _keys("running", Running, *fields_of(Running))
_OF_A_JOB, _OF_A_NETWORK = (
    (_choice("prices", "Price set", PRICE_SETS, own), *_PRICES)
    for own in (SET_BY_SPEED, DEFAULT_SET)
)
# By what one point computes.
KEYS_OF: Mapping[str, tuple[Key, ...]] = {
    FABRIC: (*_ON_CLUSTER, *_OF_A_JOB, *_YEARS, *_COMMON),
    RAIL: (*_ON_RAILS, *_COMMON),
    ROUND: (*_ON_ROUNDS, *_COMMON),
    BILL: (*_ON_NETWORKS, *_OF_A_NETWORK, *_COMMON),
}


def by_name(keys: Iterable[Key]) -> Mapping[str, Key]:
    """Return keys by their name."""
    return {key.name: key for key in keys}


KEYS = by_name(chain(*KEYS_OF.values()))
_DIGESTS = ("graph", "cluster")


# Axes whose values are counts of something; and a shorter name for one that says how it is counted.
COUNTED = {
    "cluster.degree": ("port", "ports"),
    "cluster.ports_per_server": ("port", "ports"),
    "cluster.switches": ("switch", "switches"),
    "network.gpus": ("GPU", "GPUs"),
    "rails.gpus": ("GPU", "GPUs"),
    "tdm.jobs": ("job", "jobs"),
}


_SHORTER = {"cluster.degree": "Ports per server"}


def key_words(name: str, others: Mapping[str, str] | None = None) -> str:
    """Return what a setting or a measure is called; ``others`` names what is neither."""
    if name in KEYS:
        return KEYS[name].words
    if name in MEASURES:
        return MEASURES[name].words
    words = (others or {}).get(name)
    return words if words is not None else name.replace(".", ", ").replace("_", " ")


def value_words(name: str, value: Any) -> str:
    """Return the value of a setting or a measure, with its unit."""
    words = _words(name, value)
    return words.replace("-", "−") if _is_number(value) else words


def _words(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in _DIGESTS:
        return str(value)[:12]
    if name == "fabric":
        return FABRICS.get(value, str(value))
    if not _is_number(value):
        return str(value).replace("_", " ")
    if name in MEASURES:
        return measure_words(name, float(value))
    unit = KEYS[name].unit if name in KEYS else ""
    if unit == "ms":
        return time(float(value))
    return _with_unit(f"{value:,}" if isinstance(value, int) else f"{value:,.6g}", unit)


def measure_words(name: str, value: float) -> str:
    """Return a measure's value with its unit: 32.2 ms, 43 %, $1.29 M."""
    one = MEASURES[name]
    if one.share or one.unit in _BY_UNIT:
        return _BY_UNIT["%" if one.share else one.unit](value)
    if name in ("changes", "windows") and value == round(value):
        return count(round(value))
    return _with_unit(short(value), one.unit)


_BY_UNIT: Mapping[str, Callable[[float], str]] = {
    "%": percent,
    "ms": time,
    "s": lambda value_s: time(1000 * value_s),
    "$": money,
    "W": power,
}


def axis_label(key: Key, value: Value) -> str:
    """Return a value as an axis has it, short: 1 ms, 400G, Planned circuits."""
    if _is_number(value):
        if key.unit == "ms":
            return delay_label(float(value))
        if key.unit == "Gbit/s":
            return f"{float(value):g}G"
        return f"{value:,}" if isinstance(value, int) else f"{float(value):g}"
    if value == "":
        return "as it is"
    return value_words(key.name, value)


def value_label(key: Key, value: Value) -> str:
    """Return a value as :func:`axis_label` does, with its unit: 1 ms, 400G, $260, 75 W."""
    words = axis_label(key, value)
    short_unit = not _is_number(value) or key.unit in ("ms", "Gbit/s")
    return words if short_unit else _with_unit(words, key.unit)


def axis_words(key: Key) -> str:
    """Return what an axis is called where there is little room."""
    return _SHORTER.get(key.name, key.words)


def named_value(key: Key, value: Value) -> str:
    """Return a value so that it says by itself what it is of: 2 ports, 1 ms, seed 3, price $260, Planned circuits."""
    if key.name in COUNTED and isinstance(value, int) and not isinstance(value, bool):
        return plural(value, *COUNTED[key.name])
    words = axis_label(key, value)
    bare = isinstance(value, bool) or words.replace(",", "").replace(".", "").isdigit()
    return f"{uncapitalised(axis_words(key))} {value_label(key, value)}" if bare else words


def _with_unit(number: str, unit: str) -> str:
    if unit == "$":
        return f"${number}"
    return f"{number}\u00a0{unit}" if unit else number


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Measure:
    """One number of a point.

    Attributes
    ----------
    runs
        For which kinds of run it is known.
    better
        ``least`` or ``most``; empty where neither is better.
    share
        Whether it is a share, shown in percent.
    """

    name: str
    words: str
    unit: str
    runs: tuple[str, ...]
    better: str = "least"
    share: bool = False

    @property
    def title(self) -> str:
        """Words with the unit, as an axis has them."""
        unit = "%" if self.share else self.unit
        return f"{self.words} ({unit})" if unit else self.words


MEASURES: Mapping[str, Measure] = {
    one.name: one
    for one in (
        Measure("iteration_ms", "Iteration time", "ms", (FABRIC, RAIL)),
        Measure("bound_ms", "Lower bound", "ms", (FABRIC,), ""),
        Measure("undisturbed_ms", "Without any delay", "ms", (RAIL,), ""),
        Measure("overhead", "Longer than without delay", "", (RAIL,), share=True),
        Measure("round_s", "Round", "s", (ROUND,)),
        Measure("mean_round_s", "Mean round of a job", "s", (ROUND,)),
        Measure("bound_s", "Lower bound", "s", (ROUND,), ""),
        Measure("reduction", "Shorter than with no time division", "", (ROUND,), "most", True),
        Measure(
            "mean_reduction",
            "Mean round shorter than with no time division",
            "",
            (ROUND,),
            "most",
            True,
        ),
        Measure("communicating_s", "Communicating", "s", (ROUND,), ""),
        Measure("computing_s", "Computing", "s", (ROUND,), ""),
        Measure("gap", "Gap to the bound", "", (FABRIC, ROUND), share=True),
        Measure("dark_share", "Ports dark", "", (FABRIC,), share=True),
        Measure("changes", "Circuit changes", "", (FABRIC, RAIL)),
        Measure("windows", "Windows between transfers", "", (FABRIC, RAIL), ""),
        Measure("window_ms", "Median window", "ms", (FABRIC, RAIL), ""),
        Measure("bandwidth_tax", "Bandwidth tax", "", (FABRIC,)),
        Measure("dollars", "Price of the network", "$", (FABRIC, BILL)),
        Measure("watts", "Power of the network", "W", (FABRIC, BILL)),
        Measure("iterations_per_dollar", "Iterations per dollar", "", (FABRIC,), "most"),
        Measure("joules_per_iteration", "Energy per iteration", "J", (FABRIC,)),
        Measure("cost_saving", "Cheaper than the other network", "", (BILL,), "most", True),
        Measure("power_saving", "Less power than the other network", "", (BILL,), "most", True),
    )
}
USUAL: Mapping[str, tuple[str, ...]] = {
    FABRIC: (
        "iteration_ms",
        "bound_ms",
        "gap",
        "dark_share",
        "changes",
        "dollars",
        "watts",
        "iterations_per_dollar",
        "joules_per_iteration",
    ),
    RAIL: ("iteration_ms", "overhead"),
    ROUND: ("round_s", "bound_s", "gap", "reduction"),
    BILL: ("dollars", "watts", "cost_saving", "power_saving"),
}


def of_runs(runs: str) -> tuple[str, ...]:
    """Return the measures of a kind of run."""
    return tuple(name for name, one in MEASURES.items() if runs in one.runs)


def chosen_measures(names: Any, runs: str) -> tuple[str, ...]:
    """Return the measures that a study asks for, in their order here.

    Raises
    ------
    InputError
        If one is unknown or is not known for such runs.
    """
    known = of_runs(runs)
    refuse_if(
        (
            not isinstance(names, Iterable) or isinstance(names, str | bytes | Mapping),
            f"must be a list in brackets (got {shown(names)})",
        ),
        field="measures",
    )
    asked = list(names)
    strange = [name for name in asked if name not in known]
    refuse_if(
        (strange, f"must be some of {', '.join(known)} (got {', '.join(map(shown, strange[:1]))})"),
        (not asked, f"must name at least one of {', '.join(known)}"),
        field="measures",
    )
    return tuple(name for name in known if name in asked)
