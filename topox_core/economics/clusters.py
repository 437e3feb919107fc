"""The price of a cluster's own network at its port speed, and the fat-tree that costs the same."""

from dataclasses import replace

import numpy as np

from topox_core.economics.networks import AT_SWITCHES, NETWORKS, Bill, Counting, priced
from topox_core.economics.price_sets import (
    PRICE_SETS,
    PRICED_GBPS,
    SET_BY_SPEED,
    SPEED_SOURCE,
    USD_BY_SPEED,
    Catalogue,
)
from topox_core.errors import InputError, refuse_if
from topox_core.model.cluster import Cluster
from topox_core.text.numbers import plural, short

# Switch ports and transceivers behind one link of a packet fabric, as TopoOpt counts a fat-tree:
# one port stays below the rack, four lie above it, and every one has its transceiver, as has the
# NIC.
_BELOW, _ABOVE = 1.0, 4.0
FASTEST_GBPS = 1e6
# The networks that a cluster of servers with several ports each is priced as.
CLUSTER_NETWORKS = {
    **{name: NETWORKS[name] for name in ("fat_tree", "topoopt_patch_panel", "topoopt_ocs")},
    "regional_ocs": "Packet switch and regional OCS",
}


def at_speed(catalogue: Catalogue, gbps: float) -> Catalogue:
    """Return a catalogue for another port speed.

    Prices follow the published table by speed, scaled so that at the catalogue's own speed they are
    the catalogue's own; watts are taken as proportional to speed (assumed). Optical ports and fibre
    do not care about speed.

    Raises
    ------
    InputError
        If no part can have that speed.
    """
    refuse_if(
        (
            not 0 < gbps <= FASTEST_GBPS,
            f"must be above 0 and at most {FASTEST_GBPS:,.0f} to be priced (got {gbps:g})",
        ),
        field="port_gbps",
    )
    if gbps == catalogue.port_gbps:
        return catalogue
    share = gbps / catalogue.port_gbps
    parts = (
        replace(
            part,
            name=f"{part.name}, at {gbps:g}G",
            price_usd=part.price_usd
            * _listed(part.id, gbps)
            / _listed(part.id, catalogue.port_gbps),
            power_w=part.power_w * share,
            price_from="assumed",
            power_from="assumed",
            source=f"by speed as in {SPEED_SOURCE}; watts proportional to speed"[:300],
        )
        if part.id in USD_BY_SPEED
        else part
        for part in catalogue.parts
    )
    return replace(catalogue, parts=tuple(parts), port_gbps=gbps)


def _listed(part: str, gbps: float) -> float:
    """Return the published price at a speed: log-log linear between listed ones, else proportional."""
    prices = USD_BY_SPEED[part]
    if gbps <= PRICED_GBPS[0]:
        return prices[0] * gbps / PRICED_GBPS[0]
    if gbps >= PRICED_GBPS[-1]:
        return prices[-1] * gbps / PRICED_GBPS[-1]
    return float(np.exp(np.interp(np.log(gbps), np.log(PRICED_GBPS), np.log(prices))))


def cluster_bill(
    network: str,
    cluster: Cluster,
    catalogue: Catalogue,
    *,
    equivalent_gbps: float | None = None,
    oversubscription: float = 1.0,
    packet_ports: int = 0,
) -> Bill:
    """Return the bill of a cluster's own network, NICs included.

    Parameters
    ----------
    network
        One of :data:`CLUSTER_NETWORKS`.
    equivalent_gbps
        Of the fat-tree: one NIC of this speed per server instead of one for each port.
    oversubscription
        Of the fat-tree above its racks: what lies above is divided by it.
    packet_ports
        With regional optical switches: ports of a server that are on a fat-tree instead.

    Raises
    ------
    InputError
        If the ports are of a speed that no part can have.
    """
    links: float = cluster.servers * cluster.ports_per_server
    gbps = cluster.port_gbps
    tree, patched = network == "fat_tree", network == "topoopt_patch_panel"
    if tree and equivalent_gbps is not None:
        links, gbps = cluster.servers, equivalent_gbps
    above = _ABOVE / max(1.0, oversubscription) if tree else _ABOVE
    packets = {"fat_tree": links, "regional_ocs": cluster.servers * packet_ports}.get(network, 0)
    ports, circuits = packets * (_BELOW + above), links - packets
    counts = {
        "packet_port": ports,
        "transceiver": links,
        AT_SWITCHES: ports,
        "ocs_port": 0 if patched else circuits,
        "patch_panel_port": 2 * circuits if patched else 0,
        "one_by_two_switch": circuits if patched else 0,
    }
    return priced(network, links, counts, at_speed(catalogue, gbps), Counting(nics=True))


def cost_equivalent_gbps(
    cluster: Cluster, catalogue: Catalogue, network: str = "topoopt_ocs"
) -> float:
    """Return the NIC speed at which a fat-tree costs as much as the circuits (TopoOpt's d B').

    The circuits: for each port a NIC, a transceiver and an optical-switch port, or with
    ``topoopt_patch_panel`` two ports of a patch panel and a 1 x 2 switch (TopoOpt, NSDI 2023, section
    5). The fat-tree: a NIC, five switch ports and six transceivers per server. It may exceed what the
    circuits carry where packets are cheap.

    Raises
    ------
    InputError
        If the catalogue's packet parts are free, so that any speed costs the same.
    """
    aim = cluster_bill(network, cluster, catalogue).cost_usd / cluster.servers

    def packet_usd(gbps: float) -> float:
        bill = cluster_bill("fat_tree", cluster, catalogue, equivalent_gbps=gbps)
        return bill.cost_usd / cluster.servers

    low, high = 1e-3, 800.0
    while packet_usd(high) <= aim and high < FASTEST_GBPS:
        high = min(2 * high, FASTEST_GBPS)
    refuse_if(
        (
            packet_usd(high) <= aim or aim <= 0,
            "has packet switches, NICs and transceivers so cheap that any speed costs no more than the circuits",
        ),
        item=f"price catalogue {catalogue.name}",
    )
    # The price rises with speed and is continuous; halving on a logarithmic axis ends after 60
    # steps at 10 digits.
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if packet_usd(middle) < aim else (low, middle)
    return float(f"{(low * high) ** 0.5:.6g}")


def same_cost_ratio(cluster: Cluster, catalogue: Catalogue | None = None) -> float:
    """Return how many times the bandwidth of a fat-tree of the same cost a server's circuits have.

    1 where a fat-tree of full bandwidth costs no more than the circuits: faster NICs than that are
    not compared.

    Parameters
    ----------
    catalogue
        Prices; the price set with a figure for every speed, if None.
    """
    try:
        equivalent = cost_equivalent_gbps(cluster, catalogue or PRICE_SETS[SET_BY_SPEED])
    except InputError:
        return 1.0
    return max(1.0, cluster.ports_per_server * cluster.port_gbps / equivalent)


def same_cost_nic_gbps(
    cluster: Cluster, catalogue: Catalogue | None = None, ratio: float | None = None
) -> float:
    """Return the NIC speed of the fat-tree of the same cost that stands beside the circuits.

    Parameters
    ----------
    catalogue
        Prices, as in :func:`same_cost_ratio`.
    ratio
        Circuit bandwidth over NIC bandwidth, in place of the ratio that the prices give.
    """
    full_gbps = cluster.ports_per_server * cluster.port_gbps
    return float(f"{full_gbps / (ratio or same_cost_ratio(cluster, catalogue)):.6g}")


def same_cost_words(cluster: Cluster, catalogue: Catalogue) -> str:
    """Say what NIC and fat-tree the circuits' money buys, and by whose prices."""
    ports, ratio = cluster.ports_per_server, same_cost_ratio(cluster, catalogue)
    full_gbps = ports * cluster.port_gbps
    optical = f"{plural(ports, 'optical port')} per server {'costs' if ports == 1 else 'cost'}"
    bought = (
        f"{optical} as much as one NIC of {short(full_gbps / ratio)}G and its fat-tree"
        if ratio > 1
        else f"{optical} no less than one NIC of {full_gbps:g}G and its fat-tree, which therefore has all of it"
    )
    return (
        f"Same cost: {bought}. Prices by speed: {catalogue.name} (Cost page); a port has a NIC, a transceiver and "
        "an optical-switch port, a packet link five switch ports and six transceivers."
    )
