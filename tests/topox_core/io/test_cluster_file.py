"""Clusters survive their file, and a bad one is told in one line."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.io.test_bad_input import json_values
from topox_core.errors import InputError
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.model.cluster import Cluster

GOOD = {
    "format": "topox-cluster",
    "version": 1,
    "servers": 16,
    "ports_per_server": 4,
    "switches": 4,
    "ports_per_switch": 16,
    "port_gbps": 100,
}
counts = st.integers(1, 4096)


def cluster_bytes(without: str = "", **changes: Any) -> bytes:
    return json.dumps({k: v for k, v in {**GOOD, **changes}.items() if k != without}).encode()


@examples(40)
@given(
    st.builds(
        Cluster,
        servers=counts,
        ports_per_server=counts,
        switches=counts,
        ports_per_switch=counts,
        port_gbps=st.floats(1e-3, 1e6),
        slot_ms=st.floats(1e-6, 1e6),
        reconfiguration_ms=st.floats(0, 1e3),
        duplex=st.sampled_from(["full", "half"]),
        latency_us=st.floats(0, 1e6),
        devices_per_server=counts,
        name=st.sampled_from(["", "16 servers", "Übung 3 – „Schalter“"]),
    )
)
def test_any_cluster_survives_its_file(cluster: Cluster) -> None:
    written = dump_cluster(cluster)
    assert load_cluster(written, "c.json") == cluster
    assert load_cluster(gzip.compress(written), "c.json.gz").digest == cluster.digest
    whole, decimal = (load_cluster(cluster_bytes(port_gbps=one), "c") for one in (40, 40.0))
    assert whole.digest == decimal.digest


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (cluster_bytes(servers="16"), "field servers: must be a whole number (got '16')"),
        (cluster_bytes(servers=True), "field servers: must be a whole number (got True)"),
        (
            cluster_bytes(servers=16.0),
            "field servers: must be a whole number without a decimal point (got 16.0)",
        ),
        (cluster_bytes(servers=0), "field servers: must be from 1 to 100,000 (got 0)"),
        (cluster_bytes(switches=-4), "field switches: must be from 1 to 4,096 (got -4)"),
        (
            cluster_bytes(port_gbps=float("nan")),
            "field port_gbps: must be a finite number (got nan)",
        ),
        (
            cluster_bytes(port_gbps=float("inf")),
            "field port_gbps: must be a finite number (got inf)",
        ),
        (cluster_bytes(port_gbps=0), "field port_gbps: must be greater than 0 (got 0)"),
        (cluster_bytes(slot_ms=None), "field slot_ms: must be a number (got None)"),
        (cluster_bytes(latency_us=-1), "field latency_us: must be at least 0 (got -1)"),
        (cluster_bytes(duplex="simplex"), "field duplex: must be 'full' or 'half' (got 'simplex')"),
        (
            cluster_bytes(name="a\nb"),
            r"field name: must be printable text of at most 200 characters (got 'a\nb')",
        ),
        (cluster_bytes(port_gbit=1), "field port_gbit: unknown key (did you mean 'port_gbps'?)"),
        (
            cluster_bytes(servers="16", port_gbps="100"),
            "field servers: must be a whole number (got '16') (and 1 more)",
        ),
        (
            cluster_bytes(version=2),
            "field version: 2 is newer than this program, which reads up to version 1; update the program",
        ),
        (cluster_bytes(version=0), "field version: must be 1 (got 0)"),
        (cluster_bytes(version="1"), "field version: must be the whole number 1 (got '1')"),
        (
            cluster_bytes(format="topox-taskgraph"),
            "field format: must be 'topox-cluster' (got 'topox-taskgraph': this is a taskgraph file)",
        ),
        (cluster_bytes(without="format"), "field format: must be 'topox-cluster' (is missing)"),
        (
            cluster_bytes(without="version"),
            "field version: must be the whole number 1 (is missing)",
        ),
        (cluster_bytes(without="port_gbps"), "field port_gbps: is missing"),
        (
            b'{"format": "topox-cluster", "servers": 1, "servers": 2}',
            "field servers: is given twice in one object",
        ),
        (b"[1, 2]", "must be one JSON object in braces (got a list of 2 entries)"),
        (b"", "is empty"),
    ],
)
def test_a_bad_cluster_is_told_in_one_line(data: bytes, line: str) -> None:
    with pytest.raises(InputError) as caught:
        load_cluster(data, "c.json")
    assert str(caught.value) == ("c.json, " if line.startswith("field") else "c.json: ") + line


@examples(75)
@given(st.dictionaries(st.sampled_from([*GOOD, "duplex", "name", "slot_ms", "x"]), json_values))
def test_any_values_give_a_cluster_or_a_clear_line(changes: dict[str, Any]) -> None:
    try:
        cluster = load_cluster(cluster_bytes(**changes), "c.json")
    except InputError as error:
        assert error.file == "c.json"
        assert error.field in {*changes, ""}
    else:
        assert load_cluster(dump_cluster(cluster), "c.json") == cluster
