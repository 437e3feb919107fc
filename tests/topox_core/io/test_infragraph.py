"""InfraGraph's files: hosts, NICs, links and switches become a cluster, and a cluster becomes such a file."""

import gzip
import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, strategies as st

from tests.refusal import refusal
from topox_core.io.cluster_file import load_cluster, read_cluster
from topox_core.io.foreign.infragraph import dump_infragraph
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.schema.fields import fields_of

HOST = {
    "name": "box",
    "components": [
        {"name": "gpu", "count": 8, "choice": "xpu"},
        {"name": "card", "count": 2, "choice": "nic"},
        {"name": "nvsw", "count": 4, "choice": "switch"},
    ],
    "links": [],
    "edges": [],
}
SWITCH = {
    "name": "leaf",
    "components": [
        {"name": "asic", "count": 1, "choice": "cpu"},
        {"name": "port", "count": 8, "choice": "port"},
    ],
    "links": [],
    "edges": [],
}


def link(name, gbps, **more):
    return {
        "name": name,
        "physical": {"bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": gbps}}
        | more,
    }


def edge(one, other, name="down", scheme="one2one"):
    ends = [
        dict(zip(("instance", "component"), end.split("."), strict=True)) for end in (one, other)
    ]
    return {"ep1": ends[0], "ep2": ends[1], "scheme": scheme, "link": name}


def two_tiers(**changes):
    """Return four hosts of two NICs on two leaves, which two links of 100 Gbit/s join to one spine."""
    return {
        "name": "two tiers",
        "devices": [HOST, SWITCH],
        "links": [link("down", 100.0, latency={"choice": "ns", "ns": 500}), link("up", 50)],
        "instances": [
            {"name": "host", "device": "box", "count": 4},
            {"name": "rack", "device": "leaf", "count": 2},
            {"name": "spine", "device": "leaf", "count": 1},
        ],
        "edges": [
            edge("host[0:2].card", "rack[0].port[0:4]"),
            edge("host[2:].card", "rack[1].port[:4]"),
            edge("rack.port[4:6]", "spine.port[0:4]", "up"),
        ],
    } | changes


def read(record, file="f.yaml"):
    # Through JSON: YAML would write what stands twice once, and name it.
    return read_cluster(yaml.safe_dump(json.loads(json.dumps(record))).encode(), file)


def test_hosts_and_their_links_are_servers_and_ports_and_packet_switches_a_fat_tree():
    found = read(two_tiers())
    assert found.cluster == one_port_a_switch(
        4, 2, 100.0, latency_us=1.0, devices_per_server=8, name="two tiers"
    )
    # A leaf takes 4 x 100 Gbit/s from below and gives 2 x 50 above.
    assert found.fat_tree == {
        "equivalent_gbps": 200.0,
        "servers_per_rack": 2,
        "oversubscription": 4.0,
    }
    assert any("inside hosts: nvsw" in note for note in found.notes)
    assert any("2 are assumed" in note for note in found.notes)


def test_json_and_gzip_and_annotations_around_it_say_the_same():
    record = two_tiers()
    annotated = {"infrastructure": record, "annotations": {"graph": []}}
    for data in (json.dumps(record).encode(), json.dumps(annotated).encode()):
        assert load_cluster(data, "f.json") == read(record).cluster
        assert load_cluster(gzip.compress(data), "f.json.gz") == read(record).cluster


def test_every_pair_and_every_second_one_are_what_the_slices_say():
    edges = [edge(f"host[{k}].card[{c}]", f"rack[{c}].port[{k}]") for k in range(4) for c in (0, 1)]
    by_hand = read(two_tiers(edges=edges))
    sliced = [edge(f"host[::].card[{c}:{c + 1}]", f"rack[{c - 2}].port[0:8:2]") for c in (0, 1)]
    assert read(two_tiers(edges=sliced)).cluster == by_hand.cluster
    pairs = [edge("host[-1].card[0]", "rack[0].port[0:1]", scheme="many2many")]
    assert read(two_tiers(edges=pairs)).cluster.servers == 1


def test_a_card_that_is_a_device_of_its_own_has_the_ports():
    card = {"name": "cx", "components": [{"name": "port", "count": 2, "choice": "port"}]}
    parts = [*HOST["components"], {"name": "cx", "count": 1, "choice": "device"}]
    record = two_tiers(
        devices=[HOST | {"components": parts}, SWITCH, card],
        edges=[
            {
                "ep1": {"instance": "host", "component": "cx[0].port"},
                "ep2": {"instance": "rack[0]", "component": "port[0:8]"},
                "link": "down",
            }
        ],
    )
    assert read(record).cluster.ports_per_server == 2


def clusters():
    kinds = st.builds(
        Cluster,
        servers=st.integers(2, 9),
        ports_per_server=st.integers(3, 7),
        switches=st.integers(1, 3),
        ports_per_switch=st.integers(1, 20),
        port_gbps=st.floats(1e-3, 1e6),
        slot_ms=st.floats(1e-3, 1e3),
        reconfiguration_ms=st.floats(0, 1e6),
        duplex=st.sampled_from(fields_of(Cluster)["duplex"].choices),
        latency_us=st.integers(0, 10**6).map(float),
        devices_per_server=st.integers(1, 16),
        name=st.sampled_from(["", "8 servers", "x: [y] é", "- a"]),
    )
    return kinds


@given(clusters())
def test_a_cluster_that_is_written_and_read_again_is_equal_and_nothing_is_left_out(cluster):
    found = read_cluster(dump_infragraph(cluster), "f.yaml")
    assert found.cluster == cluster and not found.notes and not found.fat_tree


def test_a_fibre_taken_out_of_a_written_file_leaves_a_server_with_fewer_ports():
    record = yaml.safe_load(dump_infragraph(one_port_a_switch(4, 2, 100.0)))
    record["edges"][0]["ep1"]["instance"] = "server[0:3]"
    assert "every server as many ports" in refusal(read, record)


ONE_HOST = [edge("host[0].card", "rack[0].port[0:2]")]
ITSELF = {"name": "box", "count": 1, "choice": "device"}
MANY = {"name": "host", "device": "box", "count": 10**9}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"edges": []}, "links no host"),
        ({"edges": [edge("host.card", "rack[0].port", "x")]}, "link x: is not in the list of links"),
        ({"edges": [edge("host.nic", "rack.port")]}, "edge 0: 'nic' is none of"),
        ({"edges": [edge("host[9].card", "rack.port")]}, "edge 0: 'host[9]' is beyond the 4"),
        ({"edges": [edge("host.card", "rack[0].port")] * 2}, "edge 1: host[0].card[0] has a link already"),
        ({"links": [{"name": "down"}]}, "link down, field physical.bandwidth: must be given"),
        ({"instances": [{"name": "host", "device": "z", "count": 1}]}, "instance host, field device: 'z' is none"),
        ({"instances": 3}, "field instances: expected `array`, got `int`"),
        ({"edges": [*ONE_HOST, edge("host[1].card[0]", "rack[1].port[0]")]}, "host[0] has 2, host[1] 1"),
        ({"edges": [*ONE_HOST, edge("host[1].card", "rack[1].port", "up")]}, "one speed (got 50, 100 Gbit/s)"),
        ({"devices": [HOST | {"components": [ITSELF]}, SWITCH]}, "within itself"),
        ({"instances": [MANY, *two_tiers()["instances"][1:]], "edges": [edge("host.card", "rack.port")]}, "ends an edge"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_cluster_is_one_line(change, line):
    told = refusal(read, two_tiers(**change))
    assert line in told and told.startswith("f.yaml")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("devices: [1\ninstances: 2", "is not valid YAML"),
        ("devices: &a [1]\ninstances: *a", "line 2: has an alias"),
        ("devices: " + "[" * 60 + "]" * 60, "nested too deeply"),
        ('{"instances": 1, "instances": 2}', "is given twice"),
    ],
)
def test_damaged_text_is_one_line(text, line):
    assert line in refusal(load_cluster, text.encode(), "f.yaml")


def test_a_cluster_of_ours_is_still_told_by_its_header():
    ours = replace(one_port_a_switch(2, 1, 10.0), name="instances: devices:")
    from topox_core.io.cluster_file import dump_cluster

    assert load_cluster(dump_cluster(ours), "f") == ours
