"""Make afresh the answers that come with a release: ``python tools/make_answers.py [samples] [cards] [claims] [switches] [studies]``.

First answers of the samples, in ``sample_data/answers``; answers of the cards of published results; the
points of *Who is right*; those of *Which switch* and of the first ready study on the samples, with what
comes of every ready study. Without a name all five.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from topox_core.claims.cells import POINTS, rivals_run  # noqa: E402
from topox_core.fabrics.planning.passed_plans import PassedPlan, PlanChoice  # noqa: E402
from topox_core.fabrics.planning.scheduled import schedule  # noqa: E402
from topox_core.fabrics.planning.shipped import (  # noqa: E402
    FOLDER,
    answer_record,
    file_of,
)
from topox_core.fabrics.run import JobRequest  # noqa: E402
from topox_core.papers.catalogue import (  # noqa: E402
    CARDS,
    SHIPPED,
    CardStep,
    run_cards,
    to_record,
)
from topox_core.runs.pace import slowness  # noqa: E402
from topox_core.runs.run import finish, never  # noqa: E402
from topox_core.schedule.results.result import Result  # noqa: E402
from topox_core.studies.buying.offers import OFFERS  # noqa: E402
from topox_core.studies.buying.run import buying_run  # noqa: E402
from topox_core.studies.ready import READY, SHIPPED as SHIPPED_STUDIES, Ready  # noqa: E402
from topox_core.studies.study_run import PointRow, StudyRun, plan_of  # noqa: E402
from topox_core.workloads.samples import SAMPLES, load_sample  # noqa: E402
from topox_ui.cost.question import (  # noqa: E402
    SHIPPED as SHIPPED_SWITCHES,
    job_now,
    question_now,
)
from topox_ui.state.loading import Loaded  # noqa: E402
from topox_ui.state.scenario import Scenario  # noqa: E402
from topox_ui.state.session import put  # noqa: E402
from topox_ui.studies.choosing import finding  # noqa: E402
from topox_ui.studies.first_screen import ANSWERS  # noqa: E402


def first_visit(name: str) -> JobRequest:
    """Return the job of a sample as a page opens it without any choice."""
    graph, cluster = load_sample(name)
    now = Scenario(source="sample", name=name)
    return JobRequest(graph, now.cluster(cluster), now.settings())


def samples() -> None:
    """Schedule every sample, and write what came out."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json.gz"):
        old.unlink()
    for name in SAMPLES:
        job = first_visit(name)
        result = schedule(job.task_graph, job.cluster, job.by_rules.settings)
        plan, best = plan_for_another_delay(job, result)
        write(file_of(job.task_graph), answer_record(best))
        if plan is not None:
            write(file_of(job.task_graph, "plan"), answer_record(plan))


def plan_for_another_delay(job: JobRequest, result: Result) -> tuple[Result | None, Result]:
    """Return the plan for the delay of a switch on offer that is best at the job's own, if any beats its result, and the best result.

    Pages that look at those switches would find it and show it from then on.
    """
    job = job.by_rules
    best, shortest = None, result
    delays = {
        ms for one in OFFERS for ms in (one.delay_ms.low, one.delay_ms.usual, one.delay_ms.high)
    }
    for delay_ms in sorted(delays):
        made = schedule(job.task_graph, job.at_delay(delay_ms).cluster, job.settings)
        plan = PassedPlan.of(made)
        passed = PlanChoice(job, result).among(() if plan is None else (plan,))
        if (passed.makespan_ms or 0.0) < (shortest.makespan_ms or 0.0) * (1 - 1e-9):
            best, shortest = made.alternative or made, passed
    return best, shortest


def cards() -> None:
    """Run every card with its switches in their first positions, and write the answers."""
    records: dict[str, object] = {}

    def take(step: CardStep) -> None:
        if step.answer is not None:
            answer, wall_s = to_record(CARDS[step.card], step.answer), round(step.wall_s, 2)
            records[step.card] = {"answer": answer, "started": round(time.time()), "wall_s": wall_s}
            sys.stdout.write(f"{step.card}: {wall_s} s\n")

    run_cards(tuple(CARDS), never, take)
    write(SHIPPED, {name: records[name] for name in CARDS})


def claims() -> None:
    """Compute every point of the six studies, and write what was measured in the order of their designs."""
    results = finish(rivals_run())
    rows = {
        job: [[row.status, row.message, row.measures] for row in result.rows]
        for job, result in results.items()
    }
    write(POINTS, rows)


def switches() -> None:
    """Answer *Which switch* for every sample as a first visit shows it, and write its points by their keys."""
    points: dict[str, object] = {}
    for name in SAMPLES:
        put(Scenario(source="sample", name=name))
        opened = Loaded(*load_sample(name), name)
        known: dict[str, PointRow] = {}
        finish(buying_run(question_now(opened, job_now(opened)), known=known))
        points |= {key: [row.status, row.message, row.measures] for key, row in known.items()}
        sys.stdout.write(f"{name}: {len(known)} points\n")
    write(SHIPPED_SWITCHES, points)


def studies() -> None:
    """Compute the first ready study of every sample, and write its points by their keys."""
    known: dict[str, PointRow] = {}
    for name in SAMPLES:
        plan = plan_of(READY["what-matters"].study({"kind": "sample", "name": name}))
        finish(StudyRun(plan, executor=1, known=known))
    rows = {key: [row.status, row.message, row.measures] for key, row in known.items()}
    write(SHIPPED_STUDIES, rows)
    answers = {name: ready_answer(one) for name, one in READY.items()}
    text = json.dumps(answers, ensure_ascii=False, indent=1)
    ANSWERS.write_text(f"{text}\n", encoding="utf-8")


def ready_answer(one: Ready) -> dict[str, object]:
    """Compute a ready study about its own subject; return its points, its finding, and the work of one core in s."""
    plan = plan_of(one.study())
    result = finish(StudyRun(plan, executor=1, known={}))
    assert result is not None
    assert result.complete
    work_s = sum({plan.key_of(row.number): row.wall_s for row in result.rows}.values())
    return {
        "subject": plan.resolved.title,
        "points": len(result.rows),
        "work_s": round(work_s / slowness(), 1),
        "finding": finding(result, plan.held),
    }


def write(file: Path, record: object) -> None:
    """Write a record, packed, the same bytes for the same record."""
    content = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
    file.write_bytes(gzip.compress(content, mtime=0))
    sys.stdout.write(f"{file.name}: {file.stat().st_size:,} bytes\n")


PARTS = {one.__name__: one for one in (samples, cards, claims, switches, studies)}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
