"""The question of *Which switch*, and its answer: worked out beside the page in worker processes, watched, stopped, kept."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import streamlit as st

from topox_core.economics.price_sets import FILE_SET, PRICE_SETS
from topox_core.errors import refuse_if
from topox_core.fabrics.planning.passed_plans import KnownPlans, PassedPlan
from topox_core.fabrics.run import JobRequest
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.runs.pace import slowness
from topox_core.schedule.results.result import Result
from topox_core.studies.buying.question import Assumptions, Question, planned_at
from topox_core.studies.buying.run import Answer, buying_run
from topox_core.studies.keys import Value
from topox_core.studies.study_run import PointRow, shipped_rows
from topox_core.studies.subject import digest_of
from topox_core.text.numbers import about_seconds
from topox_ui.answers.keeping import kept_of, writable_library
from topox_ui.answers.solving import (
    job_of,
    known_first_answer,
    known_plans,
    plans_shown,
    prefetch,
)
from topox_ui.cost.controls import CostState
from topox_ui.cost.switches import BuyingState, chosen_offers
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.runs.slots import shared_workers
from topox_ui.shell.charts import button, quiet
from topox_ui.shell.panel import watched
from topox_ui.shell.preparing import prepared
from topox_ui.state.loading import Loaded, scenario
from topox_ui.state.prices import Prices, catalogue

# Larger graphs are worked out at a click.
MAX_TASKS = 20_000
AUTOMATIC = True
BUY = RunKind(
    "buy",
    most_slots=0,
    cancel_help="Stops at once; the networks computed so far are kept.",
    cancelled="Stopped. The networks that were computed are kept; computing goes on from there.",
)
MAX_POINTS = 5_000
# A larger graph is not planned again for other pages.
MAX_HANDED_ON = 5_000
Plans = tuple[PassedPlan, ...]


# The points of the samples as the page opens with them; ``tools/make_answers.py`` writes them.
SHIPPED = SAMPLE_FOLDER / "which-switch.json.gz"


@st.cache_resource(show_spinner=False)
def known_points() -> Kept[PointRow]:
    """Return the points that were computed, for all sessions, and those of the samples: a key says all that a point depends on."""
    known: Kept[PointRow] = Kept(MAX_POINTS)
    known.update(shipped_rows(SHIPPED))
    return known


def _start(question: Question, plans: Plans) -> None:
    library, known, workers = writable_library(), known_points(), shared_workers()
    run_owner().start(
        BUY,
        key_of(question, plans),
        lambda _slots: buying_run(question, library, workers, known, plans),
        note=lambda answer: f"Points are missing. {answer.lost[0]}." if answer.lost else "",
    )


def answered(question: Question, job: JobRequest, draw: Callable[[Answer], None]) -> Answer | None:
    """Return the answer if it is there; else start it, and draw what is there of it while it is worked out.

    The plan that pages show for the job is among those of every switch, and they hear of the plan that is best here.
    """
    plans = plans_shown(job)
    owner, key = run_owner(), key_of(question, plans)
    small = question.resolved.graph is None or len(question.resolved.graph.tasks) <= MAX_TASKS
    asked = key in owner.results(BUY) or owner.run(BUY, key) is not None
    if AUTOMATIC and not asked and prepared() and small:
        _start(question, plans)
        owner.wait(BUY, 0.3)
    if watched(BUY, "Computing", lambda run: _so_far(run.result(), draw), key):
        return None
    answer: Answer | None = owner.results(BUY).get(key)
    if answer is not None and answer.complete:
        hand_on(job, answer)
        return answer
    if answer is None:
        draw(Answer(question))
    button(
        "Compute" if answer is None else "Go on",
        "work_out",
        "play_arrow",
        _start,
        question,
        plans,
        primary=answer is None,
        help="Runs the job on each network beside this page, by list scheduling. Results that exist are not computed again.",
    )
    return answer


FIRST_S = 5.0  # until the first networks of moe are there: workers start, then the rivals run


def _so_far(answer: Answer, draw: Callable[[Answer], None]) -> None:
    """Draw what is there; before that, say when the first will be."""
    draw(answer)
    if not answer.rows:
        quiet(
            f"The first networks stand here after about {about_seconds(FIRST_S * slowness())} on this machine, each of the others as "
            "soon as it is computed. Fixed circuits and fat-trees come first, then the switches."
        )


def hand_on(job: JobRequest, answer: Answer) -> None:
    """Have the plan of the best switch made behind all that somebody waits for, for pages that show a schedule of the job.

    Workers return times alone, which a study of many points needs no more than.
    """
    found = answer.verdict
    small = len(job.task_graph.tasks) <= MAX_HANDED_ON
    if found is None or not found.wins or not small or not prepared():
        return
    delay_ms = planned_at(answer.rows, found.offer)
    if delay_ms is None or found.offer.choice.degree != job.cluster.ports_per_server:
        return
    planned = job.at_delay(delay_ms)
    there = known_first_answer(planned)
    if there is None:
        prefetch(planned).add_done_callback(partial(_take, known_plans(), job.key_of_plans))
    else:
        known_plans().add(job.key_of_plans, PassedPlan.of(there))


def _take(plans: KnownPlans, job_key: str, made: Future[Result]) -> None:
    if not made.cancelled() and made.exception() is None:
        plans.add(job_key, PassedPlan.of(made.result()))


def job_now(opened: Loaded) -> JobRequest:
    """Return the job of what is loaded and chosen, planned by list scheduling; raises InputError."""
    job = job_of(opened, scenario())
    return job.by_rules


def question_now(opened: Loaded, job: JobRequest) -> Question:
    """Return the question of what is loaded and chosen; raises InputError where it cannot be asked."""
    refuse_if(
        (
            job.settings.circuits == "per-slot",
            "circuits that may change between slots pay no delay; on the page Schedule let a transfer keep one",
        ),
        field="circuits",
    )
    now = BuyingState.now()
    kept = kept_of(opened, job)
    return Question(
        kept.resolved,
        chosen_offers(),
        now.ports,
        now.rivals,
        {**kept.values("scheduled"), **_prices(), "settings.effort": "first"},
        Assumptions.of(now.usd_per_gpu_hour, CostState.now().running, now.gpus_per_server),
        now.by,
    )


def _prices() -> dict[str, Value]:
    """Return the prices that hold, as a study names them: a price set, and the figures that differ from it."""
    now = catalogue()
    base = PRICE_SETS.get(Prices.now().prices) or PRICE_SETS[now.based_on or FILE_SET]
    values: dict[str, Value] = {
        f"prices.{part.id}.{field}": getattr(part, field)
        for part in now.parts
        for field in ("price_usd", "power_w")
        if getattr(part, field) != getattr(base.part(part.id), field)
    }
    refuse_if(
        (
            (base.port_gbps, base.switch_transceivers) != (now.port_gbps, now.switch_transceivers),
            "has prices of another port speed than its price set; a study cannot count with them",
        ),
        file="prices",
    )
    return {"prices": base.based_on, **values}


def key_of(question: Question, plans: Plans = ()) -> str:
    """Return what an answer depends on, as a digest."""
    return digest_of(
        [
            question.resolved.digest,
            question.resolved.title,
            repr(question.offers),
            repr((question.degrees, question.rivals, sorted(question.fixed.items()))),
            repr(question.assumed),
            question.by,
            [(one.cluster.digest, float(one.end_ms.max(initial=0))) for one in plans],
        ]
    )
