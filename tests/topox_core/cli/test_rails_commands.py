"""``rails`` from a script: published and hand-solved numbers, a list of windows as a file."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples, long_after
from tests.refusal import refusal
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.rails.delay import BOTH, RUN, UNDISTURBED, Question, answer
from topox_core.rails.iteration import Rail, Window
from topox_core.rails.presets import PRESETS
from topox_core.rails.window_lengths import dump_windows_csv, dump_windows_json, load_windows

PAPER_JOB = "rails simulate llama3-8b-perlmutter"


def test_32_microbatches_all_forward_first_give_the_published_127_on_the_first_stage(answered):
    found = answered("rails count --stages 16 --microbatches 32 --schedule afab")
    assert (found["windows"], found["formula"]) == ([127, *[129] * 14, 127], 127)


@pytest.mark.parametrize(
    "job", ["--base-ms 62241.6 --window-ms 1.1 --window-ms 60", "--preset toy"]
)
def test_one_short_and_one_long_window_give_the_authors_numbers(answered, job):
    found = answered("rails delay --delay-ms 10 --delay-ms 50", job)
    assert [(row["on_demand_ms"], row["provisioned_ms"]) for row in found["rows"]] == [
        pytest.approx((62261.6, 62250.5), abs=0.05),
        pytest.approx((62341.6, 62290.5), abs=0.05),
    ]


def test_the_slowest_switch_is_the_one_that_just_keeps_the_limit(answered):
    # Four windows of 5 ms in 100 ms: on demand 4 R <= 10, provisioned 4 (R - 5) <= 10.
    windows = "--window-ms 5 " * 4
    found = answered("rails delay --base-ms 100 --delay-ms 1 --limit-percent 10", windows)
    slowest = {"on_demand": 2.5, "provisioned": 7.5}
    assert found["slowest_switch_ms"] == pytest.approx(slowest, rel=1e-3)


def test_the_link_start_up_of_a_nic_leaves_that_much_less_to_the_slowest_switch(answered, topox):
    asked = f"{PAPER_JOB} --provisioning off --link-up-ms 20"
    slowest_ms = answered(asked, "--limit-percent 5")["slowest_switch_ms"]
    kept = answered(asked, f"--delay-ms {slowest_ms}")
    assert kept["overhead"] == pytest.approx(0.05, rel=1e-3)
    status, _, line = topox("rails simulate toy --limit-percent 5 --link-up-ms 60000")
    assert status == 2 and line.endswith("with any switch: the link start-up alone takes longer\n")


def test_windows_may_come_from_a_file(answered, folder):
    (folder / "mine.csv").write_text("length_ms;begin_ms\n2,5;10\n40;20\n")
    found = answered("rails delay --windows mine.csv --base-ms 80 --delay-ms 10")
    assert found["provisioned_ms"] == pytest.approx(87.5)


def test_an_execution_of_a_fabric_is_carried_by_one_rail(answered):
    beside = answered("rails graph toy --output toy.taskgraph.json")["cluster"]
    found = answered(
        f"rails delay --execution toy.taskgraph.json {beside} --fabric ideal --delay-ms 1000"
    )
    assert found["base_ms"] == pytest.approx(62_241.6, rel=0.01)
    # Two changes in turn, pipeline to data parallel and back; ahead of the calls the first fits
    # into a window of seconds, the second has 1.1 ms.
    assert found["on_demand_ms"] == pytest.approx(found["base_ms"] + 2000)
    assert found["provisioned_ms"] == pytest.approx(found["base_ms"] + 1000 - 1.1)


def test_the_windows_it_writes_are_the_windows_it_reads(answered):
    made = answered(PAPER_JOB, "--switch piezo --output w.windows.json")
    assert (made["delay_ms"], made["switches_per_rail"]) == (25, 1)
    found = answered("rails windows w.windows.json")["list"]
    assert [one["length_ms"] for one in made["windows"]] == [one["length_ms"] for one in found]


def test_a_window_that_is_exactly_as_long_as_the_delay_is_long_enough(answered):
    # The host's launch of a pass, a window of 1.7 ms, lies before three passes of one stage or the other.
    assert answered(PAPER_JOB, "--delay-ms 1.7")["share_above_delay"] == pytest.approx(10 / 12)


def test_the_median_of_two_windows_lies_between_them(answered, folder):
    (folder / "two.csv").write_text("length_ms\n-1\n5\n")
    assert answered("rails windows two.csv")["median_ms"] == 2


lengths = st.floats(-1e6, 1e9, allow_nan=False)
windows = st.builds(
    Window,
    rank=st.integers(0, 9),
    rail=st.integers(0, 9),
    before=st.sampled_from(["", "dp", "pp", "ep"]),
    after=st.sampled_from(["fsdp", "pp", "cp"]),
    operation=st.sampled_from(["", "send", "all_gather"]),
    begin_ms=st.floats(0, 1e9),
    length_ms=lengths,
    size_bytes=st.floats(0, 1e15),
)


@examples(60)
@given(st.lists(windows, min_size=1, max_size=8))
def test_windows_that_are_written_are_read_back(listed):
    whole = max(one.begin_ms + max(0.0, one.length_ms) for one in listed)
    found = load_windows(dump_windows_json("mine", whole, listed), "w.json")
    assert (found.windows, found.iteration_ms, found.name) == (tuple(listed), whole, "mine")
    assert load_windows(dump_windows_csv(listed), "w.csv").windows == tuple(listed)
    lengths_alone = load_windows(b"length_ms\n3\n-2\n5\n", "bare.csv")
    assert [one.length_ms for one in lengths_alone.windows] == [3, -2, 5]
    assert (lengths_alone.timed, lengths_alone.iteration_ms) == (False, 8)


HEAD = b'{"format": "topox-windows", "version": 1, '


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"before,after\npp,dp\n", "first row, field length_ms: is missing"),
        (b"length_ms\n", "holds no window"),
        (b"length_ms\nfast\n", "row 2, field length_ms: must be a number (got 'fast')"),
        (b"length_ms,rank\n1,-1\n", "row 2, field rank: must be from 0 to 10,000,000 (got -1)"),
        (b"length_ms,colour\n1,2\n", "field colour: unknown column"),
        (
            b"length_ms,before\n1," + b"x" * 99 + b"\n",
            "field before: must be printable text of at most 80 characters",
        ),
        (b"length_ms,rail\n1,0.5\n", "row 2, field rail: must be a whole number (got 0.5)"),
        (HEAD + b'"name": 3, "windows": [{"length_ms": 5}]}', "field name: must be text in quotes"),
        (HEAD + b'"windows": [7]}', "window 1: must be an object in braces (got 7)"),
        (b"length_ms,begin_ms\n1,2\n3,\n", "row 3, field begin_ms: is missing"),
        (b"length_ms\n1,2\n", "more cells than the first row names"),
        (HEAD + b'"windows": []}', "holds no window"),
        (HEAD + b'"windows": [{"length_ms": NaN}]}', "window 1, field length_ms"),
        (HEAD + b'"iteration_ms": 2, "windows": [{"length_ms": 5}]}', "must be at least 5"),
        (
            HEAD.replace(b"1", b"9") + b'"windows": [{"length_ms": 5}]}',
            "newer than this program",
        ),
        (b'{"format": "topox-taskgraph", "version": 1}', "this is a taskgraph file"),
        (b"\x00\xff", "not UTF-8"),
    ],
)
def test_a_bad_list_of_windows_is_one_line(content, says):
    assert says in refusal(load_windows, content, "w.csv")


def test_a_question_that_differs_only_in_what_does_not_matter_is_the_same():
    toy = PRESETS["toy"]
    slow, quick = Rail(reconfiguration_ms=9, provisioned=False), Rail(reconfiguration_ms=1)
    assert Question(UNDISTURBED, toy, slow).key == Question(UNDISTURBED, toy, quick, 5).key
    assert Question(BOTH, toy, slow, 5).key == Question(BOTH, toy, quick, 5).key
    assert Question(BOTH, toy, slow, 5).key != Question(BOTH, toy, slow, 6).key
    assert Question(RUN, toy, slow).key != Question(RUN, toy, quick).key


def test_both_times_are_those_of_the_two_runs():
    job = PRESETS["llama3-8b-perlmutter"]
    rail = Rail(nic_gbps=job.machine.nic_gbps, reconfiguration_ms=40)
    runs = [answer(Question(RUN, job, replace(rail, provisioned=on))) for on in (False, True)]
    times = tuple(run.iteration_ms for run in runs)
    assert answer(Question(BOTH, job, rail, 40)) == pytest.approx(times)


FABRICS = [
    "fat_tree --oversubscription 4 --servers-per-rack 4",
    "provisioned",
    "static",
    "fat_tree",
    "fat_tree --fat-tree full",
    "fat_tree --equivalent-gbps 75",
]


@pytest.mark.parametrize("fabric", long_after(2, FABRICS))
def test_a_rail_sees_the_fabric_that_compare_runs(answered: Any, fabric: str) -> None:
    files = f"{SAMPLE_FOLDER}/moe.taskgraph.json {SAMPLE_FOLDER}/moe.cluster.json"
    compared = answered("compare", files, "--fabrics", fabric)["fabrics"]
    (time,) = (one["iteration_ms"] for one in compared.values())
    assert answered("rails windows", files, "--fabric", fabric)["iteration_ms"] == time
