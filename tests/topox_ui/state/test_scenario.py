"""What the user chose, and its words in a link."""

import pytest

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import fields_of
from topox_ui.state import what_ifs
from topox_ui.state.scenario import Scenario

FILE = Cluster(
    servers=8,
    ports_per_server=4,
    switches=4,
    ports_per_switch=8,
    port_gbps=100,
    reconfiguration_ms=1.0,
)


def chosen(**choices):
    now = Scenario(source="sample", name="moe")
    for key, value in choices.items():
        now = now.with_what_if(FILE, **{key: value})
    return now


def test_a_link_carries_what_was_changed_and_nothing_else():
    now = chosen(port_gbps=40.0, rings=2)
    assert now.to_query() == {"sample": "moe", "port_gbps": "40", "rings": "2"}
    assert Scenario.of_query(now.to_query()) == (now, [])
    assert (
        now.without_what_ifs()
        == chosen()
        == chosen(port_gbps=40.0).with_what_if(FILE, port_gbps=100.0)
    )
    workload = Scenario(source="workload", name="dlrm", parameters=(("configuration", "2"),))
    assert workload.to_query() == {"workload": "dlrm", "set.configuration": "2"}
    assert Scenario.of_query(workload.to_query()) == (workload, [])
    # Uploads are never in a link.
    assert Scenario(source="upload", name="secret.json", port_gbps=40.0).to_query() == {}


@pytest.mark.parametrize(
    "query",
    [
        {"port_gbps": "abc"},
        {"port_gbps": "nan"},
        {"port_gbps": "-1"},
        {"switches": "0"},
        {"switches": "1.5"},
        {"duplex": "both"},
        {"model": "x" * 500},
        {"tick": "1e400"},
        {"sample": "../../etc/passwd"},
        {"workload": "nothing"},
        {"set.data": "3"},
        {"all_reduce_on_network": "maybe"},
        {"switches": "9" * 5000},
    ],
)
def test_garbage_is_named_and_ignored(query):
    now, wrong = Scenario.of_query({"sample": "moe"} | query)
    assert wrong == list(query)
    assert not now.has_what_ifs


@pytest.mark.parametrize(("switches", "ports"), [(3, 3), (6, 6), (2, 4)])
def test_more_switches_move_the_ports_to_a_multiple(switches, ports):
    assert chosen(switches=switches).cluster(FILE).ports_per_server == ports


@pytest.mark.parametrize(("choices", "delay_ms"), [({}, 1.0), ({"reconfiguration_ms": 5.0}, 5.0)])
def test_circuits_that_move_pay_no_delay_and_staying_brings_it_back(choices, delay_ms):
    moving = chosen(**choices).with_what_if(FILE, circuits="per-slot")
    moving.check_on(FILE)
    assert moving.cluster(FILE).reconfiguration_ms == 0
    assert moving.delay_not_charged(FILE) == delay_ms
    staying = moving.with_what_if(FILE, circuits="continuous")
    assert staying.cluster(FILE).reconfiguration_ms == delay_ms
    assert staying.delay_not_charged(FILE) == 0.0


def test_a_model_brings_its_own_switches():
    printed = chosen(model="paper").settings()
    assert printed.share_circuits and printed.any_port and not printed.exclusive_devices
    assert printed.circuits == "per-slot"
    staying = chosen(model="paper", exclusive_devices=True, circuits="continuous")
    assert staying.settings().share_circuits is False
    assert not chosen(model="paper").with_what_if(FILE, model="physical").has_what_ifs


@pytest.mark.parametrize("model", ["physical", "paper"])
def test_every_pair_of_choices_from_the_controls_makes_valid_settings(model):
    for circuits in ("continuous", "per-slot"):
        now = chosen(model=model, circuits=circuits)
        # The page offers sharing and free ports only where circuits may move.
        moving = ("share_circuits", "any_port") if circuits == "per-slot" else ()
        for key in ("exclusive_devices", *moving):
            for value in (True, False):
                now.with_what_if(FILE, **{key: value}).check_on(FILE)


SLIDERS = {
    "reconfiguration_ms": fields_of(Cluster)["reconfiguration_ms"].steps,
    "port_gbps": fields_of(Cluster)["port_gbps"].steps,
    "switches": what_ifs.SWITCHES,
    "slot_ms": fields_of(Cluster)["slot_ms"].steps,
    "rings": what_ifs.RINGS,
}


@pytest.mark.parametrize("key", SLIDERS)
def test_every_position_of_a_slider_is_a_setting_that_can_be(key):
    for value in SLIDERS[key]:
        chosen(**{key: value}).check_on(FILE)


def test_what_is_left_open_is_free_except_in_the_printed_model():
    assert chosen().settings().free == ("rings", "algorithm")
    fixed = chosen(rings=1, all_reduce="tree", broadcast="default")
    lowering = fixed.settings().lowering
    assert (fixed.settings().free, lowering.rings) == (("algorithm",), 1)
    assert dict(lowering.algorithm) == {"all_reduce": "tree", "broadcast": "default"}
    assert fixed.with_what_if(FILE, rings=0, all_reduce="auto", broadcast="auto") == chosen()
    assert chosen(model="paper").settings().free == ()


def test_a_value_out_of_range_names_its_field():
    with pytest.raises(InputError, match="cluster, field port_gbps"):
        Scenario.of_query({"sample": "moe", "port_gbps": "0"})[0].cluster(FILE)


@pytest.mark.parametrize("value", ["400G", "a fibre", (1, 2), float("nan"), -3])
def test_what_is_no_value_of_a_field_is_refused(value):
    with pytest.raises(ValueError, match="port_gbps"):
        chosen().with_what_if(FILE, port_gbps=value)
