"""``rails`` from a script: published and hand-solved numbers, a list of windows as a file, one-line errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.rails.iteration import Window
from topox_core.rails.questions import BOTH, RUN, UNDISTURBED, Question, answer
from topox_core.rails.window_file import dump_windows_csv, dump_windows_json, load_windows


@pytest.fixture
def rails(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a subcommand with --json and return its status and its object (or what it says on the error stream)."""

    def run(*words: str) -> tuple[int, Any]:
        status = main(["rails", *words, "--json"])
        out, err = capsys.readouterr()
        return status, json.loads(out) if status == 0 else err.rstrip("\n")

    return run


class TestCount:
    def test_32_microbatches_all_forward_first_give_the_published_127_on_the_first_stage(
        self, rails
    ):
        status, found = rails(
            "count", "--stages", "16", "--microbatches", "32", "--schedule", "afab"
        )
        assert status == 0
        assert found["windows"] == [127, *[129] * 14, 127]
        assert found["formula"] == 127
        assert "reconstructed" in found["formula_note"]

    def test_1f1b_with_more_microbatches_than_stages_differs_from_the_formula(self, rails):
        found = rails("count", "--stages", "16", "--microbatches", "32")[1]
        assert (found["windows"][0], found["windows"][7], found["windows"][15]) == (95, 129, 65)


class TestDelay:
    def test_the_toy_case_of_one_short_and_one_long_window(self, rails):
        windows, delays = (
            ("--window-ms", "1.1", "--window-ms", "60"),
            ("--delay-ms", "10", "--delay-ms", "50"),
        )
        found = rails("delay", "--base-ms", "62241.6", *windows, *delays)[1]
        assert [(row["on_demand_ms"], row["provisioned_ms"]) for row in found["rows"]] == [
            pytest.approx((62261.6, 62250.5)),
            pytest.approx((62341.6, 62290.5)),
        ]
        assert (found["on_demand_ms"], found["provisioned_ms"]) == pytest.approx((62261.6, 62250.5))

    @pytest.mark.parametrize("fold", ["yes", "no"])
    def test_the_toy_preset_simulated_gives_the_authors_numbers(self, rails, fold):
        found = rails("delay", "--preset", "toy", "--delay-ms", "10", "--delay-ms", "50")[1]
        assert [(row["on_demand_ms"], row["provisioned_ms"]) for row in found["rows"]] == [
            pytest.approx((62261.6, 62250.5), abs=0.05),
            pytest.approx((62341.6, 62290.5), abs=0.05),
        ]
        once = rails("simulate", "toy", "--delay-ms", "50", "--fold", fold)[1]
        assert once["iteration_ms"] == pytest.approx(62290.5, abs=0.05)

    def test_the_slowest_switch_is_the_one_that_just_keeps_the_limit(self, rails):
        # Four windows of 5 ms in 100 ms: on demand 4 R <= 10, provisioned 4 (R - 5) <= 10.
        words = [word for _ in range(4) for word in ("--window-ms", "5")]
        found = rails(
            "delay", "--base-ms", "100", *words, "--delay-ms", "1", "--limit-percent", "10"
        )[1]
        assert found["slowest_switch_ms"]["on_demand"] == pytest.approx(2.5, rel=1e-3)
        assert found["slowest_switch_ms"]["provisioned"] == pytest.approx(7.5, rel=1e-3)

    def test_the_measured_list_stalls_by_hand_computed_sums(self, rails):
        found = rails("delay", "--measured", "--delay-ms", "25")[1]
        short = [0.45, 0.84, 1.73, 0.84, 2.05, 17.2]
        assert found["windows"] == 14
        assert found["provisioned_ms"] - found["base_ms"] == pytest.approx(
            sum(25 - one for one in short)
        )
        assert found["on_demand_ms"] - found["base_ms"] == pytest.approx(14 * 25)

    def test_windows_may_come_from_a_file(self, rails, tmp_path: Path):
        file = tmp_path / "mine.csv"
        file.write_text("length_ms;begin_ms\n2,5;10\n40;20\n")
        found = rails("delay", "--windows", str(file), "--base-ms", "80", "--delay-ms", "10")[1]
        assert found["provisioned_ms"] == pytest.approx(87.5)

    def test_a_job_is_simulated_with_each_delay(self, rails):
        found = rails(
            "delay", "--preset", "llama3-8b-perlmutter", "--delay-ms", "100", "--delay-ms", "10"
        )[1]
        assert found["base_ms"] == pytest.approx(10_200, abs=1)
        for row in found["rows"]:
            words = (
                "simulate",
                "llama3-8b-perlmutter",
                "--delay-ms",
                str(row["delay_ms"]),
                "--provisioning",
            )
            assert row["on_demand_ms"] == rails(*words, "off")[1]["iteration_ms"]
            assert row["provisioned_ms"] == rails(*words, "on")[1]["iteration_ms"]

    def test_an_execution_of_a_fabric_is_carried_by_one_rail(self, rails, tmp_path: Path):
        graph = str(tmp_path / "toy.taskgraph.json")
        beside = rails("graph", "toy", "--output", graph)[1]["cluster"]
        found = rails(
            "delay", "--execution", graph, beside, "--fabric", "ideal", "--delay-ms", "1000"
        )[1]
        assert found["windows"] is None
        assert found["base_ms"] == pytest.approx(62_241.6, rel=0.01)
        # Two changes in turn, pipeline to data parallel and back; ahead of the calls the first fits
        # into a window of seconds, the second has 1.1 ms.
        assert found["on_demand_ms"] == pytest.approx(found["base_ms"] + 2000)
        assert found["provisioned_ms"] == pytest.approx(found["base_ms"] + 1000 - 1.1)


def test_the_switches_join_as_many_gpus_as_published(rails):
    found = {one["key"]: one for one in rails("switches")[1]["switches"]}
    assert (found["piezo"]["reconfiguration_ms"], found["piezo"]["gpus"]) == (
        25,
        {"GB200": 20_736, "H200": 2_304},
    )
    assert len(found) == 7


def test_a_split_rail_says_what_it_takes_for_granted(capsys):
    words = [
        "rails",
        "simulate",
        "llama3.1-405b-16384",
        "--by-layer",
        "no",
        "--switch",
        "piezo",
        "--split",
    ]
    assert main(words) == 0
    line = next(
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("switches of a rail")
    )
    assert (
        "8; a rail split over several switches: the simulation takes circuits between any two"
        in line
    )


def test_another_model_in_a_preset_does_not_keep_its_name(rails, capsys):
    assert main(["rails", "simulate", "toy", "--set", "shape=llama3-70b"]) == 0
    assert "Toy: DP 2, PP 2, TP 2, changed" in capsys.readouterr().out


class TestSimulate:
    def test_the_paper_s_job_at_100_ms_grows_as_published(self, rails):
        words = ("simulate", "llama3-8b-perlmutter", "--delay-ms", "100", "--provisioning")
        found = {on: rails(*words, on)[1] for on in ("on", "off")}
        assert found["on"]["undisturbed_ms"] == pytest.approx(10_200, abs=1)
        assert 0.05 <= found["off"]["overhead"] <= 0.08
        assert 0.03 <= found["on"]["overhead"] <= 0.05
        assert found["on"]["share_above_1_ms"] > 0.75
        longest = max(found["on"]["windows"], key=lambda one: one["length_ms"])
        assert found["on"]["stall_ms"] == pytest.approx(
            found["on"]["iteration_ms"] - found["on"]["undisturbed_ms"]
        )
        assert longest["length_ms"] > 1000

    def test_windows_are_those_of_the_run_that_no_switch_disturbs(self, rails):
        quick, slow = (
            rails("simulate", "toy", "--delay-ms", delay)[1]["windows"] for delay in ("0", "500")
        )
        assert quick == slow

    def test_folded_and_unfolded_agree(self, rails):
        found = [
            rails("simulate", "llama3-8b-perlmutter", "--delay-ms", "20", "--fold", fold)[1]
            for fold in ("yes", "no")
        ]
        assert found[0]["iteration_ms"] == pytest.approx(found[1]["iteration_ms"])
        assert found[0]["reconfigurations"] == found[1]["reconfigurations"]

    def test_an_electrical_rail_never_stalls(self, rails):
        found = rails("simulate", "llama3-8b-perlmutter", "--delay-ms", "100", "--electrical")[1]
        assert (found["stall_ms"], found["reconfigurations"]) == (0, 0)

    def test_a_switch_brings_its_delay_and_says_how_many_a_rail_takes(self, rails):
        found = rails("simulate", "llama3-8b-perlmutter", "--switch", "piezo")[1]
        assert (found["delay_ms"], found["switches_per_rail"]) == (25, 1)

    def test_the_windows_it_writes_are_the_windows_it_reads(self, rails, tmp_path: Path):
        file = tmp_path / "w.windows.json"
        listed = rails("simulate", "llama3-8b-perlmutter", "--output", str(file))[1]["windows"]
        found = rails("windows", str(file))[1]
        assert [one["length_ms"] for one in found["list"]] == [one["length_ms"] for one in listed]
        assert found["share_above"] == pytest.approx(10 / 12)

    def test_a_job_on_a_rail_is_a_task_graph_for_every_fabric(self, rails, tmp_path: Path):
        graph = str(tmp_path / "toy.taskgraph.json")
        made = rails("graph", "toy", "--output", graph)[1]
        assert made["servers"] == 4
        found = rails("windows", graph, made["cluster"], "--fabric", "ideal")[1]
        assert found["windows"] > 0
        assert {one["after"] for one in found["list"]} <= {"pp", "dp"}


def test_large_models_on_many_gpus_are_advised_three_parallelisms(rails):
    found = rails("advise", "--parameters", "405e9", "--gpus", "16384")[1]
    assert found["strategies"] == ["TP, DP & PP"]
    assert [row["key"] for row in found["parallelisms"] if not row["on_rail"]] == ["tp", "tp_sp"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("count", "--stages", "0", "--microbatches", "4"), "--stages: must be at least 1"),
        (("delay", "--delay-ms", "5"), "--base-ms: is needed"),
        (("delay", "--base-ms", "10", "--delay-ms", "5"), "--window-ms: at least one window"),
        (
            ("delay", "--base-ms", "10", "--window-ms", "3", "--delay-ms", "-5"),
            "--delay-ms: must be 0 to",
        ),
        (("delay", "--measured", "--window-ms", "3", "--delay-ms", "5"), "cannot be given with"),
        (("simulate", "llama"), "PRESET: unknown preset"),
        (("simulate",), "PRESET: is needed"),
        (("simulate", "toy", "--set", "data=3"), "tensor x context x pipeline x data"),
        (("simulate", "toy", "--set", "colour=3"), "unknown key"),
        (("simulate", "toy", "--set", "data=many"), "data must be a whole number"),
        (("simulate", "toy", "--delay-ms", "-1"), "--delay-ms: must be 0 to"),
        (
            ("simulate", "llama3.1-405b-8192", "--switch", "sip"),
            "--switch: a rail of 1,024 servers needs 2,048 ports",
        ),
        (
            ("simulate", "toy", "--set", "pipeline=40", "--set", "gpus=160"),
            "at most the number of layers, 32",
        ),
        (("simulate", "toy", "--set", "shape=gpt"), "--set: shape: unknown model"),
        (("simulate", "toy", "--set", "title=mine"), "--set: title: unknown key"),
        (("simulate", "toy", "--nic-ports", "0"), "--nic-ports: must be at least 1"),
        (("simulate", "toy", "--limit-percent", "-1"), "--limit-percent: must be 0 to"),
        (
            ("simulate", "llama3-8b-perlmutter", "--set", "iteration_ms=1e300"),
            "iteration_ms: must be a number from 0.001 to 1e+09",
        ),
        (("delay", "--preset", "llama", "--delay-ms", "5"), "--preset: unknown preset"),
        (
            ("delay", "--preset", "toy", "--set", "data=3", "--delay-ms", "5"),
            "preset toy, field gpus: must be tensor x",
        ),
        (
            ("delay", "--preset", "toy", "--measured", "--delay-ms", "5"),
            "--preset: cannot be given with --measured",
        ),
        (
            ("delay", "--preset", "toy", "--base-ms", "5", "--delay-ms", "5"),
            "--base-ms: cannot be given with --preset",
        ),
        (("delay", "--measured", "--set", "data=3", "--delay-ms", "5"), "--set: changes a preset"),
        (
            ("delay", "--execution", "no.json", "such.json", "--delay-ms", "5"),
            "such.json: cannot be read",
        ),
        (
            ("windows", "a.json", "b.json", "--fabric", "wireless"),
            "--fabric: must be some of ideal",
        ),
        (("cost", "--gpus", "64", "--radix", "0"), "--radix: must be at least 1"),
        (("graph", "toy"), "--output: is needed"),
        (("windows", "no-such-file.csv"), "cannot be read"),
        (("advise", "--parameters", "0", "--gpus", "8"), "--parameters: must be a number above 0"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(rails, words, says):
    status, line = rails(*words)
    assert status == 2
    assert says in line
    assert "\n" not in line


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


class TestWindowFile:
    @given(st.lists(windows, min_size=1, max_size=8))
    def test_what_is_written_is_read_back(self, listed):
        whole = max(one.begin_ms + max(0.0, one.length_ms) for one in listed)
        found = load_windows(dump_windows_json("mine", whole, listed), "w.json")
        assert (found.windows, found.iteration_ms, found.name) == (tuple(listed), whole, "mine")
        assert load_windows(dump_windows_csv(listed), "w.csv").windows == tuple(listed)

    def test_a_list_of_lengths_alone_is_enough(self):
        found = load_windows(b"length_ms\n3\n-2\n5\n", "bare.csv")
        assert [one.length_ms for one in found.windows] == [3, -2, 5]
        assert (found.timed, found.iteration_ms, found.name) == (False, 8, "bare")

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"", "is empty"),
            (b"before,after\npp,dp\n", "needs a column length_ms"),
            (b"length_ms\n", "holds no window"),
            (b"length_ms\nfast\n", "row 2, field length_ms: must be a number (got 'fast')"),
            (b"length_ms,rank\n1,-1\n", "row 2, field rank: must be a finite number of at least 0"),
            (b"length_ms,colour\n1,2\n", "field colour: unknown column"),
            (
                b"length_ms,before\n1," + b"x" * 99 + b"\n",
                "field before: must be text of at most 80 characters",
            ),
            (b"length_ms,begin_ms\n1,2\n3,\n", "row 3, field begin_ms: is missing"),
            (b"length_ms\n1,2\n", "more cells than the first row names"),
            (b'{"format": "topox-windows", "version": 1, "windows": []}', "holds no window"),
            (
                b'{"format": "topox-windows", "version": 1, "windows": [{"length_ms": NaN}]}',
                "window 1, field length_ms",
            ),
            (
                b'{"format": "topox-windows", "version": 1, "iteration_ms": 2, "windows": [{"length_ms": 5}]}',
                "must be at least 5",
            ),
            (
                b'{"format": "topox-windows", "version": 9, "windows": [{"length_ms": 5}]}',
                "newer than this program",
            ),
            (b'{"format": "topox-taskgraph", "version": 1}', "this is a taskgraph file"),
            (b"\x00\xff", "not UTF-8"),
        ],
    )
    def test_a_bad_file_is_one_line(self, content, says):
        with pytest.raises(InputError) as refused:
            load_windows(content, "w.csv")
        assert says in str(refused.value)
        assert "\n" not in str(refused.value)


class TestQuestions:
    """A page asks the same through a child process, so questions must say no more than their answers depend on."""

    def test_a_question_that_differs_only_in_what_does_not_matter_is_the_same(self):
        from topox_core.rails.iteration import Rail
        from topox_core.rails.presets import PRESETS

        toy = PRESETS["toy"]
        slow, quick = Rail(reconfiguration_ms=9, provisioned=False), Rail(reconfiguration_ms=1)
        assert Question(UNDISTURBED, toy, slow).key == Question(UNDISTURBED, toy, quick, 5).key
        assert Question(BOTH, toy, slow, 5).key == Question(BOTH, toy, quick, 5).key
        assert Question(BOTH, toy, slow, 5).key != Question(BOTH, toy, slow, 6).key
        assert Question(RUN, toy, slow).key != Question(RUN, toy, quick).key

    def test_both_times_are_those_of_the_two_runs(self):
        from topox_core.rails.iteration import Rail
        from topox_core.rails.presets import PRESETS

        job = PRESETS["llama3-8b-perlmutter"]
        rail = Rail(nic_gbps=job.nic_gbps, reconfiguration_ms=40)
        runs = [answer(Question(RUN, job, replace(rail, provisioned=on))) for on in (False, True)]
        assert answer(Question(BOTH, job, rail, 40)) == pytest.approx(
            tuple(run.iteration_ms for run in runs)
        )


SAMPLE = ("sample_data/moe.taskgraph.json", "sample_data/moe.cluster.json")
FAT_TREES = {
    "the same cost": (),
    "full bandwidth": ("--fat-tree", "full"),
    "oversubscribed racks": ("--oversubscription", "4", "--servers-per-rack", "4"),
    "a NIC of its own": ("--equivalent-gbps", "75"),
}


@pytest.mark.parametrize("shape", FAT_TREES.values(), ids=FAT_TREES)
def test_a_rail_sees_the_fat_tree_that_compare_runs(rails, capsys, shape: tuple[str, ...]) -> None:
    root = Path(__file__).resolve().parents[3]
    files = [str(root / name) for name in SAMPLE]
    assert main(["compare", *files, "--fabrics", "fat_tree", *shape, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)["fabrics"]["fat_tree"]["iteration_ms"]
    fabric = ("--fabric", "fat_tree", *shape)
    assert rails("windows", *files, *fabric)[1]["iteration_ms"] == compared
    of_fabric = {
        name: rails("delay", "--execution", *files, *tree, "--delay-ms", "1")[1]["base_ms"]
        for name, tree in (("asked", fabric), ("ideal", ("--fabric", "ideal")))
    }
    assert of_fabric["asked"] != of_fabric["ideal"]


@pytest.mark.parametrize("fabric", ["static", "provisioned"])
def test_a_fabric_makes_the_choices_that_it_makes_in_compare(rails, capsys, fabric: str) -> None:
    root = Path(__file__).resolve().parents[3]
    files = [str(root / name) for name in SAMPLE]
    assert main(["compare", *files, "--fabrics", fabric, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)["fabrics"][fabric]["iteration_ms"]
    assert rails("windows", *files, "--fabric", fabric)[1]["iteration_ms"] == compared


def test_a_fat_tree_is_described_once(rails) -> None:
    root = Path(__file__).resolve().parents[3]
    files = [str(root / name) for name in SAMPLE]
    both = ("--fat-tree", "full", "--oversubscription", "2")
    status, said = rails("windows", *files, "--fabric", "fat_tree", *both)
    assert status == 2 and "--fat-tree" in said and "\n" not in said
