"""Leaderboards: what counts is what the checker or the core computes, whatever a file claims."""

import json
import random

import pytest

from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.fabrics.scheduled import schedule
from topox_core.labs.lab import LESSON_SETTINGS
from topox_core.labs.leaderboard import (
    BOARDS,
    Entry,
    hand_instance,
    load_entry,
    ranked,
    shared_jobs,
)
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.model.round import TdmSettings

HAND, SHARED = BOARDS["six-tasks"], BOARDS["time-division"]


def planned() -> dict[str, float]:
    """Start times of the list schedule of the class instance."""
    graph, cluster = hand_instance()
    execution = schedule(graph, cluster, LESSON_SETTINGS).execution
    starts = dict(zip(execution.graph.ids, map(float, execution.start_ms), strict=True))
    return {task.id: starts[task.id] for task in graph.tasks}


def grouping(name: str) -> dict[str, str]:
    groups = solve(shared_jobs(), TdmSettings(algorithm=name)).group
    return {job.id: "AB"[group] for job, group in zip(shared_jobs().jobs, groups, strict=True)}


def file_of(board: str, value: object, alias: str = "ada", **more: object) -> bytes:
    entry = {"format": "topox-entry", "version": 1, "board": board, "alias": alias}
    return json.dumps({**entry, BOARDS[board].field: value, **more}).encode()


def test_the_boards_are_those_that_were_solved_when_the_lab_was_made() -> None:
    """An exact engine proved that nobody can be below 56 ms on the first."""
    assert HAND.best_known() == 56
    in_one = dict.fromkeys([job.id for job in shared_jobs().jobs], "A")
    times = [SHARED.checked(in_one), SHARED.checked(grouping("hill-climbing")), SHARED.best_known()]
    assert times == pytest.approx([254.9, 171.8, 126.3], abs=0.05)


def test_a_claimed_makespan_is_not_looked_at() -> None:
    starts = planned()
    late = {name: start + 4 for name, start in starts.items()}
    files = (
        file_of("six-tasks", late, "boaster", makespan_ms=1),
        file_of("six-tasks", starts, "modest", makespan_ms=999),
    )
    lines = ranked(HAND, [load_entry(file, "a.entry.json") for file in files])
    found = [(one.rank, one.alias, one.time, one.gap) for one in lines]
    assert found == [(1, "modest", 56, 0), (2, "boaster", 60, pytest.approx(4 / 56))]


def test_what_is_not_feasible_has_no_rank_and_its_first_broken_equation() -> None:
    starts = planned()
    first, last = (pick(starts, key=starts.__getitem__) for pick in (min, max))
    wrong = ({**starts, last: 0.0}, {**starts, first: 0.5}, dict(list(starts.items())[1:]))
    entries = [Entry("six-tasks", str(number), one) for number, one in enumerate((starts, *wrong))]
    lines = ranked(HAND, entries)
    assert [one.rank for one in lines] == [1, 0, 0, 0]
    assert all("eq." in one.problem for one in lines[1:])


def test_equal_times_share_a_rank_and_of_an_alias_the_best_counts() -> None:
    best, all_a = grouping("hill-climbing"), dict.fromkeys(grouping("hill-climbing"), "A")
    mirror = {name: {"A": "B", "B": "A"}[group] for name, group in best.items()}
    entries = [
        Entry("time-division", "x", all_a),
        Entry("time-division", "x", best),
        Entry("time-division", "y", mirror),
        Entry("time-division", "z", all_a),
        Entry("six-tasks", "elsewhere", {}),
    ]
    random.Random(1).shuffle(entries)
    lines = ranked(SHARED, entries)
    assert [(one.rank, one.alias) for one in lines] == [(1, "x"), (1, "y"), (3, "z")]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"j0-8B": "C"}, "must be A or B"),
        ({"nobody": "A"}, "unknown job"),
        ({"j0-8B": "A"}, "has no group"),
    ],
)
def test_a_grouping_names_every_job_and_no_other(value: dict, said: str) -> None:
    (line,) = ranked(SHARED, [Entry("time-division", "x", value)])
    assert line.rank == 0 and said in line.problem


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "JSON"),
        (file_of("six-tasks", {}), "field starts_ms"),
        (file_of("six-tasks", {"a": 1}, alias=""), "field alias"),
        (file_of("six-tasks", {"a": 1}, alias="x" * 21), "field alias"),
        (file_of("six-tasks", {"a": 1}, name="Ada Lovelace"), "unknown key"),
        (
            file_of("six-tasks", {"a": 1}).replace(b"six-tasks", b"seven-tasks"),
            "unknown leaderboard",
        ),
        (file_of("six-tasks", {"a": 1}).replace(b"topox-entry", b"topox-lab"), "format"),
    ],
)
def test_a_file_that_is_no_entry_gets_one_line(data: bytes, said: str) -> None:
    with pytest.raises(InputError) as error:
        load_entry(data, "x.entry.json")
    assert said in str(error.value) and "\n" not in str(error.value)


def test_the_command_ranks_a_folder(tmp_path, capsys) -> None:
    (tmp_path / "a.entry.json").write_bytes(file_of("six-tasks", planned(), "=1+1"))
    out = tmp_path / "board.csv"
    command = ["lab", "board", str(tmp_path), "--lab", "six-tasks", "--csv", str(out)]
    assert main(command) == 0
    assert "\n1,'=1+1,56.0,0.0,yes" in out.read_text()  # no formula
    capsys.readouterr()
    (tmp_path / "b.entry.json").write_text("[]")
    assert main([*command, "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["entries"][0]["time"] == 56 and "b.entry.json" in captured.err
    assert main(["lab", "board", str(tmp_path), "--lab", "windows"]) == 2
