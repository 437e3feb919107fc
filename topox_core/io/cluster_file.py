"""Clusters from and to files: ``*.cluster.json``, format ``topox-cluster`` version 1; InfraGraph's are read as well."""

from dataclasses import asdict

from topox_core.errors import printable
from topox_core.io.content import FileFormat, read_object, whole, without_header
from topox_core.io.foreign.infragraph import InfraCluster, is_infragraph, read_infragraph
from topox_core.io.limits import CLUSTER, INFRAGRAPH
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import fields_of
from topox_core.schema.records import from_values

FORMAT, VERSION = "topox-cluster", 1
# By so much of a file it is told from one of InfraGraph.
HEADER_BYTES = 1 << 18
_KEYS = ("name", *(name for name in fields_of(Cluster) if name != "name"))
_FORM = FileFormat(FORMAT, VERSION, _KEYS, CLUSTER)


def load_cluster(data: bytes, file: str) -> Cluster:
    """Read a cluster, gunzipping it if needed.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file and field.
    """
    return read_cluster(data, file).cluster


def read_cluster(data: bytes, file: str) -> InfraCluster:
    """Read a cluster file of ours, or InfraGraph's with what it says besides; raises as :func:`load_cluster`."""
    file = printable(file, 200) if file else "cluster"
    if is_infragraph(whole(data, file, INFRAGRAPH)[:HEADER_BYTES]):
        return read_infragraph(data, file)
    return InfraCluster(from_values(Cluster, without_header(read_object(data, file, _FORM)), file))


def dump_cluster(cluster: Cluster) -> bytes:
    """Write a cluster; reading it back gives an equal one."""
    values = asdict(cluster)
    return _FORM.written({key: values[key] for key in _KEYS})
