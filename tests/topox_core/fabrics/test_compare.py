"""One graph under every fabric: the order, who may lower how, the sentence, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.past import load_past
from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, random_graph, transfer
from topox_core.cli import compare as command
from topox_core.cli.main import OneLineParser
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare, fastest, run_one, undecided
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.registry import FABRICS, PAYS_DELAY, USUAL
from topox_core.fabrics.run import Breakdown, FabricOptions, FabricRequest, FabricRun
from topox_core.fabrics.verdict import Turn, headline, sentence
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task
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
    runs = compare(CHAIN, THREE, QUICK, reversed(list(FABRICS)))
    assert list(runs) == list(FABRICS)
    assert all(run.fabric == name for name, run in runs.items())


def test_the_chain_by_hand_under_each_controller() -> None:
    runs = compare(CHAIN, THREE, QUICK)
    # Planned circuits are fixed ones here: 0 -> 1 and 0 -> 2 over 1 stand side by side.
    by_hand = {"ideal": 11.0, "reactive": 16.0, "provisioned": 13.0, "scheduled": 11.0}
    assert {name: runs[name].iteration_ms for name in by_hand} == pytest.approx(by_hand)
    result = runs["scheduled"].result
    assert (result.switching, result.alternative.makespan_ms) == ("fixed", pytest.approx(13))


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
    times = {name: run.iteration_ms for name, run in runs.items()}
    assert times == pytest.approx({"static": 7.0, "reactive": 14.0})
    assert runs["static"].traffic.bandwidth_tax == pytest.approx(1.0)


def test_a_comparison_tells_each_run_and_keeps_what_it_has_when_it_is_stopped() -> None:
    told: list[str] = []
    runs = compare(
        CHAIN, THREE, QUICK, stop=lambda: len(told) >= 2, on_run=lambda run: told.append(run.fabric)
    )
    assert list(runs) == told == ["fat_tree", "static"]


@pytest.mark.parametrize(
    ("fabrics", "delay_ms", "variant", "said"),
    [
        (["ideal", "hypercube"], 5, "published", f"some of {', '.join(FABRICS)} (got 'hypercube')"),
        ([], 5, "published", "must name at least one of ideal"),
        (["ideal"], 1e12, "published", "field reconfiguration_ms: must be at most 3,600,000"),
        (["static"], 5, "released", "fabric static"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    fabrics: list[str], delay_ms: float, variant: str, said: str
) -> None:
    options = FabricOptions(topology_variant=variant)
    with pytest.raises(InputError) as error:
        compare(CHAIN, THREE.changed(reconfiguration_ms=delay_ms), QUICK, fabrics, options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", FABRICS)
def test_no_fabric_runs_a_server_that_is_not_there(name: str) -> None:
    tasks = graph(compute("a", 0, 1.0), transfer("b", 0, 7, 1.0, "a"))
    order = FabricRequest(lower(tasks), cluster(3, ports_per_server=2, switches=2), QUICK)
    with pytest.raises(InputError, match="names server 7"):
        run_one(name, order)


def test_every_fabric_stops_when_it_is_told_to() -> None:
    order = FabricRequest(lower(random_graph(0, tasks=2000)), cluster(4), QUICK)
    for name in FABRICS:
        asked = iter([False])  # not told at once, but when it asks again
        with pytest.raises(Stopped):
            run_one(name, order, lambda asked=asked: next(asked, True))


def test_the_seed_of_the_released_layout_counts_in_a_comparison() -> None:
    options = FabricOptions(topology_variant="released")
    times = [
        compare(*load_past("moe"), replace(QUICK, seed=seed), ["static"], options)["static"]
        for seed in range(3)
    ]
    assert [round(run.iteration_ms, 2) for run in times] == [336.48, 318.41, 300.14]


# -- who wins --------------------------------------------------------------------------------------


def test_a_plan_behind_by_less_than_its_gap_is_undecided() -> None:
    static = {"static": run_of("static", 100.0)}
    for planned_ms, bound_ms, open_ in (
        (110.0, 90.0, True),
        (110.0, 105.0, False),
        (95, 50, False),
    ):
        planned = run_of("scheduled", planned_ms, bound_ms=bound_ms)
        assert undecided({**static, "scheduled": planned}) == open_


def test_differences_below_half_a_percent_are_none_and_the_ideal_switch_wins_nothing() -> None:
    times = {"static": 100.3, "reactive": 100.0, "provisioned": 103.0}
    runs = {name: run_of(name, ms) for name, ms in times.items()}
    assert fastest(runs) == ("static", "reactive")
    assert sentence({**runs, "ideal": run_of("ideal", 10.0)}).endswith(
        "an ideal switch would take 10 ms."
    )


def test_the_sentence_says_who_wins_by_how_much_and_why() -> None:
    runs = {"provisioned": run_of("provisioned", 20.0), "reactive": run_of("reactive", 30.0)}
    runs["reactive"] = replace(runs["reactive"], breakdown=Breakdown(3.0, 17.0, 10.0, 0.0))
    assert sentence(runs) == (
        "Provisioned circuits are fastest at 20 ms, 1.5 times as fast as Circuits on demand (30 ms), "
        "with 10 ms more dark time, in which ports change their circuits."
    )


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


def test_the_command_prints_a_table_or_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(GRAPH, CLUSTER, "--reconfiguration-ms", "3", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert list(record["fabrics"]) == list(USUAL)
    for one in record["fabrics"].values():
        assert one["bound_ms"] <= one["iteration_ms"]
        assert sum(one["time"].values()) == pytest.approx(one["iteration_ms"])
    reactive = record["fabrics"]["reactive"]
    assert reactive["dark_ms"] == pytest.approx(3 * reactive["circuits_changed"])
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


# -- the headline ----------------------------------------------------------------------------------


def test_the_headline_says_that_switching_pays_against_a_fat_tree_and_where_that_turns() -> None:
    planned = run_of("scheduled", 20.0)
    switching = replace(planned, result=replace(planned.result, switching="planned"))
    runs = {
        "ideal": run_of("ideal", 10.0),
        "fat_tree": run_of("fat_tree", 40.0),
        "static": run_of("static", 30.0),
        "scheduled": switching,
    }
    said = headline(runs, turn=Turn(4.0, "static")).replace("\u00a0", " ")
    assert said == (
        "Planned circuits are fastest: 20 ms, half the time of a fat-tree."
        " Above a delay of about 4 ms, fixed circuits win."
    )


def test_the_headline_says_first_that_switching_does_not_pay_and_when_it_would() -> None:
    """A plan that keeps its circuits fixed is no winner that switches."""
    planned = run_of("scheduled", 30.0)
    other = replace(planned.result, makespan_ms=44.0, alternative=None)
    fixed = replace(planned.result, switching="fixed", alternative=other)
    runs = {"static": run_of("static", 30.0), "scheduled": replace(planned, result=fixed)}
    said = headline(runs, delay_ms=5.0, turn=Turn(4.0, "static")).replace("\u00a0", " ")
    assert said == (
        "Switching does not pay here. Fixed circuits need 30 ms, the best plan that changes circuits 44 ms."
        " With a delay of 4 ms or less it would pay."
    )
