"""Every page's model, the scenario among them: what a link writes is what it reads, and which choices go together."""

import pytest

from tests.topox_core.model.test_quantities import differing
from topox_core.errors import InputError
from topox_core.model import quantities
from topox_core.model.cluster import Cluster
from topox_core.papers.catalogue import CARDS
from topox_core.schema.fields import fields_of
from topox_ui.cost.controls import CostState
from topox_ui.gallery.card import GalleryState
from topox_ui.jobs.state import JobsState
from topox_ui.rails.state import RailsState
from topox_ui.recorded.state import RecordedState
from topox_ui.shell.pages import PAGES, models
from topox_ui.state.choices import ContestState, GatingState
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import agreeing
from topox_ui.strategy.state import StrategyState

# The keys of links that earlier versions wrote, each with a value that is not where its page begins.
OLD_LINKS = {
    "sample": "moe",
    "workload": "dlrm",
    "set.configuration": "2",
    "port_gbps": "400",
    "ports_per_server": "8",
    "switches": "4",
    "ports_per_switch": "16",
    "slot_ms": "0.5",
    "reconfiguration_ms": "2",
    "duplex": "half",
    "latency_us": "3",
    "model": "paper",
    "circuits": "per-slot",
    "share_circuits": "yes",
    "exclusive_devices": "no",
    "any_port": "yes",
    "rings": "2",
    "all_reduce_on_network": "no",
    "tick": "slot",
    "engine": "cpsat",
    "time_limit_s": "30",
    "threads": "1",
    "from_ms": "1.5",
    "to_ms": "20",
    "slot": "7",
    "fabrics": "static,scheduled",
    "fat_tree": "racks",
    "cost_ratio": "2.5",
    "oversubscription": "2",
    "servers_per_rack": "4",
    "variant": "released",
    "degree": "3",
    "traffic": "ring",
    "step": "2",
    "race_s": "30",
    "jobs.source": "generator",
    "jobs.sample": "four-pods",
    "jobs.jobs": "64",
    "jobs.context": "32768",
    "jobs.seed": "5",
    "jobs.graphs": "moe,fsdp",
    "jobs.copies": "3",
    "jobs.ports": "8",
    "jobs.port_gbps": "200",
    "jobs.reconfiguration_ms": "10",
    "jobs.algorithm": "greedy",
    "jobs.eq3_literal": "yes",
    "jobs.physical_ring": "yes",
    "jobs.delay_inside": "yes",
    "jobs.pod_group": "1",
    "jobs.stage": "1.0",
    "jobs.ring": "job 3",
    "rails.source": "toy",
    "rails.gpus": "32",
    "rails.tensor": "2",
    "rails.pipeline": "2",
    "rails.data": "4",
    "rails.context": "2",
    "rails.expert": "2",
    "rails.microbatches": "6",
    "rails.virtual_stages": "2",
    "rails.schedule": "interleaved",
    "rails.delay_ms": "50",
    "rails.link_up_ms": "100",
    "rails.control": "on_demand",
    "rails.switch": "piezo",
    "rails.split": "yes",
    "rails.limit": "1",
    "rails.nic_gbps": "800",
    "rails.lane": "1",
    "rails.latency_us": "10",
    "rails.fabric": "static",
    "rails.iteration_ms": "1500",
    "rails.see": "control",
    "rails.from_ms": "5",
    "rails.to_ms": "10",
    "rails.authors": "no",
    "rails.billions": "70",
    "rails.advice_gpus": "512",
    "cost.gpus": "512",
    "cost.gpus_per_server": "32",
    "cost.counting": "whole-switches",
    "cost.prices": "opus-v1",
    "cost.parts": "ocs_port:260:0.390625",
    "cost.against": "fat_tree",
    "cost.nics": "yes",
    "cost.fibre": "yes",
    "cost.fibre_m": "50",
    "cost.ocs_ports": "1",
    "cost.optics": "2",
    "cost.switch_optics": "no",
    "cost.joined": "yes",
    "cost.look_ahead": "no",
    "cost.usd_per_kwh": "0.2",
    "cost.pue": "1.5",
    "cost.years": "3",
    "cost.switch": "robotic",
    "cost.measure": "power",
}


@pytest.mark.parametrize("model", list(models()), ids=lambda model: model.__name__)
def test_old_links_still_open_and_are_written_as_they_were(model):
    given = {key: text for key, text in OLD_LINKS.items() if model.owns(key)}
    given.pop("workload" if "sample" in given else "", None)
    given.pop("set.configuration", None)
    state, wrong = model.of_query(given)
    assert wrong == {}
    assert state.to_query() == given


def test_every_key_belongs_to_exactly_one_page():
    every = list(models())
    keys = [*OLD_LINKS, *(model.prefix + name for model in every for name in fields_of(model))]
    owners = {key: [model for model in every if model.owns(key)] for key in keys}
    hidden = {"source", "name", "parameters"}
    assert [key for key, owned in owners.items() if len(owned) != 1 and key not in hidden] == []
    assert len({page.title for page in PAGES}) == len(PAGES)


def test_a_choice_sets_back_what_hangs_on_it_and_its_own_default_leaves_no_trace():
    now = RailsState(source="toy").changed(tensor=2, lane=3)
    assert now.changed(data=4).choices() == {"source": "toy", "tensor": 2, "data": 4}
    assert now.changed(source="job").choices() == {"source": "job"}
    assert JobsState(ports=8, stage="1.0").changed(sample="four-pods").ports is None
    assert StrategyState().changed(budget=300).changed(budget=None) == StrategyState()


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        (JobsState, "jobs", "256 jobs"),
        (JobsState, "source", "the paper’s set-up"),
        (JobsState, "pod_group", "slowest (pod group 3)"),
        (ContestState, "fabrics", ("static", "nothing")),
        (ContestState, "fabrics", ()),
        (CostState, "pue", float("nan")),
        (StrategyState, "servers", 0),
        (RailsState, "control", None),
    ],
)
def test_what_is_no_value_of_a_field_never_reaches_a_model(model, field, value):
    with pytest.raises(ValueError, match=field):
        model(**{field: value})


def test_of_choices_that_do_not_go_together_the_fewest_are_left_out():
    def check(state: CostState) -> None:
        if state.nics and state.fibre:
            raise InputError("one of both")

    state, dropped = agreeing(
        CostState(nics=True, fibre=True, pue=1.5), ["nics", "fibre", "pue"], check
    )
    assert dropped == {"fibre": "one of both"} and state == CostState(nics=True, pue=1.5)


def test_the_switches_of_a_card_are_in_its_link():
    card = next(card for card in CARDS.values() if len(card.choices) > 1)
    choice = card.choices[0]
    other = next(value for value, _ in choice.options if value != choice.default)
    link = {"gallery.card": card.name, f"gallery.{choice.key}": str(other)}
    state, wrong = GalleryState.of_query(link)
    assert wrong == {} and dict(state.switches) == {choice.key: other}
    assert state.to_query() == link
    assert GalleryState.of_query(link | {"gallery.laser": "1"})[1] == {"gallery.laser": ""}


def test_a_file_on_this_machine_is_in_no_link():
    assert JobsState(source="upload", ports=8).to_query() == {}
    assert RailsState(source="upload", tensor=2, delay_ms=50.0).to_query() == {
        "rails.delay_ms": "50"
    }


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
    assert Scenario.of_query(now.to_query()) == (now, {})
    assert (
        now.without_what_ifs()
        == chosen()
        == chosen(port_gbps=40.0).with_what_if(FILE, port_gbps=100.0)
    )
    workload = Scenario(source="workload", name="dlrm", parameters=(("configuration", "2"),))
    assert workload.to_query() == {"workload": "dlrm", "set.configuration": "2"}
    assert Scenario.of_query(workload.to_query()) == (workload, {})
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
    assert list(wrong) == list(query)
    assert now == now.without_what_ifs()


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
    back = chosen(model="paper").with_what_if(FILE, model="physical")
    assert back == back.without_what_ifs()


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
    "switches": fields_of(Cluster)["switches"].steps,
    "slot_ms": fields_of(Cluster)["slot_ms"].steps,
    "rings": quantities.SMALL_COUNTS,
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


@pytest.mark.parametrize(
    ("model", "key"),
    [
        (Scenario, "port_gbps"),
        (JobsState, "jobs.port_gbps"),
        (RailsState, "rails.nic_gbps"),
        (RecordedState, "recorded.nic_gbps"),
        (StrategyState, "strategy.port_gbps"),
        (StrategyState, "strategy.gpu_gbps"),
    ],
)
def test_a_link_is_refused_a_speed_of_nothing_in_the_words_of_a_file(model, key):
    _, wrong = model.of_query({key: "0"})
    with pytest.raises(InputError) as refused:
        FILE.changed(port_gbps=0.0)
    assert wrong == {key: refused.value.problem}


@pytest.mark.parametrize("gating", ["walk", "zipf"])
def test_a_skew_of_nothing_is_even_except_where_it_is_drawn_from(gating):
    GatingState(gating=gating, gating_skew=0.0).check()
    with pytest.raises(InputError, match="with dirichlet"):
        GatingState(gating="dirichlet", gating_skew=0.0).check()


def test_a_page_takes_of_a_quantity_what_a_file_takes():
    assert differing(list(models())) == []


@pytest.mark.parametrize("value", ["400G", "a fibre", (1, 2), float("nan"), -3])
def test_what_is_no_value_of_a_field_is_refused(value):
    with pytest.raises(ValueError, match="port_gbps"):
        chosen().with_what_if(FILE, port_gbps=value)
