"""One graph under every fabric: the order, who may lower how, the sentence, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.past import load_past
from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, transfer
from topox_core.cli import compare as command
from topox_core.cli.main import OneLineParser
from topox_core.errors import InputError
from topox_core.fabrics.compare import chosen, compare, fastest, same_time, undecided
from topox_core.fabrics.registry import ENTRIES, FABRICS, PAYS_DELAY, USUAL
from topox_core.fabrics.run import Breakdown, FabricOptions, FabricRequest, FabricRun
from topox_core.fabrics.static import run_static
from topox_core.fabrics.verdict import Turn, headline, sentence
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.model.layout import Layout
from topox_core.model.lowering import lower
from topox_core.model.rings import RING_KINDS
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import Lowering
from topox_core.runs.stopping import never
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

QUICK = Settings.of(engine="list")
CHAIN = graph(transfer("a", 0, 1, 4), compute("f", 1, 3, "a"), transfer("b", 0, 2, 4, "f"))
THREE = cluster(3, reconfiguration_ms=5)


def all_reduce(members: int, ms: float) -> Any:
    """All-reduce of a tensor that crosses a port in ``ms``."""
    return graph(
        Task("sum", "all_reduce", (), members=tuple(range(members)), size_bytes=ms * GBIT_MS)
    )


def run_of(name: str, ms: float, **changes: Any) -> FabricRun:
    one = compare(CHAIN, THREE, QUICK, [name])[name]
    longer = one.execution.end_ms + (ms - one.iteration_ms)
    run = replace(
        one,
        execution=replace(one.execution, end_ms=longer),
        breakdown=Breakdown(3.0, ms - 3.0, 0.0, 0.0),
        bound_ms=ms,
    )
    return replace(run, **changes)


# -- compare ---------------------------------------------------------------------------------------


def test_every_fabric_has_its_run_in_the_order_of_all_lists() -> None:
    assert list(ENTRIES) == list(FABRICS)
    runs = compare(CHAIN, THREE, QUICK, reversed(list(FABRICS)))
    assert list(runs) == list(FABRICS)
    assert all(run.fabric == name for name, run in runs.items())
    assert all(0 < run.bound_ms <= run.iteration_ms for run in runs.values())


def test_the_chain_by_hand_under_each_controller() -> None:
    runs = compare(CHAIN, THREE, QUICK)
    assert runs["ideal"].iteration_ms == pytest.approx(4 + 3 + 4)
    assert runs["reactive"].iteration_ms == pytest.approx(4 + 3 + 5 + 4)
    assert runs["provisioned"].iteration_ms == pytest.approx(4 + 5 + 4)
    # Fixed circuits: 0 -> 1 and 1 -> 2 stand side by side.
    assert runs["scheduled"].iteration_ms == pytest.approx(4 + 3 + 4)
    result = runs["scheduled"].result
    assert result.switching == "fixed"
    assert result.alternative.makespan_ms == pytest.approx(4 + 5 + 4)


def test_only_circuits_that_change_feel_the_delay() -> None:
    task_graph, of = load_sample("race")
    quick, slow = (
        compare(task_graph, of.changed(reconfiguration_ms=delay), QUICK, FABRICS)
        for delay in (0.0, 20.0)
    )
    felt = {name for name in FABRICS if quick[name].iteration_ms != slow[name].iteration_ms}
    assert felt <= PAYS_DELAY
    assert "reactive" in felt


def test_static_runs_its_all_reduce_on_the_rings_of_its_layout() -> None:
    of = cluster(8, ports_per_server=2, switches=2)
    runs = compare(all_reduce(8, 8.0), of, QUICK, ["static", "reactive"])
    # Two rings of 2 * 7/8 of the tensor, half each, over a circuit each: 7 ms instead of 14.
    assert runs["static"].iteration_ms == pytest.approx(7.0)
    assert runs["static"].traffic.bandwidth_tax == pytest.approx(1.0)
    assert runs["reactive"].iteration_ms == pytest.approx(14.0)


def test_strides_that_the_user_chose_stay() -> None:
    of = cluster(8, ports_per_server=2, switches=2)
    settings = replace(QUICK, lowering=Lowering(strides=(1,)))
    static = compare(all_reduce(8, 8.0), of, settings, ["static"])["static"]
    moved = [i for i, kind in enumerate(static.execution.graph.task_kind) if kind in RING_KINDS]
    assert len(moved) == 8 + 1  # one transfer a member, and the barrier at the end


def test_a_layout_of_the_users_own_is_taken_as_it_is() -> None:
    import numpy as np

    circuits = np.zeros((3, 3), np.int32)
    circuits[0, 1] = circuits[1, 2] = 1
    line = Layout(circuits, {(0, 1): ((0, 1),), (0, 2): ((0, 1, 2),)}, "a line")
    run = compare(CHAIN, THREE, QUICK, ["static"], FabricOptions(layout=line))["static"]
    assert run.traffic.longest_hops == 2
    assert run.message == "a line"


def test_every_run_is_told_as_soon_as_it_is_there() -> None:
    told: list[str] = []
    compare(CHAIN, THREE, QUICK, ["reactive", "ideal"], on_run=lambda run: told.append(run.fabric))
    assert told == ["reactive", "ideal"]


def test_a_comparison_that_is_stopped_keeps_what_it_has() -> None:
    told: list[str] = []
    runs = compare(
        CHAIN, THREE, QUICK, stop=lambda: len(told) >= 2, on_run=lambda run: told.append(run.fabric)
    )
    assert list(runs) == ["fat_tree", "static"]


@pytest.mark.parametrize(
    ("fabrics", "said"),
    [
        (
            ["ideal", "hypercube"],
            f"must be some of {', '.join(FABRICS)} (got 'hypercube')",
        ),
        ([], "must name at least one of ideal"),
    ],
)
def test_fabrics_that_are_none_are_named(fabrics: list[str], said: str) -> None:
    with pytest.raises(InputError) as error:
        compare(CHAIN, THREE, QUICK, fabrics)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_delay_that_no_switch_has_is_refused() -> None:
    with pytest.raises(InputError, match="field reconfiguration_ms: must be at most 3,600,000"):
        compare(CHAIN, THREE.changed(reconfiguration_ms=1e12), QUICK)


def test_what_a_fabric_cannot_run_names_the_fabric() -> None:
    with pytest.raises(InputError, match="fabric static"):
        compare(CHAIN, THREE, QUICK, options=FabricOptions(topology_variant="released"))


def test_the_seed_of_the_released_layout_counts_in_a_comparison() -> None:
    graph, cluster = load_past("moe")
    options = FabricOptions(topology_variant="released")
    times = []
    for seed in range(3):
        settings = Settings.of(engine="list", seed=seed)
        compared = compare(graph, cluster, settings, ["static"], options)["static"]
        request = FabricRequest(lower(graph, settings.lowering), cluster, settings, options)
        assert compared.iteration_ms == run_static(request, never).iteration_ms
        times.append(round(compared.iteration_ms, 2))
    assert times == [336.48, 318.41, 300.14]


def test_a_name_given_twice_runs_once() -> None:
    assert chosen(["static", "ideal", "static"]) == ("ideal", "static")


# -- who wins --------------------------------------------------------------------------------------


def test_differences_below_half_a_percent_are_none() -> None:
    assert same_time(100.0, 100.4)
    assert not same_time(100.0, 101.0)
    runs = {
        name: run_of(name, ms)
        for name, ms in (("static", 100.3), ("reactive", 100.0), ("provisioned", 103.0))
    }
    assert fastest(runs) == ("static", "reactive")


def test_a_plan_behind_by_less_than_its_gap_is_undecided() -> None:
    behind = {
        "static": run_of("static", 100.0),
        "scheduled": run_of("scheduled", 110.0, bound_ms=90.0),
    }
    assert undecided(behind)
    assert "gap of 18 % and may yet win" in sentence(behind)
    assert not undecided({**behind, "scheduled": run_of("scheduled", 110.0, bound_ms=105.0)})
    assert not undecided({**behind, "scheduled": run_of("scheduled", 95.0, bound_ms=50.0)})


def test_the_sentence_says_who_wins_by_how_much_and_why() -> None:
    runs = {"provisioned": run_of("provisioned", 20.0), "reactive": run_of("reactive", 30.0)}
    runs["reactive"] = replace(runs["reactive"], breakdown=Breakdown(3.0, 17.0, 10.0, 0.0))
    assert sentence(runs) == (
        "Provisioned circuits are fastest at 20 ms, 1.5 times as fast as Circuits on demand (30 ms), "
        "with 10 ms more dark time, in which ports change their circuits."
    )


def test_the_sentence_blames_forwarding_where_bytes_travel_several_hops() -> None:
    static = run_of("static", 30.0)
    static = replace(static, traffic=replace(static.traffic, bandwidth_tax=1.8, mean_hops=1.8))
    said = sentence({"static": static, "scheduled": run_of("scheduled", 29.0)})
    assert said == (
        "Planned circuits are fastest at 29 ms, 3.3 % ahead of Fixed circuits (30 ms), with 1 ms more of exposed "
        "transfer, its bytes travelling 1.8 hops on average."
    )


def test_the_sentence_names_ports_that_rings_leave_idle() -> None:
    runs = compare(
        all_reduce(8, 8.0),
        cluster(8, ports_per_server=2, switches=2),
        QUICK,
        ["static", "reactive"],
    )
    assert "its collectives on 1 ring using 1 of 2 ports" in sentence(runs)


def test_the_ideal_switch_is_a_yardstick_and_no_winner() -> None:
    runs = {
        "ideal": run_of("ideal", 10.0),
        "static": run_of("static", 20.0),
        "reactive": run_of("reactive", 40.0),
    }
    said = sentence(runs)
    assert said.startswith(
        "Fixed circuits are fastest at 20 ms, 2 times as fast as Circuits on demand (40 ms)"
    )
    assert said.endswith("; an ideal switch would take 10 ms.")


def test_the_sentence_says_when_nothing_makes_a_difference() -> None:
    said = sentence({"static": run_of("static", 20.0), "reactive": run_of("reactive", 20.01)})
    assert said.startswith(
        "It makes no difference: Fixed circuits and Circuits on demand take 20 ms within 0.5 %"
    )


@pytest.mark.parametrize("name", ["blackboard", "race", "fsdp"])
@pytest.mark.parametrize("delay_ms", [0.0, 10.0])
def test_the_sentence_is_one_sentence_on_the_samples(name: str, delay_ms: float) -> None:
    task_graph, of = load_sample(name)
    said = sentence(compare(task_graph, of.changed(reconfiguration_ms=delay_ms), QUICK))
    assert said.endswith(".")
    assert "\n" not in said
    assert ". " not in said


# -- the command -----------------------------------------------------------------------------------


def called(*arguments: str) -> int:
    top = OneLineParser(prog="topox")
    command.add(top.add_subparsers(required=True))
    options = top.parse_args(["compare", *arguments])
    status: int = options.run(options)
    return status


GRAPH, CLUSTER = (
    str(SAMPLE_FOLDER / "race.taskgraph.json"),
    str(SAMPLE_FOLDER / "race.cluster.json"),
)


def test_the_command_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(GRAPH, CLUSTER, "--reconfiguration-ms", "3", "--json") == 0
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    assert list(record["fabrics"]) == list(USUAL)
    for one in record["fabrics"].values():
        assert {"iteration_ms", "bound_ms", "circuits_changed", "dark_ms", "bandwidth_tax"} <= set(
            one
        )
        assert one["bound_ms"] <= one["iteration_ms"]
        assert sum(one["time"].values()) == pytest.approx(one["iteration_ms"])
    reactive = record["fabrics"]["reactive"]
    assert reactive["dark_ms"] == pytest.approx(3 * reactive["circuits_changed"])
    assert record["sentence"].endswith(".")
    assert len(printed.err.splitlines()) == len(USUAL)


def test_the_command_prints_a_table_and_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(GRAPH, CLUSTER, "--fabrics", "static,ideal") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["fabric", "ideal", "static"]
    assert lines[-1].startswith("Fixed circuits")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--fabrics", "optical"),
        ("--fabrics", ","),
        ("--reconfiguration-ms", "-1"),
        ("--reconfiguration-ms", "1e30"),
        ("--oversubscription", "0.5"),
        ("--servers-per-rack", "-2"),
        ("--equivalent-gbps", "0"),
        ("--model", "paper", "--reconfiguration-ms", "1"),
        ("--engine", "magic"),
    ],
)
def test_what_the_command_cannot_use_is_one_line(arguments: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as error:
        called(GRAPH, CLUSTER, *arguments)
    assert "\n" not in str(error.value)
    assert "field" in str(error.value)


def test_the_documentation_names_every_fabric() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "fabrics.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in FABRICS)


# -- the headline ----------------------------------------------------------------------------------


def test_the_headline_says_that_switching_pays_against_a_fat_tree_and_where_that_turns() -> None:
    planned = run_of("scheduled", 20.0)
    assert planned.result is not None
    switching = replace(planned, result=replace(planned.result, switching="planned"))
    runs = {
        "ideal": run_of("ideal", 10.0),
        "fat_tree": run_of("fat_tree", 40.0),
        "static": run_of("static", 30.0),
        "scheduled": switching,
    }
    first = "Planned circuits are fastest: 20 ms, half the time of a fat-tree."
    assert plain(headline(runs)) == first
    end = " Above a delay of about 4 ms, fixed circuits win."
    assert plain(headline(runs, turn=Turn(4.0, "static"))) == first + end
    equal = " Above a delay of about 4 ms, circuits that stay fixed are as fast."
    assert plain(headline(runs, turn=Turn(4.0))) == first + equal
    del runs["fat_tree"]
    assert "20 ms, 33.3 % less time than fixed circuits." in plain(headline(runs))


def test_the_headline_says_first_that_switching_does_not_pay_and_when_it_would() -> None:
    runs = {"static": run_of("static", 30.0), "reactive": run_of("reactive", 66.0)}
    said = "Switching does not pay here. Fixed circuits need 30 ms, circuits on demand 66 ms."
    assert plain(headline(runs, delay_ms=5.0)) == said
    would = f"{said} With a delay of 4 ms or less it would pay."
    assert plain(headline(runs, delay_ms=5.0, turn=Turn(4.0, "static"))) == would
    # A plan that keeps its circuits fixed is no winner that switches.
    planned = run_of("scheduled", 30.0)
    assert planned.result is not None
    other = replace(planned.result, makespan_ms=44.0, alternative=None)
    runs["scheduled"] = replace(
        planned, result=replace(planned.result, switching="fixed", alternative=other)
    )
    assert "Fixed circuits need 30 ms, the best plan that changes circuits 44 ms." in plain(
        headline(runs)
    )
    equal = {"static": run_of("static", 20.0), "reactive": run_of("reactive", 20.01)}
    assert plain(headline(equal)) == (
        "It makes no difference: fixed circuits and circuits on demand take 20 ms."
    )


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")
