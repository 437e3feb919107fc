"""What the user chose, and its words in a link."""

import pytest

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_ui.state.scenario import Scenario, of_query

FILE = Cluster(
    servers=8,
    ports_per_server=4,
    switches=4,
    ports_per_switch=8,
    port_gbps=100,
    reconfiguration_ms=1.0,
)
NAMES = {"sample": ["moe"], "workload": {"dlrm": ["servers"]}}


def chosen(**choices):
    now = Scenario("sample", "moe")
    for key, value in choices.items():
        now = now.with_choice(key, value, FILE)
    return now


def test_a_link_carries_what_was_changed_and_nothing_else():
    now = chosen(port_gbps=40.0, rings=2, slot=7)
    assert now.as_query() == {"sample": "moe", "port_gbps": "40", "rings": "2", "slot": "7"}
    assert of_query(now.as_query(), NAMES) == (now, [])


def test_going_back_to_the_files_value_takes_the_change_away():
    assert chosen(port_gbps=40.0).with_choice("port_gbps", 100.0, FILE) == Scenario("sample", "moe")


def test_a_workload_travels_with_its_parameters():
    now = Scenario("workload", "dlrm", (("servers", "32"),))
    assert now.as_query() == {"workload": "dlrm", "set.servers": "32"}
    assert of_query(now.as_query(), NAMES) == (now, [])


def test_uploads_are_never_in_a_link():
    assert Scenario("upload", "secret.json", cluster=(("port_gbps", 40.0),)).as_query() == {}


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
        {"slot": "-3"},
        {"slot": "1e400"},
        {"unheard_of": "1"},
        {"sample": "../../etc/passwd"},
        {"workload": "nothing"},
        {"set.servers": "3"},
        {"all_reduce_on_network": "maybe"},
        {"switches": "9" * 5000},
    ],
)
def test_garbage_is_told_and_ignored(query):
    now, ignored = of_query({"sample": "moe", **query} if "sample" not in query else query, NAMES)
    assert len(ignored) == 1
    assert ignored[0].startswith(next(iter(query)))
    assert len(ignored[0]) < 100
    assert not now.cluster and not now.settings and not now.view


def test_more_switches_move_the_ports_to_a_multiple():
    assert chosen(switches=3).changed(FILE).ports_per_server == 3
    assert chosen(switches=6).changed(FILE).ports_per_server == 6
    assert chosen(switches=2).changed(FILE).ports_per_server == 4


def test_circuits_that_move_pay_no_delay_and_staying_brings_it_back():
    moving = chosen(circuits="per-slot")
    assert moving.changed(FILE).reconfiguration_ms == 0
    assert (
        moving.with_choice("circuits", "continuous", FILE).changed(FILE).reconfiguration_ms == 1.0
    )


def test_a_model_brings_its_own_switches():
    printed = chosen(model="paper").made()
    assert (
        printed.share_circuits,
        printed.any_port,
        printed.exclusive_devices,
        printed.circuits,
    ) == (
        True,
        True,
        False,
        "per-slot",
    )
    assert (
        chosen(model="paper", exclusive_devices=True, circuits="continuous").made().share_circuits
        is False
    )
    back = chosen(model="paper").with_choice("model", "physical", FILE)
    assert back.settings == ()


@pytest.mark.parametrize(
    "key", ["model", "circuits", "share_circuits", "any_port", "exclusive_devices"]
)
def test_every_pair_of_choices_from_the_controls_makes_valid_settings(key):
    values = {"model": ["physical", "paper"], "circuits": ["continuous", "per-slot"]}
    for model in values["model"]:
        for circuits in values["circuits"]:
            now = chosen(model=model, circuits=circuits)
            # The page offers sharing and free ports only where circuits may move.
            if key in ("share_circuits", "any_port") and circuits == "continuous":
                continue
            for value in values.get(key, [True, False]):
                after = now.with_choice(key, value, FILE)
                settings, cluster = after.made(), after.changed(FILE)
                assert settings.any_port or cluster.ports_per_server % cluster.switches == 0
                assert settings.circuits == "continuous" or cluster.reconfiguration_ms == 0


def test_a_value_out_of_range_names_its_field():
    with pytest.raises(InputError, match="cluster, field port_gbps"):
        of_query({"sample": "moe", "port_gbps": "0"}, NAMES)[0].changed(FILE)


def test_reset_keeps_what_is_loaded_and_in_view():
    assert chosen(port_gbps=40.0, rings=2, slot=7).without_what_ifs().as_query() == {
        "sample": "moe",
        "slot": "7",
    }
