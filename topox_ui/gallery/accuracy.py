"""Predictions against what was measured, published or simulated elsewhere, what is not modelled, and each iteration that ran."""

from functools import cache

import streamlit as st

from topox_core.figures.labs.predictions import (
    MeasuredSet,
    error_dots,
    names_of,
    predicted_against_measured,
)
from topox_core.figures.palette import Theme
from topox_core.papers.accuracy import NOT_MODELLED, Kind, as_record, kinds
from topox_core.papers.rows import VERDICTS, judged
from topox_core.text.numbers import NBSP, percent, plural
from topox_core.training.machine import MACHINES
from topox_core.training.measured.measurements import (
    FITTED,
    benchmark_rows,
    calibration_rows,
    megatron_rows,
    production_rows,
    read_measured,
    uncalibrated_rows,
)
from topox_core.training.measured.validation import (
    Agreement,
    Compared,
    agreement,
    by_model,
    predicted,
    trust,
)
from topox_ui.shell.charts import (
    Content,
    chart,
    chart_title,
    escape,
    file_box,
    frame,
    headline,
    html_table,
    quiet,
    write_html,
)
from topox_ui.state.session import Lasting

# Which kinds the headline speaks of: nothing was fitted to them.
ITERATIONS = ("megatron", "uncalibrated")
SIMULATED = ("collectives", "samples")  # beside two simulators

COLUMNS = ("prediction, against what", "median", "90 %", "worst")


@cache
def _kinds() -> tuple[Kind, ...]:
    return tuple(kinds())


def draw(theme: Theme) -> None:
    """Draw the finding, a dot for each comparison, a row for each kind, every comparison, and what is not modelled."""
    with st.spinner("Computing some 300 predictions: a few seconds, once on this server"):
        found = _kinds()
    by_name = {one.name: one for one in found}
    iterations, others = (by_name[one] for one in ITERATIONS)
    collectives, whole = (
        max(one.most for one in found if one.name.startswith(name)) for name in SIMULATED
    )
    headline(
        "Papers · accuracy",
        f"Predicted iterations are off by <b>{_off(iterations.share(50))}</b> in the median on A100 "
        f"({plural(iterations.count, 'run')}) and <b>{_off(others.share(50))}</b> on H100 ({plural(others.count, 'run')}, "
        f"worst {_off(others.most)}), nothing fitted; no measured run on optical switches was at hand. Beside two "
        f"simulators collectives are at most {_off(collectives)} off, whole iterations {_off(whole)}.",
    )
    worst = max((one for one in found if one.worst), key=lambda one: one.most)
    chart(
        error_dots(found, theme),
        "accuracy_dots",
        f"{sum(one.count for one in found)} comparisons in {len(found)} kinds: {', '.join(names_of(found))}. "
        f"Furthest off is {worst.worst and worst.worst.subject}: {_off(worst.most)}.",
        lambda: [{"kind": one.name, **row} for one in found for row in as_record(one)["rows"]],
        "Every comparison",
        title=(
            "How far off",
            "a dot is one comparison, the bar their median; hollow: held by a test",
        ),
    )
    write_html(
        html_table(COLUMNS, map(_row_of_kind, names_of(found), found), "fits", row_heads=True)
    )
    quiet(
        "The largest errors are of published tables whose set-up is printed in part; Tables and figures gives the reason of each row: "
        f"{by_name['cards'].count} of those judged there have a printed number. "
        "Simulators differ from a packet network here where one message at a time goes first: the order is theirs."
    )
    chart_title("What is not modelled", "no figure here says anything about it")
    write_html(
        "<ul>"
        + "".join(
            f"<li><b>{escape(what)}</b>: {escape(words)}.</li>"
            for what, words in NOT_MODELLED.items()
        )
        + "</ul>"
    )


def _row_of_kind(name: str, kind: Kind) -> list[str]:
    """Return a kind as a row: its name wraps, so that a narrow window has room for the numbers."""
    said = f"{plural(kind.count, 'comparison')}; {escape(kind.fitted)}"
    errors = map(_off, (kind.share(50), kind.share(90), kind.most))
    return [f"{escape(name)} <small>{said}</small>", *errors]


def _off(share: float | None) -> str:
    return "–" if share is None else percent(share)


TITLE = "Measured iterations"
_OWN = Lasting[MeasuredSet]("own_measurements")
MEANINGFUL = 3  # rows of a rank correlation
# As vTrain and Calculon print their own errors on the same rows.
_OTHERS = "vTrain itself reports 14.7 % on its several-node rows, Calculon 3.65 % on Table 5."


@cache
def _published() -> tuple[MeasuredSet, MeasuredSet]:
    """Return the two sets that come with this program, predicted."""
    return (
        MeasuredSet("vTrain, fitted to", "calibration", predicted(calibration_rows())),
        MeasuredSet("Megatron’s Table 5", "table", predicted(megatron_rows())),
    )


def measured_card(theme: Theme) -> None:
    """Draw the answer, the scatter, what was fitted, the table of errors and of rows, and the box for a file."""
    fitted, table = _published()
    own = _OWN.get()
    sets = [fitted, table] if own is None else [fitted, own, table]
    tested, calibrated = own or table, agreement(fitted.rows)
    of_test = agreement(tested.rows)
    headline(
        "Papers · measured iterations",
        f"Predicted iteration times are off by <b>{_percent(of_test.mean)}</b> on average on "
        f"{of_test.rows} rows of {escape(tested.name)} that were not used for fitting, and by "
        f"{_percent(calibrated.mean)} on {calibrated.rows} rows that two numbers were fitted to.",
    )
    quiet(_OTHERS)
    rows = [row for one in sets for row in one.rows]
    worst = max(rows, key=lambda row: abs(row.error))
    chart(
        predicted_against_measured(sets, theme),
        "measured_scatter",
        f"{len(rows)} measured iterations and their predictions; furthest off is "
        f"{worst.measured.job.plan.words}: {_percent(abs(worst.error))}.",
        lambda: [_row(one.name, row) for one in sets for row in one.rows],
        "Every row",
        title=(
            "Predicted against measured",
            "on the line: predicted exactly; band: 10 %; hollow: rows used for fitting",
        ),
    )
    write_html(
        '<p class="note">Two numbers, the shares of the peak that products and memory reach, were fitted to the '
        f"{calibrated.rows} hollow rows. Table 5 was seen when it was decided to leave the time of the host out; "
        "nothing was fitted to it. The rank correlation over all rows is mostly the difference between model "
        "sizes: inside one size the predicted order of plans is less sure.</p>"
    )
    frame(_agreements(sets))
    if any(row.note for row in rows):
        chart_title("Rows that are far off", "by more than 10 %, or contradicted by another row")
        off = [_row(one.name, row) for one in sets for row in one.rows if row.note]
        frame([{name: row[name] for name in row if name != "verdict"} for row in off])
    _uncalibrated()
    _production()
    file_box(
        "More measured rows: a .csv file with vTrain’s columns",
        "up_measured",
        _take,
        _OWN.pop,
        max_upload_size=10,
    )


def _uncalibrated() -> None:
    """Draw published iterations on machines and at sizes where nothing was fitted."""
    chart_title(
        "Machines without calibration",
        "times computed from published speeds; the order of passes is assumed, since the papers do not print it",
    )
    frame(
        [
            {
                "job": one.measured.job.title,
                "passes": one.measured.job.schedule.words,
                "published (s)": round(one.measured.measured_ms / 1e3, 2),
                "predicted (s)": round(one.predicted_ms / 1e3, 2),
                "error": f"{one.error:+.1%}",
            }
            for one in _beyond()[0]
        ]
    )
    quiet(
        "Llama 3.1 405B: 430 and 400 TFLOP/s per GPU (Llama 3 Herd, table 4), six operations per parameter and token. "
        + trust(MACHINES["h100"])
    )


def _production() -> None:
    """Draw runs of weeks, predicted with the figures of benchmark runs and with those of production runs."""
    chart_title(
        "Production runs",
        "one factor was fitted to the first three rows; the others are held out. The plan of LLaMA 65B is not printed",
    )
    _, benchmark, production = _beyond()
    frame(
        [
            {
                "job": one.measured.job.title,
                "published (s)": round(one.measured.measured_ms / 1e3, 2),
                "as a benchmark (s)": round(fast.predicted_ms / 1e3, 2),
                "error as that": f"{fast.error:+.1%}",
                "in production (s)": round(one.predicted_ms / 1e3, 2),
                "error": f"{one.error:+.1%}",
                "factor": "fitted" if one.measured.row <= FITTED else "held out",
            }
            for fast, one in zip(benchmark, production, strict=True)
        ]
    )
    quiet(
        f"{escape(production[0].measured.job.machine.title)}: {trust(production[0].measured.job.machine)}"
    )


@cache
def _beyond() -> tuple[list[Compared], ...]:
    """Return what nothing was fitted to, and production runs by benchmark and by production figures."""
    return tuple(map(predicted, (uncalibrated_rows(), benchmark_rows(), production_rows())))


def _take(data: bytes, file: str) -> None:
    """Read a file of measured rows."""
    _OWN.set(MeasuredSet(file, "test", predicted(read_measured(data, file), file)))


def _agreements(sets: list[MeasuredSet]) -> Content:
    """Return how well each set agrees, over all rows and inside each model size."""
    return [
        _line(one.name, model if model == "all" else f"{model} B", found)
        for one in sets
        for model, found in [("all", agreement(one.rows)), *by_model(one.rows).items()]
    ]


def _line(name: str, model: str, found: Agreement) -> dict[str, object]:
    return {
        "rows of": name,
        "model": model,
        "rows": found.rows,
        "mean error": _percent(found.mean),
        "median": _percent(found.median),
        "worst": _percent(found.worst),
        "within 10 %": found.within[10],
        # Of two rows it says no more than which is larger.
        "rank correlation": "-"
        if found.rank_correlation is None or found.rows < MEANINGFUL
        else f"{found.rank_correlation:.3f}",
    }


def _row(name: str, row: Compared) -> dict[str, object]:
    job, verdict = row.measured.job, judged(row.measured.measured_ms, row.predicted_ms)
    return {
        "rows of": name,
        "row": row.measured.row,
        "model": f"{row.measured.model} B",
        "plan": f"{job.plan.words}, {job.schedule.words}",
        "measured (ms)": row.measured.measured_ms,
        "predicted (ms)": round(row.predicted_ms, 3),
        "error": f"{row.error:+.1%}",
        "verdict": " ".join(VERDICTS[verdict]),
        "note": row.note,
    }


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", f"{NBSP}%")
