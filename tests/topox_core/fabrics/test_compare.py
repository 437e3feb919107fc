"""One graph under every fabric: the order, who may lower how, what is free, what is called equal, the sentence, the command."""

import json
import re
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import topox_core
from tests.conftest import long_after
from tests.past import load_past
from tests.refusal import refusal
from tests.topox_core.small_graphs import cluster, compute, graph, random_graph, transfer
from topox_core.claims.claims import CLAIMS
from topox_core.cli.main import main
from topox_core.fabrics.comparison.compare import (
    EQUAL,
    compare,
    fastest,
    run_one,
    run_with_best_lowering,
    ties,
    undecided,
)
from topox_core.fabrics.comparison.words import (
    CHANGING_PLAN,
    NO_PLAN,
    ahead_of_time,
    headline,
    sentence,
    why_longer,
)
from topox_core.fabrics.fluid.simulator import Stopped
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning import lowering_search
from topox_core.fabrics.planning.lowering_search import fastest_run, ring_choices
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.registry import FABRICS, PAYS_DELAY, USUAL
from topox_core.fabrics.run import Breakdown, FabricRequest, FabricRun, JobRequest
from topox_core.figures.palette import LIGHT
from topox_core.figures.studies.cells import sides_legend
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.results.result import ClassBound
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import percent, whole_percent
from topox_core.workloads.samples import load_sample

QUICK = Settings.of(engine="list")
FREELY = Settings.of(engine="list", free=FREE)
CHAIN = graph(transfer("a", 0, 1, 4), compute("f", 1, 3, "a"), transfer("b", 0, 2, 4, "f"))
THREE = cluster(3, reconfiguration_ms=5)


def run_of(name: str, ms: float, **changes: Any) -> FabricRun:
    one = compare(CHAIN, THREE, QUICK, [name])[name]
    longer = one.execution.end_ms + (ms - one.iteration_ms)
    execution = replace(one.execution, end_ms=longer)
    return replace(one, execution=execution, **{"bound_ms": ms} | changes)


# -- compare ---------------------------------------------------------------------------------------


def test_the_chain_by_hand_under_each_controller() -> None:
    runs = compare(CHAIN, THREE, QUICK)
    # Planned circuits are fixed ones here: 0 -> 1 and 0 -> 2 over 1 stand side by side.
    by_hand = {"ideal": 11.0, "reactive": 21.0, "provisioned": 18.0, "scheduled": 11.0}
    assert {name: runs[name].iteration_ms for name in by_hand} == pytest.approx(by_hand)
    result = runs["scheduled"].result
    assert (result.switching, result.alternative.makespan_ms) == ("fixed", pytest.approx(18))


def test_only_circuits_that_change_feel_the_delay() -> None:
    task_graph, of = load_sample("race")
    quick, slow = (
        compare(task_graph, of.changed(reconfiguration_ms=delay), QUICK, FABRICS)
        for delay in (0.0, 20.0)
    )
    felt = {name for name in FABRICS if quick[name].iteration_ms != slow[name].iteration_ms}
    assert felt <= PAYS_DELAY
    assert "reactive" in felt


def test_a_comparison_tells_each_run_and_keeps_what_it_has_when_it_is_stopped() -> None:
    told: list[str] = []
    runs = compare(
        CHAIN, THREE, QUICK, stop=lambda: len(told) >= 2, on_run=lambda run: told.append(run.fabric)
    )
    assert list(runs) == told == ["fat_tree", "fat_tree_full"]


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
    assert said in refusal(
        compare, CHAIN, THREE.changed(reconfiguration_ms=delay_ms), QUICK, fabrics, options
    )


@pytest.mark.parametrize("name", FABRICS)
def test_every_fabric_stops_when_it_is_told_to_and_runs_no_server_that_is_not_there(
    name: str,
) -> None:
    order = FabricRequest(lower(random_graph(0, tasks=2000)), cluster(4), QUICK)
    asked = iter([False])  # not told at once, but when it asks again
    with pytest.raises(Stopped):
        run_one(name, order, lambda: next(asked, True))
    tasks = graph(compute("a", 0, 1.0), transfer("b", 0, 7, 1.0, "a"))
    assert "names server 7" in refusal(run_one, name, replace(order, graph=lower(tasks)))


def test_the_seed_of_the_released_layout_counts_in_a_comparison() -> None:
    options = FabricOptions(topology_variant="released")
    for seed, expected_ms in enumerate((336.48, 318.41, 300.14)):
        runs = compare(*load_past("moe"), replace(QUICK, seed=seed), ["static"], options)
        assert runs["static"].iteration_ms == pytest.approx(expected_ms, abs=5e-3)


# -- what is free ----------------------------------------------------------------------------------


def chosen(fabric: str, task_graph: TaskGraph, of: Cluster, settings: Settings) -> FabricRun:
    return run_with_best_lowering(fabric, JobRequest(task_graph, of, settings))


@pytest.mark.parametrize(
    ("sample", "fabric"),
    long_after(
        4,
        [
            *(("race", "scheduled"), ("race", "reactive"), ("fsdp", "provisioned")),
            *(("moe", "reactive"), ("fsdp", "reactive"), ("fsdp", "scheduled")),
            *(("race", "provisioned"), ("moe", "provisioned"), ("moe", "scheduled")),
        ],
    ),
)
def test_a_free_choice_is_never_slower_than_the_settings_own(sample: str, fabric: str) -> None:
    job = load_past(sample)
    fixed, free = (chosen(fabric, *job, one) for one in (replace(FREELY, free=()), FREELY))
    assert free.iteration_ms <= fixed.iteration_ms
    assert (fixed.chosen, free.chosen.free) == (None, FREE)
    settled = replace(FREELY, lowering=free.chosen.lowering, free=())
    assert chosen(fabric, *job, settled).iteration_ms == free.iteration_ms
    if sample == "fsdp" and fabric != "scheduled":  # rings on all ports pay
        assert free.iteration_ms == pytest.approx(244.741196, abs=1e-6)
        assert free.chosen.lowering.choices() == {"rings": 2, "strides": [], "algorithms": {}}


def test_an_algorithm_is_chosen_in_the_whole_graph() -> None:
    task = Task("swap", "all_to_all", dependencies=(), members=tuple(range(8)), size_bytes=8e8)
    free, only_rings = (
        chosen("provisioned", graph(task), cluster(8), replace(FREELY, free=choices))
        for choices in (FREE, ("rings",))
    )
    assert free.chosen.lowering.choices()["algorithms"] == {"all_to_all:8:8e+08": "pairwise"}
    assert only_rings.iteration_ms > free.iteration_ms


@pytest.mark.parametrize(
    ("fabric", "settings"),
    [
        (
            "provisioned",
            replace(
                FREELY,
                lowering=Lowering(
                    strides=(3,), algorithm={"all_gather": "ring", "reduce_scatter": "ring"}
                ),
            ),
        ),
        ("provisioned", Settings.of()),
        ("ideal", FREELY),
    ],
)
def test_what_is_fixed_is_not_tried(fabric: str, settings: Settings) -> None:
    tried = []

    def on(request: FabricRequest) -> FabricRun:
        tried.append(request.graph.lowering)
        return run_one("provisioned", request)

    job = JobRequest(*load_past("fsdp"), settings)
    fastest_run(fabric, job, on, lambda request: on(request).iteration_ms)
    assert tried == [settings.lowering]


def test_a_free_choice_of_what_is_none_is_refused_and_static_circuits_have_rings_of_their_own() -> (
    None
):
    assert ring_choices("static", JobRequest(*load_past("fsdp"), FREELY)) == ()
    assert "must be one of rings, algorithm" in refusal(Settings.of, free=("colour",))


def test_the_key_of_a_job_has_names_and_choices_but_not_who_solves_it_and_for_how_long() -> None:
    """Sessions share answers by it, and errors quote names."""
    graph, of = load_past("fsdp")
    job = JobRequest(graph, of, FREELY)
    searched = replace(FREELY, engine="auto", time_limit_s=3.0, threads=1)
    assert replace(job, settings=searched).key == job.key == job.by_rules.key
    others = (
        replace(job, task_graph=replace(graph, name="theirs")),
        replace(job, cluster=of.changed(name="theirs")),
        replace(job, settings=replace(FREELY, free=("rings",))),
        job.at_delay(of.reconfiguration_ms + 1),
    )
    assert len({job.key, *(one.key for one in others)}) == 5
    assert others[-1].key_of_plans == job.key_of_plans


def no_bound(*_: object) -> None:
    """No bound of all choices."""


AT_ONCE = [("provisioned", k) for k in (1, 2, 4)]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        # Two rings are as short as the bound of all choices: nobody looks further.
        ({}, [*AT_ONCE[:2], ("scheduled", 2)]),
        # One ring takes 1.37 times as long at once.
        ({"open_bound": no_bound}, [*AT_ONCE, ("scheduled", 2), ("scheduled", 4)]),
        (
            {"open_bound": no_bound, "SLOWER": 2.0},
            [*AT_ONCE, ("scheduled", 1), ("scheduled", 2), ("scheduled", 4)],
        ),
        ({"open_bound": no_bound, "LOOKED_AT": {}}, [*AT_ONCE, ("scheduled", 2)]),
        ({"MAX_NODES": 100}, [("scheduled", 1)]),
    ],
)
def test_the_more_tasks_the_fewer_choices_are_planned(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(lowering_search, name, limit)
    tried: list[tuple[str, int]] = []

    def on(fabric: str, request: FabricRequest) -> FabricRun:
        tried.append((fabric, request.settings.lowering.rings))
        return run_one(fabric, request)

    job = JobRequest(*load_past("fsdp"), replace(FREELY, free=("rings",)))
    fastest_run(
        "scheduled",
        job,
        partial(on, "scheduled"),
        lambda request: on("provisioned", request).iteration_ms,
    )
    assert tried == expected


@pytest.mark.parametrize(
    ("sample", "delay_ms"),
    long_after(
        2, dict.fromkeys([("race", 1.0), *product(("race", "fsdp", "llama3-8b"), (0, 1, 10))])
    ),
)
def test_every_fabric_chooses_alike_so_that_plans_stay_ahead(sample: str, delay_ms: float) -> None:
    task_graph, of = load_past(sample, reconfiguration_ms=delay_ms)
    runs = compare(task_graph, of, FREELY)
    time_ms = {name: one.iteration_ms for name, one in runs.items()}
    assert time_ms["scheduled"] <= min(time_ms["provisioned"], time_ms["static"]) * (1 + 1e-9)
    assert time_ms["provisioned"] <= time_ms["reactive"] * (1 + 1e-9)
    del time_ms["fat_tree"]
    assert time_ms["ideal"] <= min(time_ms.values()) * (1 + 1e-9)
    assert schedule(task_graph, of, FREELY).makespan_ms == time_ms["scheduled"]
    alone = compare(task_graph, of, FREELY, ("ideal",))["ideal"]
    assert alone.iteration_ms == pytest.approx(time_ms["ideal"])


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
    assert sentence({**runs, "ideal": run_of("ideal", 10.0)}).startswith(
        "At a delay of 5 ms switching gains nothing: circuits fixed by TopoOpt and circuits on demand take 100 ms, "
        "provisioned circuits 103 ms."
    )


# -- the command -----------------------------------------------------------------------------------


COMMAND = [
    "compare",
    *(str(SAMPLE_FOLDER / f"race.{one}.json") for one in ("taskgraph", "cluster")),
]


def test_the_command_prints_a_table_or_one_json_object(
    capsys: pytest.CaptureFixture[str], ask: Any
) -> None:
    record = ask(*COMMAND, "--reconfiguration-ms", 3)
    assert list(record["fabrics"]) == list(USUAL)
    for one in record["fabrics"].values():
        assert one["bound_ms"] <= one["iteration_ms"]
        assert sum(one["time"].values()) == pytest.approx(one["iteration_ms"])
    reactive = record["fabrics"]["reactive"]
    assert reactive["dark_ms"] == pytest.approx(3 * reactive["circuits_changed"])
    assert main([*COMMAND, "--fabrics", "static,ideal"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["fabric", "ideal", "static"]
    assert lines[-1].startswith("Circuits fixed by TopoOpt take")


# -- the headline ----------------------------------------------------------------------------------


def test_the_headline_says_that_switching_pays_against_a_fat_tree() -> None:
    times = {"ideal": 10.0, "fat_tree": 40.0, "static": 30.0, "scheduled": 20.0}
    runs = {name: run_of(name, ms) for name, ms in times.items()}
    result = replace(runs["scheduled"].result, switching="planned")
    runs["scheduled"] = replace(runs["scheduled"], result=result)
    assert headline(runs).startswith("Planned circuits take"), "no circuit changes"
    runs["scheduled"] = replace(runs["scheduled"], circuits_changed=3)
    said = headline(runs).replace("\u00a0", " ")
    assert said == (
        "At a delay of 5 ms switching pays: planned circuits take 20 ms, circuits fixed by TopoOpt 30 ms and a fat-tree 40 ms."
    )
    dearer, faster = run_of("fat_tree_full", 22.0), run_of("fat_tree_full", 15.0)
    assert headline({**runs, "fat_tree_full": dearer}).replace("\u00a0", " ") == (
        f"{said} A full fat-tree takes 22 ms where its hosts share links and at most 10 ms where they send in an order."
    )
    assert (
        headline({**runs, "fat_tree_full": faster})
        .replace("\u00a0", " ")
        .endswith(
            " A full fat-tree is faster: 15 ms where its hosts share links and at most 10 ms where they send in an order."
        )
    )
    del runs["ideal"], runs["static"], runs["fat_tree"]
    assert headline({**runs, "fat_tree_full": dearer}).replace("\u00a0", " ") == (
        "Planned circuits take 20 ms. A full fat-tree takes 22 ms."
    )


def test_how_much_longer_the_next_takes_is_the_sum_of_what_the_sentence_names() -> None:
    """An exposed transfer 8 ms longer and 3 ms less of the rest are 5 ms."""
    runs = {
        name: replace(run_of(name, ms), breakdown=Breakdown(ms - sent, sent, 0.0, 0.0))
        for name, ms, sent in (("static", 20.0, 10.0), ("fat_tree", 25.0, 18.0))
    }
    assert (
        "A fat-tree takes 5 ms longer than circuits fixed by TopoOpt: 8 ms more of exposed"
        in why_longer(runs)
    )
    assert why_longer(runs).endswith(", 3 ms less of all else.")


BY_RULES = ("reactive", "provisioned")


@pytest.mark.parametrize(
    ("tasks", "delay_ms", "says"),
    [
        # Server 0 computes between its two transfers: only then can its port change ahead of time.
        (CHAIN.tasks, 5.0, ""),
        (CHAIN.tasks, 0.0, "without a delay"),
        (CHAIN.tasks[:1], 5.0, "no circuit changes"),
        ([transfer("a", 0, 1, 4), transfer("b", 0, 2, 4)], 5.0, "hardly any port"),
    ],
)
def test_why_circuits_on_demand_and_provisioned_tie_is_said(tasks, delay_ms, says) -> None:
    runs = compare(graph(*tasks), THREE.changed(reconfiguration_ms=delay_ms), QUICK, BY_RULES)
    said = ahead_of_time(runs)
    assert bool(said) == bool(says) and says in said
    assert not ahead_of_time({"reactive": runs["reactive"]})


def test_the_headline_says_first_that_switching_does_not_pay() -> None:
    """A plan that keeps its circuits fixed is no winner that switches."""
    planned = run_of("scheduled", 30.0)
    other = replace(planned.result, makespan_ms=44.0, alternative=None)
    fixed = replace(planned.result, switching="fixed", alternative=other)
    for bound_ms, says in ((29.0, NO_PLAN), (31.0, "switching does not pay")):
        known = replace(
            fixed, classes=(ClassBound(changes_circuits=True, best_ms=44.0, bound_ms=bound_ms),)
        )
        runs = {"static": run_of("static", 30.0), "scheduled": replace(planned, result=known)}
        assert headline(runs).replace("\u00a0", " ") == (
            f"At a delay of 5 ms {says}: circuits fixed by TopoOpt need 30 ms, {CHANGING_PLAN} 44 ms."
        )


ROOT = Path(topox_core.__file__).parents[1]


def test_equal_is_said_in_one_place() -> None:
    files = [path for name in ("topox_core", "topox_ui") for path in (ROOT / name).rglob("*.py")]
    saying = re.compile(r"^(EQUAL|AS_GOOD)\b.*=", re.MULTILINE)
    found = [path.name for path in files if saying.search(path.read_text(encoding="utf-8"))]
    assert found == ["compare.py"]


def test_the_words_have_its_number() -> None:
    words = percent(EQUAL)
    texts = json.loads((ROOT / "topox_core/labs/texts/en.json").read_text(encoding="utf-8"))
    lab = texts["lab"]["all-to-all"]["P1"]["option"]["equal"]
    counted = [one.counted for one in CLAIMS if "by more than" in one.counted]
    assert len(counted) == 7
    for text in (lab, sides_legend(LIGHT)[-1][1], *counted):
        assert words in text.replace(" %", "\u00a0%")


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        ({"a": 1.0, "b": 1.004, "c": 1.006}, ("a", "b")),
        ({"c": 1.006, "b": 1.004, "a": 1.0}, ("b", "a")),
        ({"a": 2.0, "b": 1.0}, ("b",)),
        ({}, ()),
    ],
)
def test_whatever_costs_the_same_is_best_with_the_best(
    costs: dict[str, float], best: tuple[str, ...]
) -> None:
    assert ties(costs) == best


def test_a_lead_that_is_no_tie_is_not_written_as_none() -> None:
    assert [whole_percent(share) for share in (0.004975, 0.007, 0.123)] == ["0.5", "1", "12"]
