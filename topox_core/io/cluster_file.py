"""Clusters from and to files: ``*.cluster.json``, format ``topox-cluster`` version 1."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from topox_core.errors import errors_in_file, printable
from topox_core.io.json import FileFormat, read_object, read_record, without_header
from topox_core.io.limits import CLUSTER
from topox_core.io.ranges import check_text
from topox_core.model.cluster import Cluster

FORMAT = "topox-cluster"
VERSION = 1
_MAX_NAME = 200
_KEYS = ("name", *(field.name for field in fields(Cluster) if field.name != "name"))
_FORM = FileFormat(FORMAT, VERSION, _KEYS, CLUSTER)
_Number = Annotated[float, Field(allow_inf_nan=False)]


class ClusterRecord(BaseModel):
    """A cluster as the file has it: types only; :class:`Cluster` knows the ranges."""

    model_config = ConfigDict(extra="forbid", strict=True)

    servers: int
    ports_per_server: int
    switches: int
    ports_per_switch: int
    port_gbps: _Number
    slot_ms: _Number = 1.0
    reconfiguration_ms: _Number = 0.0
    duplex: str = "full"
    latency_us: _Number = 0.0
    devices_per_server: int = 1
    name: str = ""


def load_cluster(data: bytes, file: str) -> Cluster:
    """Read a cluster, gunzipping it if needed.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file and field.
    """
    file = printable(file, _MAX_NAME) if file else "cluster"
    values = read_record(ClusterRecord, without_header(read_object(data, file, _FORM)), file)
    check_text(values.name, _MAX_NAME, file=file, field="name")
    with errors_in_file(file):
        return Cluster(**values.model_dump())


def dump_cluster(cluster: Cluster) -> bytes:
    """Write a cluster; reading it back gives an equal one."""
    values = asdict(cluster)
    record = {"format": FORMAT, "version": VERSION, **{key: values[key] for key in _KEYS}}
    return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()
