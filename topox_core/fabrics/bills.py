"""What the network of a fabric costs and draws."""

from topox_core.economics.clusters import cluster_bill
from topox_core.economics.networks import Bill
from topox_core.economics.parts import Catalogue
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import ENTRIES
from topox_core.model.cluster import Cluster


def fabric_bill(
    name: str, cluster: Cluster, catalogue: Catalogue, options: FabricOptions
) -> Bill | None:
    """Return the bill of the network that a fabric runs on; None for one that nobody sells.

    A fat-tree of the same cost is priced by its NIC, any other by its oversubscription; regional circuits
    by their packet ports on a fat-tree and the others on optical switches.

    Raises
    ------
    InputError
        If the port speed cannot be priced.
    """
    network = ENTRIES[name].built_as
    if not network:
        return None
    if name == "fat_tree_full":
        options = FabricOptions()
    equivalent_gbps = options.equivalent_gbps
    return cluster_bill(
        network,
        cluster,
        catalogue,
        equivalent_gbps=equivalent_gbps,
        oversubscription=1.0 if equivalent_gbps else options.oversubscription,
        packet_ports=options.packet_ports_of(cluster),
    )
