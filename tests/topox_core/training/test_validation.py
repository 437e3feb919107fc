"""Predicted against measured: how far the model may be from iterations that ran, and what files are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refusal import refusal
from topox_core.api import load_cluster, load_graph
from topox_core.io.task_graph_file import check_fits
from topox_core.training.iteration import iteration, pieces
from topox_core.training.job import JOBS, Job
from topox_core.training.machine import MACHINES, figures
from topox_core.training.measured.measurements import (
    CALIBRATION_FILE,
    FITTED,
    benchmark_rows,
    calibration_rows,
    megatron_rows,
    production_rows,
    read_measured,
    uncalibrated_rows,
)
from topox_core.training.measured.validation import (
    agreement,
    by_model,
    off_on,
    predicted,
    rank_correlation,
    tried_on,
    trust,
)

LINES = CALIBRATION_FILE.read_text(encoding="utf-8").splitlines()


def test_the_rows_that_two_numbers_were_fitted_to() -> None:
    found = predicted(calibration_rows())
    whole = agreement(found)
    assert whole.rows == 55 and whole.mean <= 0.061
    assert whole.rank_correlation is not None and whole.rank_correlation >= 0.97
    assert whole.within == {5: 38, 10: 44, 20: 52, 25: 52}
    models = {model: one.rank_correlation for model, one in by_model(found).items()}
    expected = {"3.6": 0.99, "18.4": 0.81, "39.1": 0.70, "175": 0.97}
    assert models == pytest.approx(expected, abs=0.005)
    assert {one.measured.row: one.contradicts for one in found if one.contradicts} == {
        26: 33,
        33: 26,
    }


def test_the_published_table_with_nothing_refitted() -> None:
    found = predicted(megatron_rows())
    whole = agreement(found)
    assert whole.mean <= 0.031 and whole.rank_correlation == 1.0
    errors = [5.0, -0.5, 3.9, 1.4, 3.9, 0.6, 4.6, 4.2]
    assert [100 * one.error for one in found] == pytest.approx(errors, abs=0.06)


WRONG_ROWS = (
    (lambda row: [], "t.csv: holds no row"),
    (lambda row: [*row, "1"], "row 2: has more cells than the first row names (12)"),
    (
        lambda row: ["3600", *row[1:]],
        "row 2, field Parameters (billion): must be near the 3.55 billion",
    ),
    (
        lambda row: [*row[:-1], "3.5665"],
        "row 2, field iteration time (ms): must be in ms (got 3.5665",
    ),
    (
        lambda row: [*row[:-1], "3566.5 ms"],
        "field iteration time (ms): must be a number above 0, without a unit",
    ),
    (lambda row: [*row[:-1], ""], "row 2, field iteration time (ms): is empty"),
    (lambda row: row[:-1], "row 2, field iteration time (ms): is empty"),
    (
        lambda row: [row[0], "65", *row[2:]],
        "field # GPUs: must be tensor x data x pipeline = 64 (got 65)",
    ),
    (lambda row: [*row[:2], "513", *row[3:]], "field global batch: must be a multiple of"),
    (
        lambda row: [*row[:5], "31", *row[6:]],
        "row 2, field attention heads: must divide hidden, 3,072",
    ),
    (lambda row: [*row[:4], "3072.5", *row[5:]], "field hidden size: must be a whole number"),
)
WRONG_COLUMNS = (
    (LINES[0].replace("(ms)", "(s)"), "first row, field iteration time (s): unknown column"),
    (LINES[0].replace(",micro batch", ""), "first row, field micro batch: is missing"),
    (LINES[0].replace("micro batch", "global batch"), "global batch: is the name of two columns"),
    ("a,b,c", "first row: must name the columns"),
)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        *(([LINES[0], ",".join(change(LINES[1].split(",")))], said) for change, said in WRONG_ROWS),
        *(([header, *LINES[1:3]], said) for header, said in WRONG_COLUMNS),
    ],
)
def test_a_table_that_cannot_be_is_refused_by_row_and_column(table: list[str], said: str) -> None:
    data = "\n".join(table).encode()
    assert said in refusal(lambda: predicted(read_measured(data, "t.csv"), "t.csv"))


def test_columns_may_stand_in_any_order() -> None:
    turned = "\n".join(";".join(reversed(line.split(","))) for line in LINES[:4])
    assert read_measured(turned.encode(), "t.csv") == calibration_rows()[:3]


def test_equal_values_share_their_rank() -> None:
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 5.0])) == pytest.approx(
        np.sqrt(0.75)
    )
    assert rank_correlation(np.array([1.0, 2.0]), np.array([3.0, 3.0])) is None


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_the_pieces_of_an_iteration_add_up_to_it(job: Job) -> None:
    twice = 2 * iteration(job).total_ms
    for one in (iteration(job), iteration(job.changed(schedule__iteration_ms=twice))):
        found = pieces(one)
        assert sum(piece.exposed_ms for piece in found) == pytest.approx(one.total_ms, rel=1e-9)
        assert all(piece.exposed_ms >= 0 and piece.hidden_ms >= 0 for piece in found)


def test_a_job_goes_out_and_comes_back_by_command(ask: Any, tmp_path: Path) -> None:
    def told(*command: str) -> Any:
        answer = ask("iteration", *command)
        assert answer.pop("manifest")["command"] == f"iteration {command[0]}"
        return answer

    file, graph = str(tmp_path / "mine.job.json"), str(tmp_path / "mine.taskgraph.json")
    change = ["--set", "plan.sequence_parallel=true", "--set", "schedule.recompute=full"]
    shown = told("show", "llama3-8b", *change, "--output", file)
    assert told("show", file) == shown
    assert told("show", "llama3-8b", "--graph", graph)["iteration_ms"] == pytest.approx(555.937)
    check_fits(load_graph(graph), load_cluster(graph.replace("taskgraph", "cluster")))
    validated = told("validate", str(CALIBRATION_FILE))
    assert (validated["rows"], set(validated["by_model"])) == (55, {"3.6", "18.4", "39.1", "175"})


def test_rows_that_are_far_off_say_why_and_no_others() -> None:
    rows = predicted(calibration_rows())
    # Eleven beyond 10 %, and row 33, which row 26 contradicts.
    assert sum(bool(row.note) for row in rows) == 12
    assert all((abs(row.error) > 0.1) <= bool(row.note) for row in rows)


def test_what_is_far_off_is_said_in_numbers() -> None:
    rows = {one.measured.row: one for one in predicted(calibration_rows())}
    assert rows[27].note == (
        "10.1 s longer than predicted, with 0.605 s of communication and 4.77 s of bubble in the "
        "prediction; 1 other row of the model with TP 2: -25.0%"
    )
    assert rows[10].note.startswith("0.621 s shorter than predicted")
    assert rows[26].note.startswith("contradicts row 33; 3.47 s longer than predicted")
    # 26188.8 and 27228.4 ms with TP 2 are each other's only likeness.
    assert rows[42].alike == 1 and rows[42].alike_error == rows[27].error


def test_production_runs_are_predicted_by_a_factor_that_half_of_them_did_not_see() -> None:
    """MT-NLG 530B, fitted to; BLOOM, LLaMA 65B and GPT-3, held out; with the A100's benchmark figures beside."""
    production, benchmark = predicted(production_rows()), predicted(benchmark_rows())
    assert [round(100 * row.error) for row in benchmark] == [-19, -20, -22, -21, -28, -16]
    assert [round(100 * row.error) for row in production] == [1, 0, -3, -2, -13, 2]
    assert agreement(production[:FITTED]).mean <= 0.014
    assert agreement(production[FITTED:]).mean <= 0.058
    # The factor is the one that is best for the rows it was fitted to, to a hundredth.
    errors = []
    for longer in (1.24, 1.25, 1.26):
        shares = {
            f"machine__{name}": getattr(MACHINES["a100"], name) / longer
            for name in ("matmul_share", "memory_share", "inside_share")
        }
        rows = [replace(row, job=row.job.changed(**shares)) for row in benchmark_rows()[:FITTED]]
        errors.append(agreement(predicted(rows)).mean)
    assert errors[1] == min(errors)


def test_a_machine_says_how_far_predictions_on_it_have_been_from_what_ran() -> None:
    a100, production = MACHINES["a100"], MACHINES["a100-production"]
    assert "19 to 39 % longer" in trust(a100)
    assert "off by 2.81 % in the median and 38.7 % at most" in trust(a100).replace("\u00a0", " ")
    # What nobody calibrated has the errors of the four rows below, whatever cards the job chose.
    slower = replace(MACHINES["h100"], nic_gbps=100.0)
    told = trust(slower).replace("\u00a0", " ")
    assert "All 4 published runs on H100 were faster than predicted" in told
    assert "too long by 12.2 % in the median and 47.8 % at most" in told
    rows = predicted(uncalibrated_rows())
    assert tried_on(slower) == agreement(rows) and all(row.error > 0 for row in rows)
    assert tried_on(replace(a100, tflops=300.0)) is None
    errors, bias, scatter = off_on(slower)
    assert errors.tolist() == [row.error for row in rows]
    assert bias == pytest.approx(agreement(rows).median)
    assert 0 < scatter < bias, "closer to each other than to what ran"
    assert not len(off_on(replace(a100, tflops=300.0))[0])
    # A job that came by a link has the figures under another name.
    assert "2, 2 and 13 % off" in trust(production) == trust(replace(production, name="mine"))
    assert trust(replace(production, memory_share=0.5)) == trust(replace(a100, tflops=300.0))
    longer = [
        row.measured.measured_ms / row.predicted_ms - 1 for row in predicted(benchmark_rows())
    ]
    assert [round(100 * min(longer)), round(100 * max(longer))] == [19, 39]
    sources = {one.field: one.source for one in figures(production)}
    assert "over 1.25" in sources["matmul_share"] and "Calculon" in sources["network_share"]


def test_where_nothing_was_calibrated_errors_are_a_twentieth_in_the_right_order_and_half_in_the_wrong_one() -> (
    None
):
    """Llama 3.1 405B on 8,192 and 16,384 H100, interleaved."""
    rows = predicted(uncalibrated_rows())
    derived = [round(row.measured.measured_ms / 1e3, 2) for row in rows]
    assert derived == [11.6, 11.6, 6.23, 6.23]
    # The reference's 13.9 s is of passes that are not interleaved.
    assert rows[0].predicted_ms / 1e3 == pytest.approx(13.9, abs=0.05)
    assert [round(row.error, 2) for row in rows] == [0.2, 0.01, 0.48, 0.05]
