"""The authors' own job on the Rails page: the paper's figures beside those here, and what other choices would have given."""

import streamlit as st

from topox_core.rails.delay import BOTH, UNDISTURBED, Question, answer
from topox_core.rails.iteration import Rail, RailRun
from topox_core.rails.measured import WINDOWS
from topox_core.rails.window_lengths import share_above
from topox_core.text.numbers import percent, time
from topox_core.text.sentences import capitalised
from topox_core.training.job import Job
from topox_core.training.plan import REDUCTIONS
from topox_ui.rails.delay import BESIDE, authors_job, curves_of, measured_curves
from topox_ui.rails.runs import run_of
from topox_ui.rails.state import CONTROLS, JOB, RailsState, preset_of
from topox_ui.rails.subject import Lane, Listed, Simulated, Subject
from topox_ui.shell.charts import escape, quiet, table_under

# What the paper's first version says of its own job: windows above 1 ms (Fig. 4a), and at 100 ms
# (Fig. 8), as shares.
ABOVE_1_MS, AT_MS = "> 75\u00a0%", 100.0
PUBLISHED = {"on_demand": 0.065, "provisioned": 0.035}
ORDERS = {"layer": "layer by layer", "pass": "after each pass", "last": "after the last"}


def against_the_paper(subject: Subject, lane: Lane) -> None:
    """Put the figures of the paper beside those here, of the authors' own job."""
    if isinstance(subject, Simulated) and authors_job(subject):
        _beside(subject, lane)


def source_words(subject: Subject) -> str:
    """Return where a job or a list of windows is from, in HTML; empty where nobody said."""
    if isinstance(subject, Listed):
        return f"{escape(capitalised(subject.note))}." if subject.note else ""
    known = preset_of(RailsState.now().runs)
    if known is None:
        return ""
    of = "yours" if RailsState.now().runs == JOB else escape(known.source)
    changed = "" if subject.training == known else " You changed its degrees on the left."
    return f"Job: {of}.{changed}"


def chosen_of_the_match(subject: Subject) -> None:
    """Say of the authors' own job that the match was selected, and what other choices would have given."""
    if not isinstance(subject, Simulated) or subject.training is None or not authors_job(subject):
        return
    job, windows = subject.training, run_of(subject.undisturbed()).windows
    longest = max(windows, key=lambda one: one.length_ms)
    quiet(
        "<b>A selected match</b>: the paper does not print in which order FSDP sends; of six orders this "
        "one matches its Table 2. The share above 1\u00a0ms rests on an assumption, the "
        f"{job.machine.host_ms:g}\u00a0ms that the host takes to launch a pass; computing is scaled until the iteration lasts the "
        f"measured {time(job.schedule.iteration_ms or 0.0)}. On average the longest windows come before the reduce-scatter, as "
        f"published; the longest single one, {time(longest.length_ms)}, comes before a {longest.operation.replace('_', ' ')}."
    )
    table_under(
        "orders",
        lambda: _orders(repr(job), job),
        "Results of the other orders",
    )


def _beside(subject: Simulated, lane: Lane) -> None:
    """Draw here, paper and later measurement in three rows."""
    windows = run_of(subject.undisturbed()).windows
    measured = sum(one.length_ms > 1 for one in WINDOWS) / len(WINDOWS)
    rows = [
        (
            "windows above 1\u00a0ms",
            percent(share_above(windows, 1.0)),
            ABOVE_1_MS,
            percent(measured),
        )
    ]
    curves = curves_of(subject, lane)
    theirs = {one.control: one.overhead[one.delay_ms.index(AT_MS)] for one in measured_curves()}
    for control, words in CONTROLS.items():
        at = dict(zip(curves[control].delay_ms, curves[control].overhead, strict=True))
        rows.append(
            (
                f"{time(AT_MS)}, {words}",
                percent(at[AT_MS]) if AT_MS in at else "–",
                percent(PUBLISHED[control]),
                percent(theirs[control]),
            )
        )
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    heads = "<tr><th></th><th>here</th><th>paper</th><th>measured later</th></tr>"
    st.html(f'{BESIDE}<table class="beside ours">{heads}{cells}</table>')


@st.cache_data(max_entries=4, show_spinner="Simulating six orders")
def _orders(digest: str, _job: Job) -> list[dict[str, object]]:  # noqa: ARG001
    """Return what every order of FSDP's traffic gives: windows above 1 ms, with and without the host, overhead at 100 ms."""
    rail, rows = Rail(nic_gbps=_job.machine.nic_gbps), []
    for regather in (False, True):
        for reduce in REDUCTIONS:
            job = _job.changed(schedule__regather=regather, schedule__reduce=reduce)
            base, prompt = (
                answer(Question(UNDISTURBED, job, rail)),
                answer(Question(UNDISTURBED, job.changed(machine__host_ms=0.0), rail)),
            )
            both = answer(Question(BOTH, job, rail, AT_MS))
            assert (
                isinstance(base, RailRun)
                and isinstance(prompt, RailRun)
                and not isinstance(both, RailRun)
            )
            on_demand, provisioned = (100 * (value / base.iteration_ms - 1) for value in both)
            rows.append(
                {
                    "gathers again": "yes" if regather else "no",
                    "scatters": ORDERS[reduce] + (" (here)" if job == _job else ""),
                    "above 1 ms (%)": round(100 * share_above(base.windows, 1.0), 2),
                    "host 0 ms (%)": round(100 * share_above(prompt.windows, 1.0), 2),
                    "on demand (%)": round(on_demand, 2),
                    "provisioned (%)": round(provisioned, 2),
                }
            )
    return rows
