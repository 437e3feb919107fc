"""Six networks for one number of GPUs, counted part by part: the bill of materials of each."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from topox_core.economics.price_sets import Catalogue
from topox_core.errors import refuse_if
from topox_core.io.content import record_of
from topox_core.io.limits import check_one_of, check_whole
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields


@dataclass(frozen=True)
class Network:
    """What a network is called, and how its line is drawn.

    Attributes
    ----------
    label
        In lists, legends and tables.
    spoken
        Within a sentence.
    short
        Over a narrow column, where it may stand in two lines.
    line
        Its colour (of a theme, or of a part), width and dash.
    """

    label: str
    spoken: str
    short: str
    line: tuple[str, float, str]


# In the order of every list, legend and table.
NETWORK_RECORDS = {
    "fat_tree": Network("Fat-tree", "a fat-tree", "Fat-tree", ("ink", 1.6, "dash")),
    "rail_optimized": Network(
        "Rail-optimised",
        "rail\u2011optimised switches",
        "Rail-\noptimised",
        ("ink", 1.8, "solid"),
    ),
    "rail_only": Network(
        "Rail only", "rails without a spine", "Rail only", ("muted", 1.8, "solid")
    ),
    "topoopt_patch_panel": Network(
        "TopoOpt, patch panel",
        "TopoOpt's patch panel",
        "TopoOpt\npanel",
        ("patch_panel_port", 1.8, "dot"),
    ),
    "topoopt_ocs": Network(
        "TopoOpt, OCS", "TopoOpt's optical switches", "TopoOpt\nOCS", ("ocs_port", 1.8, "dash")
    ),
    "photonic_rails": Network(
        "Photonic rails", "photonic rails", "Photonic\nrails", ("ocs_port", 3, "solid")
    ),
}
NETWORKS = {name: one.label for name, one in NETWORK_RECORDS.items()}
OPTICAL = ("topoopt_patch_panel", "topoopt_ocs", "photonic_rails")
COUNTINGS = ("paper", "whole-switches")
MAX_GPUS = 10_000_000
# What a line of a bill is of; a packet port is a share of a whole switch.
LINE_NAMES = {
    "ocs_port": "optical-switch ports",
    "patch_panel_port": "patch-panel ports",
    "one_by_two_switch": "1 x 2 switches",
    "transceiver": "transceivers",
    "packet_port": "packet-switch ports",
    "packet_switch": "packet switches",
    "nic": "NICs",
    "fibre_m": "metres of fibre",
}


@dataclass(frozen=True)
class Counting:
    """How parts are counted.

    ``paper`` counts fractions of switches, by the formulas of Opus's artifact; ``whole-switches`` buys
    switches of the catalogue's radix whole. ``switch_transceivers`` is None where the catalogue says
    whether packet-switch ports carry any. The paper's formula always joins the rails.

    Raises
    ------
    InputError
        If a count is out of range.
    """

    gpus_per_server: Annotated[
        int,
        setting(
            "GPUs per server",
            "",
            "one scale-up domain: 8 for DGX H200, 32 in the authors' GB200 count, 72 for a GB200 NVL72 rack",
            ge=1,
            le=4_096,
            steps=(1, 2, 4, 8, 16, 32, 64, 72),
        ),
    ] = 8
    method: Annotated[str, setting("Switches counted", choices=COUNTINGS)] = "paper"
    nics: Annotated[
        bool,
        plain_setting(
            "NICs counted", "the paper leaves them out: they are the same on every network"
        ),
    ] = False
    fibre: Annotated[bool, plain_setting("Fibre counted", "the paper leaves it out")] = False
    fibre_m_per_link: Annotated[float, setting("Fibre per link", "m", ge=0, le=100_000)] = 30.0
    ocs_ports_per_gpu: Annotated[
        int,
        setting(
            "Optical ports per GPU",
            "",
            "for photonic rails. The paper counts two: a ring has two neighbours. TopoOpt counts one per interface",
            ge=1,
            le=64,
            steps=(1, 2, 4, 8),
        ),
    ] = 2
    ocs_transceivers_per_gpu: Annotated[
        int,
        setting(
            "Transceivers per GPU",
            "",
            "for the optical networks. The paper counts one",
            ge=1,
            le=64,
            steps=(1, 2, 4),
        ),
    ] = 1
    switch_transceivers: Annotated[
        bool | None,
        plain_setting(
            "Transceivers at packet switches",
            "the authors count them for H200 and leave them out for GB200",
        ),
    ] = None
    joined_rails: Annotated[
        bool,
        plain_setting("Spine over the rails", "the published count joins the rails by a spine"),
    ] = False
    look_ahead: Annotated[
        bool,
        plain_setting(
            "Look-ahead",
            "TopoOpt's patch panel: twice the ports and a 1 x 2 switch, so that the next job is wired while this one "
            "runs",
        ),
    ] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def at_switches(self, catalogue: Catalogue) -> bool:
        """Return whether packet-switch ports carry transceivers at a catalogue's prices."""
        chosen = self.switch_transceivers
        return catalogue.switch_transceivers if chosen is None else chosen


@dataclass(frozen=True)
class Line:
    """One line of a bill: ``count`` of a part, at its unit price and power."""

    part: str
    count: float
    unit_usd: float
    unit_w: float

    @property
    def cost_usd(self) -> float:
        """Price of the line."""
        return self.count * self.unit_usd

    @property
    def power_w(self) -> float:
        """Power of the line, in watts."""
        return self.count * self.unit_w

    def amount(self, measure: str) -> float:
        """Return ``cost`` in dollars or ``power`` in watts."""
        return self.cost_usd if measure == "cost" else self.power_w


@dataclass(frozen=True)
class Bill:
    """The bill of materials of one network."""

    network: str
    gpus: float
    lines: tuple[Line, ...]

    @property
    def cost_usd(self) -> float:
        """Price of everything on the bill."""
        return sum(line.cost_usd for line in self.lines)

    @property
    def power_w(self) -> float:
        """Power of everything on the bill, in watts."""
        return sum(line.power_w for line in self.lines)

    def amount(self, measure: str) -> float:
        """Return ``cost`` in dollars or ``power`` in watts."""
        return self.cost_usd if measure == "cost" else self.power_w

    def count(self, part: str) -> float:
        """Return how many of a part are on the bill."""
        return sum(line.count for line in self.lines if line.part == part)

    def as_record(self) -> dict[str, Any]:
        """Return the bill as JSON has it, which keys of labs name too."""
        return {
            **record_of(self, "cost_usd power_w"),
            "cost_per_gpu_usd": self.cost_usd / self.gpus,
            "parts": [
                record_of(line, "part count unit_usd cost_usd power_w") for line in self.lines
            ],
        }


# What a network is built of: of each line of a bill how much, NICs and fibre apart; and besides these
# the transceivers that packet-switch ports may have, and the links.
Counts = Mapping[str, float]
AT_SWITCHES, LINKS = "transceivers at switches", "links"
_ORDER = (
    "packet_port",
    "packet_switch",
    "transceiver",
    "ocs_port",
    "patch_panel_port",
    "one_by_two_switch",
    "nic",
    "fibre_m",
)


def check_size(gpus: int, counting: Counting) -> int:
    """Return the number of servers.

    Raises
    ------
    InputError
        If the GPUs do not fill whole servers, or are absurdly many.
    """
    check_whole(gpus, 1, MAX_GPUS, field="gpus")
    refuse_if(
        (
            gpus % counting.gpus_per_server,
            f"must be a multiple of the {counting.gpus_per_server} GPUs of a server (got {gpus})",
        ),
        field="gpus",
    )
    return gpus // counting.gpus_per_server


def fat_tree(gpus: int, counting: Counting, radix: int) -> Counts:
    """Count a fat-tree over all GPUs, by the paper's fractional radix or in whole switches.

    Paper: ``k = round((4 G)^(1/3))`` and ``k (k^2 + floor(k^2 / 4))`` ports.
    """
    if counting.method == "whole-switches":
        return _electrical(gpus, *clos(gpus, radix))
    k = round((4 * gpus) ** (1 / 3))
    return _electrical(gpus, 0, k * (k * k + k * k // 4), ports=True)


def rail_optimized(gpus: int, counting: Counting, radix: int) -> Counts:
    """Count rails joined by a spine.

    Paper: ``k = round(sqrt(4 S))``, ``2 floor(S / floor(k/2))`` switches a rail and ``floor(g S /
    k)`` in the spine. Whole switches: one Clos a rail, joined only where
    :attr:`Counting.joined_rails` asks for it.
    """
    each = counting.gpus_per_server
    servers = gpus // each
    if counting.method == "whole-switches":
        if counting.joined_rails:
            return _electrical(gpus, *clos(gpus, radix, rails=each))
        return rail_only(gpus, counting, radix)
    k = round((4 * servers) ** 0.5)
    return _electrical(gpus, 0, k * (each * 2 * (servers // (k // 2)) + gpus // k), ports=True)


def rail_only(gpus: int, counting: Counting, radix: int) -> Counts:
    """Count rails that nothing joins: 3 ports and 4 transceivers per GPU, or one Clos per rail."""
    if counting.method == "whole-switches":
        switches, used = clos(gpus // counting.gpus_per_server, radix)
        return _electrical(
            gpus, counting.gpus_per_server * switches, counting.gpus_per_server * used
        )
    return _electrical(gpus, 0, 3 * gpus, ports=True)


def optical(network: str, gpus: int, counting: Counting) -> Counts:
    """Count a network of circuits, each interface with a transceiver.

    Photonic rails have two switch ports per GPU (Opus), TopoOpt's circuits one per interface; its patch
    panel has with look-ahead two ports and a 1 x 2 switch an interface.
    """
    optics = gpus * counting.ocs_transceivers_per_gpu
    if network == "topoopt_patch_panel":
        return {
            "transceiver": optics,
            LINKS: optics,
            "patch_panel_port": (2 if counting.look_ahead else 1) * optics,
            "one_by_two_switch": optics if counting.look_ahead else 0,
        }
    ports = gpus * counting.ocs_ports_per_gpu if network == "photonic_rails" else optics
    return {"transceiver": optics, LINKS: optics, "ocs_port": ports}


_ELECTRICAL: Mapping[str, Callable[[int, Counting, int], Counts]] = {
    "fat_tree": fat_tree,
    "rail_optimized": rail_optimized,
    "rail_only": rail_only,
}
# Ports of packet switches per GPU as the fractional formulas have it for ever larger clusters.
_LIMIT_PORTS = {"fat_tree": 5, "rail_optimized": 5, "rail_only": 3}


def clos(endpoints: int, radix: int, rails: int = 1) -> tuple[int, int]:
    """Return the whole switches and the used ports of a non-blocking Clos of fewest tiers.

    One switch while it has the ports; else ``t`` tiers of ``ceil(n / (radix/2))`` leaves each, the
    top of half as many. The endpoints of several ``rails`` have leaves of their own below one spine.
    """
    if endpoints <= radix:
        return 1, endpoints
    half, tiers = radix // 2, 2
    while 2 * half**tiers < endpoints:
        tiers += 1
    leaves = rails * -(-(endpoints // rails) // half)
    return (tiers - 1) * leaves + -(-leaves // 2), (2 * tiers - 1) * endpoints


def _electrical(gpus: int, switches: int, used: int, *, ports: bool = False) -> Counts:
    return {
        "packet_port": used if ports else 0,
        "packet_switch": switches,
        "transceiver": gpus,
        AT_SWITCHES: used,
        LINKS: (gpus + used) / 2,
    }


def bill(network: str, gpus: int, catalogue: Catalogue, counting: Counting | None = None) -> Bill:
    """Return what a network for a number of GPUs is built of, at a catalogue's prices.

    Raises
    ------
    InputError
        If the network is unknown, or the GPUs do not fill whole servers.
    """
    counting = counting or Counting()
    check_one_of(network, NETWORKS, field="network")
    check_size(gpus, counting)
    if network in OPTICAL:
        counts = optical(network, gpus, counting)
    else:
        counts = _ELECTRICAL[network](gpus, counting, catalogue.part("packet_switch").ports)
    return priced(network, gpus, counts, catalogue, counting)


def bills(
    gpus: int,
    catalogue: Catalogue,
    counting: Counting | None = None,
    networks: Iterable[str] = NETWORKS,
) -> dict[str, Bill]:
    """Return the bills of several networks; raises InputError as :func:`bill` does."""
    return {network: bill(network, gpus, catalogue, counting) for network in networks}


def limit_per_gpu(network: str, catalogue: Catalogue, counting: Counting | None = None) -> Bill:
    """Return one GPU's bill in ever larger clusters, by the paper's counting without rounding."""
    counting = counting or Counting()
    ports = _LIMIT_PORTS.get(network)
    counts = _electrical(1, 0, ports, ports=True) if ports else optical(network, 1, counting)
    return priced(network, 1, counts, catalogue, counting)


def priced(
    network: str, gpus: float, counts: Counts, catalogue: Catalogue, counting: Counting
) -> Bill:
    """Return counts as a bill; lines that count nothing are left out."""
    switch = catalogue.part("packet_switch")
    units = {part.id: (part.price_usd, part.power_w) for part in catalogue.parts}
    units["packet_port"] = switch.port_usd, switch.port_w
    carried = counts.get(AT_SWITCHES, 0) if counting.at_switches(catalogue) else 0
    amounts = {
        **counts,
        "transceiver": counts["transceiver"] + carried,
        "nic": gpus if counting.nics else 0,
        "fibre_m": counts.get(LINKS, 0) * counting.fibre_m_per_link if counting.fibre else 0,
    }
    lines = (Line(name, amounts.get(name, 0), *units[name]) for name in _ORDER)
    return Bill(network, gpus, tuple(line for line in lines if line.count > 0))


def saving(mine: float, other: float) -> float:
    """Return the share of ``other`` that ``mine`` saves: negative where dearer, 0 of nothing."""
    if other == 0:
        return 0.0 if mine == 0 else -math.inf
    return 1.0 - mine / other


def savings(priced: Mapping[str, Bill]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what each network saves against each other: ``{mine: {other: {cost, power}}}``.

    None stands where the other one has nothing that could be saved.
    """

    def share(mine: float, other: float) -> float | None:
        value = saving(mine, other)
        return value if math.isfinite(value) else None

    return {
        mine: {
            other: {
                "cost": share(priced[mine].cost_usd, priced[other].cost_usd),
                "power": share(priced[mine].power_w, priced[other].power_w),
            }
            for other in priced
            if other != mine
        }
        for mine in priced
    }
