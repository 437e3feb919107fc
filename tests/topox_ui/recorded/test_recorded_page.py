"""Your trace: files in, the finding, the same step at any speed, labels, checks, and the ways on."""

import gzip
import json
import re
import subprocess
import sys

import pytest

from tests.patience import wait_until
from tests.real_inputs import ROOT
from tests.topox_core.traces.made import (
    Call,
    Kernel,
    Op,
    Style,
    Wait,
    fsdp,
    pipeline_and_data,
    recordings,
    simulate,
)
from tests.topox_core.traces.reading_back import imported
from tests.topox_ui.conftest import (
    address,
    charts,
    choose,
    metric,
    spoken,
    the_error,
    turn_to,
    unbroken,
    words,
)
from topox_core.io.cluster_file import load_cluster
from topox_core.io.limits import Limits
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.io.task_graph_file import load_graph
from topox_core.rails.window_lengths import load_windows
from topox_core.runs.run import never
from topox_core.traces.run_graph import at_speed, replay_ms
from topox_ui.recorded.reading import EXAMPLE, SCRIPT, read_files

PAGE = "Your trace"
EXAMPLE_FILES = {
    EXAMPLE.format(rank): (SAMPLE_FOLDER / EXAMPLE.format(rank)).read_bytes() for rank in range(4)
}

FOUR_RANKS = recordings(fsdp(3, 4), 100.0, Style(steps=2))


@pytest.fixture
def page(visit):
    """Open the page with choices of a link."""
    return lambda **choices: visit(PAGE, **{f"recorded.{k}": v for k, v in choices.items()})


def bring(at, files: dict[str, bytes]):
    """Put files into the box, as a visitor who chooses several at once."""
    box = at.file_uploader(key="up_recording")
    given = [(name, data, "application/json") for name, data in files.items()]
    at = unbroken(box.set_value(given).run())
    wait_until(lambda: not any(one.label == "Cancel" for one in at.button), at.run)
    return at


def press(at, label: str):
    """Click the button with a label."""
    return unbroken(next(one for one in at.button if one.label == label).click().run())


def replayed(at, files: dict[str, bytes], **settings) -> bool:
    """Return whether the page says what the command says of the same step at 400 Gbit/s."""
    known = imported(files, **settings).report["replay_ms"]["400_gbps"]
    return metric(at, "At 400 Gbit/s") == spoken(known)


def test_the_empty_page_says_what_to_record_and_how(page):
    at = page()
    assert at.code[0].value.strip() == SCRIPT.strip() and not at.metric
    text = (ROOT / "docs" / "recorded-runs.md").read_text(encoding="utf-8")
    assert re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0] == SCRIPT


def test_the_recorded_speed_is_said_and_its_half_and_multiples_are_a_click_away(page):
    at = page(example="yes")
    # The made-up run was recorded at 100 Gbit/s.
    assert "Recorded at about 100 Gbit/s per server" in words(at)
    # The headline promises no more than the checks of its own recording allow.
    assert "of it (inferred from the recording: up to 8 ms too high or 6.4 ms too low)" in words(at)
    recorded = metric(at, "Recorded step")
    for label, gbps in (("half", 50), ("the same", 100), ("twice", 200), ("four times", 400)):
        press(at, f"{label}: {gbps}G")
        assert (metric(at, f"At {gbps} Gbit/s") == recorded) == (gbps == 100)
        assert address(at).get("recorded.nic_gbps", "400") == str(gbps)


def test_the_slider_replays_at_once_and_at_the_recorded_speed_gives_the_recorded_time(page):
    at = choose(page(example="yes"), recorded_nic_gbps=100.0)
    # The made-up run was recorded at 100 Gbit/s, and its replay is exact.
    assert metric(at, "At 100 Gbit/s") == metric(at, "Recorded step")
    choose(at, recorded_nic_gbps=10.0)
    slow = replay_ms(imported(EXAMPLE_FILES).run, at_speed(10.0))
    assert f"At 10 Gbit/s it would take {spoken(slow)}" in words(at)
    assert "Step 103 takes" in words(choose(at, recorded_step=103))
    assert (address(at)["recorded.nic_gbps"], address(at)["recorded.step"]) == ("10", "103")
    assert "Step 101 takes" in words(page(example="yes", step="77"))


def test_several_files_at_once_are_one_run_and_a_bad_one_costs_a_line(page):
    packed = {f"{name}.gz": gzip.compress(data) for name, data in FOUR_RANKS.items()}
    at = bring(page(), packed | {"nonsense.json": b"{}"})
    assert "4 ranks read of 4." in words(at) and "nonsense.json" in the_error(at)
    assert address(at) == {}, "an upload leaves no trace in an address that may be shared"
    before = metric(at, "Recorded step")
    at = bring(at, {"also.json": b"[1, 2", "run_rank1.json": FOUR_RANKS["run_rank1.json"]})
    assert "twice: 1" in words(at) and len(at.error) == 2
    turn_to(at, "Home")
    turn_to(at, PAGE)
    assert metric(at, "Recorded step") == before, "kept for the session"
    assert "Bring a recording of your own job" in words(press(at, "Read another run"))


def test_a_second_file_of_a_rank_is_left_out_with_a_line_wherever_the_first_came_from():
    content = FOUR_RANKS["run_rank1.json"]
    for known, names in (({1: "first"}, ["b"]), ({}, ["first", "b"])):
        files = [(name, content) for name in names]
        found = read_files(known, files, never, lambda _step: None)
        assert [one.file for one in found.recordings] == names[:-1]
        assert found.twice == {1} and found.lines == (
            "b: rank 1 was already read from first: this file is left out",
        )


def test_ranks_come_one_after_the_other_and_more_than_eight_are_folded(page):
    files = recordings(fsdp(2, 12), 100.0, Style(steps=2))
    names = list(files)
    at = bring(page(), {name: files[name] for name in names[:2]})
    assert "2 ranks read of 12; absent: 2 to 11." in words(at)
    at = bring(at, {name: files[name] for name in names[2:]})
    assert "12 ranks read of 12." in words(at)
    assert "ranks 0 to 7" in charts(at)["recorded_lanes"].alt
    choose(at, recorded_first_rank=8)
    assert "ranks 8 to 11" in charts(at)["recorded_lanes"].alt


def test_files_of_two_runs_are_told_apart_in_one_line_and_can_be_put_away(page):
    other = recordings(pipeline_and_data(2), 100.0, Style(steps=2))
    mixed = {name: (FOUR_RANKS if k < 2 else other)[name] for k, name in enumerate(FOUR_RANKS)}
    at = bring(page(), mixed)
    assert "not of one run" in words(at) and the_error(at)
    assert "Bring a recording" in words(press(at, "Read another run"))


def test_packed_files_are_read_beside_the_page_whatever_they_unpack_to(page, monkeypatch):
    def never_here(name: str, content: bytes):
        raise AssertionError(f"{name} was read by the page")

    monkeypatch.setattr("topox_ui.recorded.reading._read", never_here)
    at = bring(page(), {f"{name}.gz": gzip.compress(data) for name, data in FOUR_RANKS.items()})
    assert metric(at, "Recorded step") == spoken(imported(FOUR_RANKS).run.recorded_ms)


# In a process that has freed nothing which it could take again.
MEMORY = """
import json
from topox_core.io import resource_limits
from topox_core.runs.run import never
from topox_ui.recorded.reading import read_files, read_within_limits
resource_limits.MAX_READING_BYTES = 1 << 20
files = (("run_rank0.json", json.dumps({"traceEvents": [{"name": "x" * 60_000_000}]}).encode()),)
print(*read_files({}, files, never, lambda _step: None, read=read_within_limits).lines)
"""


def test_a_file_that_asks_for_more_memory_than_its_reading_may_take_costs_its_line():
    said = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    ).stdout
    assert said == "run_rank0.json: needs more than the 1.0 MB that reading it may take\n"


def test_more_than_a_browser_brings_is_refused_before_it_is_read(page, monkeypatch):
    monkeypatch.setattr("topox_ui.recorded.reading.RECORDINGS_IN_BROWSER_BYTES", 100_000)
    at = bring(page(), recordings(fsdp(8, 8), 100.0))
    assert "more than the 0 MB that the page takes at once" in the_error(at)


def test_a_file_that_unpacks_to_more_than_a_browser_may_bring_costs_its_line(monkeypatch):
    monkeypatch.setattr("topox_ui.recorded.reading.RECORDING_IN_BROWSER", Limits(1 << 20, 100))
    bomb = gzip.compress(FOUR_RANKS["run_rank0.json"].ljust(2 << 20))
    files = (("run_rank0.json.gz", bomb), ("run_rank1.json", FOUR_RANKS["run_rank1.json"]))
    found = read_files({}, files, never, lambda _step: None)
    assert [one.rank for one in found.recordings] == [1]
    assert found.lines == (
        "run_rank0.json.gz: is more than the 1.0 MB unpacked that a trace may have",
    )


def test_one_rank_stands_for_all_only_when_asked_and_never_of_a_pipeline(page):
    mine = {"run_rank2.json": FOUR_RANKS["run_rank2.json"]}
    at = bring(page(), mine)
    assert "Only one rank was read" in words(at)
    assert "One rank stands for all." in words(choose(at, recorded_symmetry=True))
    assert replayed(at, mine, symmetry=True)
    stage = recordings(pipeline_and_data(2), 100.0, Style(steps=2))
    at = bring(press(at, "Read another run"), {"run_rank0.json": stage["run_rank0.json"]})
    assert "cannot stand for a pipeline" in at.warning[0].value


def test_unknown_sizes_leave_steps_and_lanes_and_ask_for_a_speed(page):
    files = recordings(fsdp(3, 4), 100.0, Style(steps=2, metadata="none"))
    at = bring(page(), files)
    assert metric(at, "At 400 Gbit/s") == "–"
    assert "record with record_shapes=True" in at.warning[0].value
    assert next(one for one in at.button if one.label == "Schedule it").disabled
    assert replayed(choose(at, recorded_assume_gbps=100.0), files, assume_gbps=100.0)


def test_what_is_saved_is_what_the_command_writes_and_a_label_goes_into_it(page, downloads):
    at = page(example="yes", nic_gbps="200")
    known = imported(EXAMPLE_FILES, nic_gbps=200.0)
    assert load_graph(downloads["Task graph (JSON)"](), "x").tasks == known.graph.tasks
    assert load_cluster(downloads["Cluster (JSON)"](), "x").port_gbps == known.cluster.port_gbps
    report = json.loads(downloads["Report (JSON)"]())
    assert report["replay_ms"] == known.report["replay_ms"]
    of_json, of_csv = (
        load_windows(downloads[f"Windows ({form})"](), f"x.{form.lower()}")
        for form in ("JSON", "CSV")
    )
    assert len(of_json.windows) == len(of_csv.windows)
    box = next(one for one in at.selectbox if one.label == "Label of group 5")
    told = {one.options[0] for one in at.selectbox if one.label.startswith("Label of group")}
    assert told == {"dp, by name", "pp, by its calls", "no label"}
    assert "tensor exchange (tp)" in words(unbroken(box.set_value("tp").run()))
    graph = load_graph(downloads["Task graph (JSON)"](), "x")
    labels = {task.parallelism for task in graph.tasks if task.kind == "all_reduce"}
    assert labels == {"dp", "tp"}


@pytest.mark.parametrize(
    ("button", "says"),
    [
        ("Schedule it", "Schedule · recorded step 101"),
        ("Compare fabrics", "recorded step 10175 tasks · 4 servers"),
        ("Windows on Rails", "10 windows"),
    ],
)
def test_the_step_becomes_the_job_of_all_pages(page, button, says):
    assert says in words(press(page(example="yes"), button)).replace(" 75 ", "75 ")


def late_rank(rank: int) -> list[Op]:
    """Rank 1 computes 2 ms longer than the others before each of two exchanges, rank 2 1 ms before a third."""
    late_us = {1: (2_000.0, 2_000.0, 0.0), 2: (0.0, 0.0, 1_000.0)}.get(rank, (0.0,) * 3)
    ops = [
        op
        for k in range(3)
        for op in (
            Kernel(1_000.0 + late_us[k]),
            Call(f"g{k}", "all_reduce", (0, 1, 2), 10_000_000, 20, "0", "ddp"),
            Wait(f"g{k}"),
        )
    ]
    return [*ops, Kernel(100.0, "update")]


def test_the_rank_that_others_wait_for_is_named(page):
    at = bring(page(), recordings({rank: late_rank(rank) for rank in range(3)}, 100.0))
    assert "Rank 1 comes last at 2 of 3 collectives. Others wait up to 2 ms for it" in words(at)


def test_the_example_is_small_and_its_replay_is_its_known_truth():
    assert sum(len(data) for data in EXAMPLE_FILES.values()) < 200_000
    run, program = imported(EXAMPLE_FILES).run, pipeline_and_data(6)
    for gbps in (10.0, 100.0, 1600.0):
        two, one = (simulate(program, gbps, steps).end_us for steps in (2, 1))
        assert replay_ms(run, at_speed(gbps)) == pytest.approx((two - one) / 1000, rel=5e-4)
