"""Sharing: samples, the draft's set-up, task graphs and own files; rounds side by side, the search, its bound, the study, links."""

import threading
import time
from dataclasses import replace

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import (
    address,
    bring,
    buttons,
    chart,
    charts,
    choose,
    control,
    metric,
    press,
    the_error,
    turn_to,
    unbroken,
    ways_on,
    words,
)
from topox_core.runs.executor import WorkerDied
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import TdmSettings
from topox_core.tdm.model.jobs_file import JOB_SAMPLES, dump_jobs, load_job_sample
from topox_ui.jobs import first_screen, solving
from topox_ui.jobs.state import JobsState
from topox_ui.jobs.view import changed
from topox_ui.runs.slots import SolverPlaces, solver_places

JOBS = "Sharing"
NO_TURNS, DRAFT = "All at once", "Hill climbing"


def settled(at):
    """Run the page again until no search goes on."""
    going_on = {"cancel_round", "cancel_bound"}
    wait_until(lambda: bool(at.exception) or not going_on & buttons(at), at.run)
    return unbroken(at)


@pytest.fixture
def page(visit):
    """Open the page on a sample (or as a link says) and wait for its answer, by an algorithm that needs no child process."""

    def opened(sample: str = "overlap", **query: str):
        keys = {"sample": sample, "algorithm": "all-train", **query}
        return settled(visit(JOBS, **{f"jobs.{key}": value for key, value in keys.items()}))

    return opened


TURNS = "Both jobs, which first compute and then send, take 20 s an iteration by turns, no longer than alone (20 s)"


def test_the_page_begins_with_two_jobs_and_says_what_sharing_is(visit):
    text = words(settled(visit(JOBS)))
    assert f"{TURNS}; all at once 30 s. Nothing shorter is possible." in text
    assert "green sends for 10 s while blue computes for 10 s; then they change places" in text
    assert (
        "All at once they share the links and send for 20 s, all in step as in the paper; out of"
        in text
    )
    assert "Both stages last 10 s each: " in text and "It sends, then trains." in text
    assert "pull" not in text, "an iteration of an all-to-all has none"
    assert (
        "each pod with 2 one-way ports of 100 Gbit/s" in text and "any grouping, any rings" in text
    )


def test_a_loaded_job_shares_the_fabric_with_itself_or_a_sample_and_stands_beside_its_time_alone(
    visit,
):
    at = settled(visit(JOBS, sample="race", **{"jobs.algorithm": "all-train"}))
    said = words(at)
    assert "race, twice · 4 servers" in said
    assert "In this model an iteration of your job alone takes 91.1 ms" in said
    assert "On Schedule, where both overlap, it takes 70.4 ms" in said
    assert "Computing, 69.1 ms, includes waits of tasks for each other; Schedule's 45.3 ms" in said
    assert "What it sends counts as one all-to-all of 4 servers. A pod is a server with 16" in said
    assert "any rings" not in said and "rings" not in charts(at), "all-to-alls run on none"
    assert "Gain over many jobs" not in control(at, "jobs_see").options, "none of the job"
    assert (
        "A second copy on the same ports may cost nothing: by Schedule’s plan the busiest" in said
    )
    assert "carry the data of two in 49.8 ms, and an iteration takes 70.4 ms. All below is" in said
    assert "then sends, over 16 one-way ports of each server. Then an iteration takes" in said
    assert "an iteration takes 91.1 ms by turns, 113 ms all at once, and 91.1 ms alone" in said
    assert "#2 sends for" in said and "while #1 computes" in said, "copies of one name"
    assert "jobs_physical_ring" not in {one.key for one in at.toggle}
    table = next(one.value for one in at.dataframe if "longer by" in one.value)
    assert table["longer by"].tolist() == ["0\u00a0%", "0\u00a0%"]
    assert [one.replace("\u00a0", " ") for one in table["alone"]] == ["91.1 ms", "91.1 ms"]
    said = words(settled(choose(at, jobs_copies=3)))
    assert "race, 3 times" in said
    assert "make an iteration of Schedule’s plan 6 % to 200 % longer: at least 74.7 ms" in said
    assert "at most 211 ms, one after the other, in place of 70.4 ms. All below is another" in said
    assert "the out-ports of server 3 carry data for 24.9 ms of 70.4 ms; 3 copies at" in said
    slower = words(settled(choose(at, jobs_port_gbps=40.0)))
    assert "in place of 70.4" not in slower and "each pod with 16 one-way ports of 40" in slower
    at = settled(press(at, "jobs_reset_sidebar"))
    at = settled(choose(at, jobs_partner="blackboard"))
    said = words(at)
    assert "race and blackboard" in said and "your job" in said
    assert address(at).items() >= {"sample": "race", "jobs.partner": "blackboard"}.items()
    assert TURNS in words(settled(choose(at, jobs_source="sample")))
    assert "race and blackboard" in words(settled(choose(at, jobs_source="job")))


def test_a_job_that_sends_nothing_gets_one_line(visit):
    graph = """{"format": "topox-taskgraph", "version": 1, "name": "silent", "tasks": [
        {"id": "a", "kind": "forward", "server": 0, "duration_ms": 1.0, "dependencies": []}]}"""
    at = bring(visit(way="files"), "up_graph", "silent.json", graph.encode())
    assert "sends nothing over the network" in the_error(turn_to(at, JOBS))
    assert TURNS in words(settled(choose(at, jobs_source="sample")))


@pytest.mark.long
def test_a_large_mix_from_the_finding_to_the_ports_of_one_pod(page):
    at = page("mix-32-pods", algorithm="best")
    sample = JOB_SAMPLES["mix-32-pods"]
    assert metric(at, NO_TURNS) == f"{sample.non_tdm_s:.0f} s"
    assert metric(at, DRAFT) == f"{sample.hill_climbing_s:.0f} s"
    best = solve(load_job_sample("mix-32-pods"), TdmSettings(algorithm="best"))
    assert f"take {best.round_s:.0f} s a round by turns" in words(at)
    assert f"all at once {sample.non_tdm_s:.0f} s" in words(at)

    ring = control(at, "jobs_ring").options[1]
    choose(at, jobs_ring=ring, jobs_pod_group=3, jobs_stage="1.1")
    chosen = {"jobs.ring": ring, "jobs.pod_group": "3", "jobs.stage": "1.1"}
    assert address(at).items() >= chosen.items()

    at.session_state["jobs_pods"] = True
    choose(at.run(), jobs_pod_stage=1)
    phase = best.cycles[0].phases[1]
    shown = chart(at, "pod_gantt")["layout"]["xaxis"]["range"]
    assert shown == pytest.approx([1000 * phase.start_s, 1000 * phase.end_s])


def test_the_checker_stands_beside_the_answer_and_a_section_not_looked_at_is_not_drawn(page):
    at = page()
    assert "independent checker" in words(at) and "✗" not in words(at) and "✓ eq. 6" in words(at)
    assert charts(at).keys() == {"clock", "rings"}, "all links take as long: no matrix"
    at.session_state["jobs_links"] = True
    assert charts(at.run()).keys() == {"clock", "link_matrix", "rings"}
    assert charts(choose(at, jobs_see="search")).keys() == {"clock"}
    assert "One move, from 30 s to 20 s." in words(at), "no picture of a single move"


def test_turns_may_fit_where_all_jobs_at_once_do_not(page):
    """With 3 ports pod 1 cannot talk to all of its partners at once; in turns it can; 2 are too few for one job."""
    at = page("four-pods", ports="3", see="search")
    assert not at.error
    assert metric(at, NO_TURNS) == "none" and metric(at, DRAFT) == "none"
    assert metric(at, "All-train phases") == "146 s"
    assert "choose another algorithm" in the_error(
        page("four-pods", ports="3", algorithm="hill-climbing")
    )
    at = page("four-pods", ports="2")
    assert "needs 3 ports for job 8B alone" in the_error(at)
    at = settled(press(at, "jobs_reset_here"))
    assert not at.error and metric(at, NO_TURNS) == "119 s"


def test_faster_ports_shorten_the_round_reset_brings_the_file_s_back_and_no_visit_loses_them(page):
    def seconds(at) -> float:
        return float(metric(settled(at), NO_TURNS).removesuffix(" s"))

    at = page()
    slow = seconds(at)
    assert seconds(choose(at, jobs_port_gbps=200.0)) < slow
    turn_to(at, "Home")
    turn_to(at, JOBS)
    assert control(at, "jobs_port_gbps").value == 200.0 and seconds(at) < slow
    assert seconds(press(at, "jobs_reset_sidebar")) == slow


@pytest.mark.parametrize("change", [{"ports": 3}, {"port_gbps": 40.0}])
def test_the_way_into_a_pod_keeps_its_share_of_what_leaves_it(change):
    jobs = load_job_sample("overlap")
    before = jobs.network
    after = changed(jobs, JobsState(**change, reconfiguration_ms=9.0))
    share = after.network.tor_gbps / (after.network.ports_per_pod * after.network.port_gbps)
    assert share == pytest.approx(before.tor_gbps / (before.ports_per_pod * before.port_gbps))
    assert after.network.reconfiguration_ms == 9.0


def test_a_link_restores_source_sliders_reading_and_algorithm(page):
    at = page(source="generator", jobs="32", seed="5", ports="24", eq3_literal="yes")
    jobs = deploy(SetUp(jobs=32, seed=5, ports_per_pod=24))
    assert metric(at, NO_TURNS) == f"{solve(jobs, TdmSettings('non-tdm')).round_s:.3g} s"
    assert control(at, "jobs_eq3_literal").value and metric(at, "All-train phases")
    assert address(at)["jobs.seed"] == "5"
    # An algorithm that refuses the size says so, and the draft's round stays.
    at = page(source="generator", jobs="128", algorithm="milp")
    assert "never longer than that of “Best grouping”: the exact shortest" in words(at)
    assert any("exact model" in warning.value for warning in at.warning)
    assert metric(at, "Exact model") == "…"


def test_an_own_file_is_shared_and_stays_on_this_machine_and_graphs_become_jobs(page):
    at = choose(page(), jobs_source="upload")
    assert "load a jobs file" in words(at) and "Open a sample" in ways_on(at)
    assert "mine.jobs.json" in the_error(bring(at, "up_jobs", "mine.jobs.json", b"{"))
    jobs = deploy(SetUp(jobs=6, pod_groups=2, seed=1))
    at = settled(bring(at, "up_jobs", "mine.jobs.json", dump_jobs(jobs)))
    assert not at.error and "16 pods in 2 pod groups" in words(at)
    assert not any(key.startswith("jobs.") for key in address(at))
    at = settled(choose(at, jobs_source="graphs"))
    assert address(at)["jobs.source"] == "graphs"
    at = page(source="graphs", graphs="blackboard,race", copies="2")
    assert not at.error and "4 jobs" in words(at)


@pytest.mark.long
def test_a_study_is_computed_beside_the_page_and_kept_when_it_is_cancelled(page):
    at = page(see="study")
    press(at, "compute_study")
    wait_until(lambda: any("study_live" in key for key in charts(at)), at.run)
    press(at, "cancel_study")
    assert "are kept" in at.warning[0].value
    assert at.button(key="compute_study").label.startswith("Compute the other")


@pytest.mark.long
def test_a_stopped_bound_is_not_begun_again_until_it_is_asked_for(page, monkeypatch):
    """The bound holds no solver's slot."""
    begun, ended = threading.Event(), threading.Event()

    def never_done(_function, _round, stop, on_step):
        begun.set()
        while not stop():
            time.sleep(0.01)
        ended.set()
        raise WorkerDied("it was stopped")

    monkeypatch.setattr(solving, "soon", lambda jobs: jobs.network.ports_per_pod == 4)
    monkeypatch.setattr("topox_ui.runs.owner.call_in_worker", never_done)

    at = page(ports="4")
    choose(at, jobs_ports=6)
    assert begun.wait(20) and "cancel_bound" in buttons(at.run())
    assert solver_places().free == solver_places().places
    at.button(key="cancel_bound").click().run()
    assert ended.wait(20)
    settled(at)
    begun.clear()
    at.run()
    assert not begun.is_set()
    at.button(key="jobs_bound").click().run()
    assert begun.wait(20)


def test_a_bound_waits_in_a_line_of_its_own_and_leaves_when_it_is_given_up(visit, monkeypatch):
    places = SolverPlaces(1)
    bound = replace(solving.BOUND, places=lambda: places)
    for module in (solving, first_screen):
        monkeypatch.setattr(module, "BOUND", bound)
    monkeypatch.setattr(solving, "soon", lambda _jobs: False)
    for name in ("another", "a third"):
        places.claim(name)
    at = visit(JOBS, **{"jobs.algorithm": "hill-climbing"})
    (bar,) = at.get("progress")
    assert "computing its lower bound: waiting for a solver place, second in line" in bar.proto.text
    assert (places.waiting, solver_places().free) == (2, solver_places().places)
    press(at, "cancel_bound")
    wait_until(lambda: places.waiting == 1)


def test_two_jobs_that_overlap_are_said_to_cost_each_other_what_their_ports_need(visit):
    """Before what turns cost in the page's model, and with what Schedule says of the busiest ports (recorded: 74.9 of 106 ms)."""
    said = words(settled(visit(JOBS, sample="moe", **{"jobs.algorithm": "all-train"})))
    assert (
        "A second copy on the same ports makes an iteration of Schedule’s plan 41 % to 100 % longer: at least 150 ms, at most "
        "212 ms, one after the other, in place of 106 ms." in said
    )
    assert (
        "a job first computes, then sends, over 16 one-way ports of each server. Then an iteration takes 157 ms by turns, "
        "234 ms all at once, and 156 ms alone." in said
    )
    assert "the out-ports of server 6 carry data for 74.9 ms of 106 ms; two at the same" in said
    assert "By any plan an iteration of each takes at least 137 ms." in said
    assert "server 6 are busy for 74.9 ms of the 106 ms" in words(visit("Schedule", sample="moe"))


def test_what_ports_allow_is_said_once_the_plan_for_a_what_if_is_known(visit):
    at = settled(
        visit(JOBS, sample="race", reconfiguration_ms="7", **{"jobs.algorithm": "all-train"})
    )
    wait_until(lambda: "on the same ports" in words(at), at.run)
    alone = metric(visit("Schedule", sample="race", reconfiguration_ms="7"), "Iteration time")
    said = "the busiest ports carry the data of two in 49.8 ms, and an"
    assert f"{said} iteration takes {alone}." in words(at)
    assert f"24.9 ms of {alone}, dark time not counted." in words(at)


def test_what_forwarding_servers_carry_of_a_plan_is_counted_for_copies_of_it(visit):
    """Where circuits stay, as at 15 ms, Schedule's plan has its ports busier than the bytes of the job alone."""
    at = settled(
        visit(JOBS, sample="moe", reconfiguration_ms="15", **{"jobs.algorithm": "all-train"})
    )
    wait_until(lambda: "on the same ports" in words(at), at.run)
    assert "may cost nothing" not in words(at)
    assert "carry their own and forwarded data for" in words(at)
    assert "at full speed; two at the same pace need twice" in words(at)
