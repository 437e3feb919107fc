"""Leaderboards: what counts is what the checker or the core computes, whatever a file claims."""

from __future__ import annotations

import json
import random

import pytest

from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.fabrics.scheduled import schedule
from topox_core.labs.leaderboard import (
    BOARDS,
    Entry,
    board_table,
    hand_instance,
    load_entry,
    ranked,
    shared_jobs,
)
from topox_core.labs.lesson import LESSON_SETTINGS
from topox_core.tdm.model.round import TdmSettings
from topox_core.tdm.solve import solve

HAND, SHARED = BOARDS["six-tasks"], BOARDS["time-division"]


def planned() -> dict[str, float]:
    """Start times of the list schedule of the class instance."""
    result = schedule(*hand_instance(), LESSON_SETTINGS)
    assert result.execution is not None
    graph = hand_instance()[0]
    starts = {
        result.execution.graph.ids[at]: float(start)
        for at, start in enumerate(result.execution.start_ms)
    }
    return {task.id: starts[task.id] for task in graph.tasks}


def grouping(name: str) -> dict[str, str]:
    answer = solve(shared_jobs(), TdmSettings(algorithm=name))
    return {
        job.id: "AB"[group] for job, group in zip(shared_jobs().jobs, answer.group, strict=True)
    }


def file_of(board: str, value: object, alias: str = "ada", **more: object) -> bytes:
    field = BOARDS[board].field
    record = {"format": "topox-entry", "version": 1, "board": board, "alias": alias, field: value}
    return json.dumps({**record, **more}).encode()


def test_the_first_board_is_the_24_tasks_whose_best_is_56_ms() -> None:
    """Proved by an exact engine when the lab was made: nobody can be below 56 ms."""
    graph, cluster = hand_instance()
    assert len(graph.tasks) == 24
    assert sum(task.size_bytes is not None for task in graph.tasks) == 12
    assert (cluster.servers, cluster.ports_per_server, cluster.switches) == (4, 1, 1)
    assert all(task.duration_ms is None or task.duration_ms % 1 == 0 for task in graph.tasks)
    assert HAND.best_known() == 56


def test_the_second_board_is_the_forty_jobs_of_a_sample() -> None:
    assert len(shared_jobs()) == 40
    assert SHARED.checked(
        dict.fromkeys([job.id for job in shared_jobs().jobs], "A")
    ) == pytest.approx(254.9, abs=0.05)
    assert SHARED.checked(grouping("hill-climbing")) == pytest.approx(171.8, abs=0.05)
    assert SHARED.best_known() == pytest.approx(126.3, abs=0.05)


def test_a_claimed_makespan_is_not_looked_at() -> None:
    starts = planned()
    late = {name: start + 4 for name, start in starts.items()}
    entries = [
        load_entry(file_of("six-tasks", late, "boaster", makespan_ms=1), "a.entry.json"),
        load_entry(file_of("six-tasks", starts, "modest", makespan_ms=999), "b.entry.json"),
    ]
    lines = ranked(HAND, entries)
    assert [(one.rank, one.alias, one.time) for one in lines] == [
        (1, "modest", 56),
        (2, "boaster", 60),
    ]
    assert lines[1].gap == pytest.approx(4 / 56)


def test_what_is_not_feasible_has_no_rank_and_its_first_broken_equation() -> None:
    starts = planned()
    broken = {**starts, max(starts, key=starts.__getitem__): 0.0}
    half = {**starts, min(starts, key=starts.__getitem__): 0.5}
    gone = dict(list(starts.items())[1:])
    entries = [
        Entry("six-tasks", name, one) for name, one in zip("bhg", (broken, half, gone), strict=True)
    ]
    lines = ranked(HAND, [*entries, Entry("six-tasks", "right", starts)])
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
    lines = ranked(SHARED, [Entry("time-division", "x", value)])
    assert lines[0].rank == 0 and said in lines[0].problem


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
    (tmp_path / "a.entry.json").write_bytes(file_of("six-tasks", planned(), makespan_ms=1))
    out = tmp_path / "board.csv"
    command = ["lab", "board", str(tmp_path), "--lab", "six-tasks", "--csv", str(out)]
    assert main(command) == 0
    assert "ada" in capsys.readouterr().out and b"1,ada,56.0" in out.read_bytes()
    (tmp_path / "b.entry.json").write_text("[]")
    assert main([*command, "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["entries"][0]["time"] == 56 and "b.entry.json" in captured.err
    assert main(["lab", "board", str(tmp_path), "--lab", "windows"]) == 2


def test_an_alias_is_no_formula_in_the_table() -> None:
    lines = ranked(HAND, [Entry("six-tasks", "=1+1", planned())])
    assert board_table(lines, "ms").decode().splitlines() == [
        "rank,alias,time_ms,gap,checked",
        "1,'=1+1,56.0,0.0,yes",
    ]
