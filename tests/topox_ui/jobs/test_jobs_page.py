"""Jobs: samples, the draft's set-up, task graphs and own files; rounds side by side, the search, its bound, the study, links."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.topox_ui.conftest import address, chart, control, metric, ways_on, words
from topox_core.runs.executor import WorkerDied
from topox_core.runs.stopping import never
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.mixes.samples import JOB_SAMPLES, load_job_sample
from topox_core.tdm.model.jobs_file import dump_jobs
from topox_core.tdm.model.round import TdmSettings
from topox_core.tdm.solve import solve
from topox_ui.jobs import search
from topox_ui.runs.slots import SolverPlaces, solver_places

JOBS = "pages/6_Jobs.py"
NO_TURNS, DRAFT = "No time division", "Hill climbing"


def settled(at):
    """Run the page again until no search goes on."""
    going_on = ("cancel_round", "cancel_bound")
    wait_until(lambda: bool(at.exception) or not any(b.key in going_on for b in at.button), at.run)
    assert not at.exception
    return at


@pytest.fixture
def page(visit):
    """Open the page on a sample (or as a link says) and wait for its answer, by an algorithm that needs no child process."""

    def opened(sample: str = "overlap", **query: str):
        keys = {"sample": sample, "algorithm": "all-train", **query}
        return settled(visit(JOBS, **{f"jobs.{key}": value for key, value in keys.items()}))

    return opened


def traces(at, key: str) -> list[str]:
    return [trace.get("name", "") for trace in chart(at, key)["data"]]


@pytest.mark.long
def test_a_large_mix_from_the_finding_to_the_ports_of_one_pod(page):
    at = page("mix-32-pods", algorithm="best")
    sample = JOB_SAMPLES["mix-32-pods"]
    assert metric(at, NO_TURNS) == f"{sample.non_tdm_s:.0f} s"
    assert metric(at, DRAFT) == f"{sample.hill_climbing_s:.0f} s"
    best = solve(load_job_sample("mix-32-pods"), TdmSettings(algorithm="best"))
    assert metric(at, "Best of all methods") == f"{best.round_s:.0f} s"
    assert f"in {best.round_s:.0f} s instead of {sample.non_tdm_s:.0f} s" in words(at)
    assert "Stage 1 lasts" in words(at)
    said = " ".join(note["text"] for note in chart(at, "clock")["layout"]["annotations"])
    assert all(
        name in said for name in ("Best of all methods", "Hill climbing", "No time division")
    )

    every_ring = traces(at, "rings")
    ring = control(at, "jobs_ring")
    ring.set_value(ring.options[1]).run()
    assert len(traces(at, "rings")) < len(every_ring)
    assert any(name.startswith(ring.options[1]) for name in traces(at, "rings"))
    assert address(at)["jobs.ring"] == ring.options[1]

    before = chart(at, "link_matrix")
    control(at, "jobs_pod_group").set_value(3).run()
    assert chart(at, "link_matrix") != before
    assert address(at)["jobs.pod_group"] == "3"
    control(at, "jobs_stage").set_value("1.1").run()
    assert address(at)["jobs.stage"] == "1.1"

    at.session_state["jobs_pods"] = True
    at.run()
    whole = chart(at, "pod_gantt")["layout"]["xaxis"]["range"]
    assert whole == [0, pytest.approx(1000 * best.round_s)]
    assert {"push", "pull"} & set(traces(at, "pod_gantt"))
    control(at, "jobs_pod_stage").set_value(1).run()
    assert not at.exception
    low, high = chart(at, "pod_gantt")["layout"]["xaxis"]["range"]
    assert (low, high) == (
        pytest.approx(1000 * best.cycles[0].phases[1].start_s),
        pytest.approx(1000 * best.cycles[0].phases[1].end_s),
    )


def test_what_cannot_be_gained_is_said_so(page):
    at = page(reconfiguration_ms="100000", algorithm="hill-climbing")
    assert "gains nothing" in words(at) or "longer" in words(at)


def test_the_checker_stands_beside_the_answer(page):
    at = page()
    assert "independent checker" in words(at) and "✗" not in words(at)
    an_hour = next(m for m in at.metric if m.label == "Iterations per job and hour")
    round_s = float(metric(at, ALGORITHMS["all-train"].title).split()[0])
    assert (
        "2 iterations a round" in an_hour.delta
    )  # two rings: each trains before its push and before its pull
    assert float(an_hour.value) == pytest.approx(2 * 3600 / round_s, rel=0.01)
    assert "✓ eq. 6" in words(at)


def test_a_section_that_is_not_looked_at_is_not_drawn(page):
    at = page()

    def drawn() -> set[str]:
        return {e.proto.id.rpartition("-")[2] for e in at.get("plotly_chart")}

    assert drawn() == {"clock", "link_matrix", "rings"}
    control(at, "jobs_see").set_value("search").run()
    assert drawn() == {"clock", "climb"}
    assert address(at)["jobs.see"] == "search"
    control(at, "jobs_see").set_value("jobs").run()
    assert drawn() == {"clock"} and "iterations/h" in at.dataframe[-1].value.columns


@pytest.mark.long
def test_the_exact_model_proves_a_small_case_in_a_child_process(page):
    at = page("four-pods", algorithm="milp", reconfiguration_ms="0")
    assert metric(at, "Exact model") == "108 s"
    assert "✓ Proved shortest" in words(at)


def test_turns_may_fit_where_all_jobs_at_once_do_not(page):
    """With 3 ports, pod 1 cannot talk to all of its partners at once; in turns it can, with phases in which all train."""
    at = page("four-pods", ports="3", see="search")
    assert not at.error
    assert metric(at, NO_TURNS) == "none" and metric(at, DRAFT) == "none"
    assert metric(at, "All-train phases") == "146 s"
    assert "pod 1 has 3 ports and needs 5" in words(at)
    assert chart(at, "clock")["layout"]["annotations"][0]["text"] == "<b>All-train phases</b>"
    assert "How this round was found" in words(at)


def test_ports_too_few_for_one_job_are_infeasible_whatever_the_turns(page):
    at = page("four-pods", ports="2")
    assert "Infeasible" in words(at)
    assert len(at.error) == 1 and "\n" not in at.error[0].value
    assert (
        "pod 1 has 2 ports and needs 5" in at.error[0].value
        and "needs 3 ports for job 8B alone" in at.error[0].value
    )
    at.button(key="jobs_reset_here").click().run()
    assert not settled(at).error
    assert metric(at, NO_TURNS) == "119 s"


def test_an_algorithm_that_finds_no_turns_leaves_it_open_whether_others_do(page):
    at = page("four-pods", ports="3", algorithm="hill-climbing")
    assert "choose another algorithm" in at.error[0].value


def test_faster_ports_shorten_the_round_and_reset_brings_the_file_s_back(page):
    at = page()
    slow = float(metric(at, NO_TURNS).removesuffix(" s"))
    control(at, "jobs_port_gbps").set_value(200.0).run()
    assert float(metric(settled(at), NO_TURNS).removesuffix(" s")) < slow
    at.button(key="jobs_reset_sidebar").click().run()
    assert float(metric(settled(at), NO_TURNS).removesuffix(" s")) == slow


def test_a_link_restores_source_sliders_reading_and_algorithm(visit):
    at = settled(
        visit(
            JOBS,
            **{
                "jobs.source": "generator",
                "jobs.jobs": "32",
                "jobs.seed": "5",
                "jobs.ports": "24",
                "jobs.algorithm": "all-train",
                "jobs.eq3_literal": "yes",
            },
        )
    )
    jobs = deploy(SetUp(jobs=32, seed=5, ports_per_pod=24))
    assert "32 jobs" in words(at) and "24 ports of 150G" in words(at)
    assert metric(at, NO_TURNS) == f"{solve(jobs, TdmSettings('non-tdm')).round_s:.3g} s"
    assert control(at, "jobs_eq3_literal").value
    assert any(m.label == "All-train phases" for m in at.metric)
    assert address(at)["jobs.seed"] == "5"


def test_what_a_link_gets_wrong_is_told_and_left_out(visit):
    at = visit(
        JOBS,
        **{
            "jobs.sample": "nothing",
            "jobs.ports": "many",
            "jobs.algorithm": "guess",
            "jobs.colour": "red",
        },
    )
    assert len(at.warning) == 1
    assert all(
        part in at.warning[0].value
        for part in (
            "jobs.sample=nothing",
            "jobs.ports=many",
            "jobs.algorithm=guess",
            "jobs.colour=red",
        )
    )


def test_what_cannot_be_shared_is_one_line(visit):
    at = visit(JOBS, **{"jobs.sample": "overlap", "jobs.port_gbps": "0"})
    assert not at.exception
    assert len(at.error) == 1 and "port_gbps" in at.error[0].value and "\n" not in at.error[0].value


def test_an_own_file_is_shared_and_stays_on_this_machine(page):
    at = page()
    control(at, "jobs_source").set_value("upload").run()
    assert "bring a jobs file" in words(at) and "Look at a sample" in ways_on(at)
    at.file_uploader(key="up_jobs").upload("mine.jobs.json", b"{").run()
    assert not at.exception
    assert len(at.error) == 1 and "mine.jobs.json" in at.error[0].value
    at.file_uploader(key="up_jobs").upload(
        "mine.jobs.json", dump_jobs(deploy(SetUp(jobs=6, pod_groups=2, seed=1)))
    ).run()
    settled(at)
    assert not at.error
    assert "16 pods in 2 pod groups" in words(at)
    assert not any(key.startswith("jobs.") for key in address(at))


def test_task_graphs_become_jobs(visit):
    at = settled(
        visit(
            JOBS,
            **{
                "jobs.source": "graphs",
                "jobs.graphs": "blackboard,moe",
                "jobs.copies": "2",
                "jobs.algorithm": "all-train",
            },
        )
    )
    assert not at.error
    assert "4 jobs" in words(at)


def test_an_algorithm_that_refuses_the_size_says_so_and_the_draft_s_stays(visit):
    at = settled(
        visit(JOBS, **{"jobs.source": "generator", "jobs.jobs": "128", "jobs.algorithm": "milp"})
    )
    assert any("exact model" in warning.value for warning in at.warning)
    assert metric(at, "Exact model") == "…"


@pytest.mark.long
def test_a_study_is_computed_beside_the_page_and_kept_when_it_is_cancelled(page):
    at = page(see="study")
    assert control(at, "jobs_seeds").value == 5
    at.button(key="compute_study").click().run()
    wait_until(lambda: any("study_live" in e.proto.id for e in at.get("plotly_chart")), at.run)
    at.button(key="cancel_study").click().run()
    assert not at.exception
    assert "are kept" in at.warning[0].value
    assert at.button(key="compute_study").label.startswith("Compute the other")
    points = [trace for trace in chart(at, "gain_map")["data"] if trace.get("mode") == "markers"]
    assert all(ratio > 0 for trace in points for ratio in trace["x"])
    means = [
        trace for trace in chart(at, "study")["data"] if trace.get("mode") == "lines+markers+text"
    ]
    assert [trace["name"] for trace in means] == [
        "Hill climbing",
        "Best grouping",
        "All-train phases",
    ]


def test_choices_survive_a_visit_to_another_page(page):
    at = page(ports="10")
    at.switch_page("app.py").run()
    at.switch_page(JOBS).run()
    assert control(at, "jobs_ports").value == 10
    assert "10 ports of 100G" in words(settled(at))


@pytest.mark.long
def test_a_stopped_bound_is_not_begun_again_until_it_is_asked_for(page, monkeypatch):
    """The bound holds no solver's slot, ends with its setting, and begins again when the setting comes back."""
    begun, ended = threading.Event(), threading.Event()

    def never_done(_function, _round, stop):
        begun.set()
        while not stop():
            time.sleep(0.01)
        ended.set()
        raise WorkerDied("it was stopped")

    monkeypatch.setattr(search, "soon", lambda jobs: jobs.network.ports_per_pod == 4)
    monkeypatch.setattr(search, "call_in_worker", never_done)

    def bounding(at) -> bool:
        return any(button.key == "cancel_bound" for button in at.button)

    at = page(ports="4")
    control(at, "jobs_ports").set_value(6).run()
    assert begun.wait(20) and bounding(at.run())
    assert solver_places().free == solver_places().places
    control(at, "jobs_ports").set_value(8).run()
    assert ended.wait(20)
    begun.clear()
    ended.clear()
    control(at, "jobs_ports").set_value(6).run()
    assert begun.wait(20)
    at.button(key="cancel_bound").click().run()
    assert ended.wait(20)
    settled(at)
    begun.clear()
    at.run()
    assert not begun.is_set()
    at.button(key="jobs_bound").click().run()
    assert begun.wait(20)


def test_bounds_wait_in_a_fair_line_and_say_their_place(monkeypatch):
    """First come, first served; whoever gives up leaves the line."""
    places, served, told = SolverPlaces(1), [], []
    go = threading.Semaphore(0)

    def worked_out(_function, round_, stop):
        served.append(round_)
        assert go.acquire(timeout=PATIENCE_S)
        return round_

    monkeypatch.setattr(search, "soon", lambda _jobs: False)
    monkeypatch.setattr(search, "call_in_worker", worked_out)
    round_of = {name: SimpleNamespace(jobs=None, name=name) for name in "abc"}
    gives_up = {name: threading.Event() for name in "abc"}
    for before, name in enumerate(round_of):
        arguments = (round_of[name], places, name, gives_up[name].is_set, told.append)
        threading.Thread(target=search._bounded, args=arguments, daemon=True).start()
        wait_until(lambda: served and places.waiting == before)  # noqa: B023
    wait_until(lambda: any("second in line" in words for words in told))
    gives_up["c"].set()
    wait_until(lambda: places.waiting == 1)
    for _ in round_of:
        go.release()
    wait_until(lambda: len(served) == 2 and places.free == 1)
    assert [one.name for one in served] == ["a", "b"]


def test_a_solver_that_dies_is_answered_for_by_hill_climbing(monkeypatch):
    def dies(*_arguments, **_options):
        raise WorkerDied("exit code 7")

    monkeypatch.setattr(search, "call_in_worker", dies)
    jobs = load_job_sample("four-pods")
    climbed = solve(jobs, TdmSettings("hill-climbing"))
    answer = search.solve_in_worker(jobs, TdmSettings("milp"), never, lambda _point: None)
    assert (answer.algorithm, answer.stopped_by) == ("milp", "time_limit")
    assert answer.round_s == climbed.round_s
    assert "this is the round of hill climbing" in answer.message
