"""How long a class takes to grade: 40 students, all eight labs, one process; and the keys of one seed.

Run as ``.venv/bin/python -m benchmarks.labs``.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

from topox_core.labs.classroom.answers import dump_answers
from topox_core.labs.classroom.folder import grade_folder
from topox_core.labs.classroom.grading import score
from topox_core.labs.classroom.student import attempt, begin, give_up, lock
from topox_core.labs.keys import key_of
from topox_core.labs.lab_file import ready_labs

STUDENTS = 40
NOON = "2026-10-05T12:00:00Z"


def answered(lab, student: str):
    """Return answers of a student who knows most and gives up on what is drawn by hand."""
    answers = begin(lab, "NET-401", student, NOON)
    for question in (one for one in lab.questions if one.stage != "explain"):
        truth = key_of(lab, question, answers.seed)
        value = truth[0] if question.type == "choice" and isinstance(truth, tuple) else truth
        if question.stage == "predict":
            answers = lock(lab, answers, question.id, value, NOON)
        elif question.type in ("schedule", "grouping"):
            answers = give_up(lab, answers, question.id, NOON)
        else:
            answers, _ = attempt(lab, answers, question.id, value, NOON)
    return answers


def main() -> None:
    labs = ready_labs()
    for seed in (0, 1, 2):  # the first one loads kernels
        began = time.process_time()
        for lab in labs.values():
            for question in lab.questions:
                if question.key is not None:
                    key_of(lab, question, seed)
        print(f"all keys of seed {seed}: {time.process_time() - began:.3f} s of a core")
    with tempfile.TemporaryDirectory() as folder:
        for lab in labs.values():
            for number in range(STUDENTS):
                answers = answered(lab, f"student{number:02d}")
                name = f"{lab.id}-{number:02d}.answers.json"
                (Path(folder) / name).write_bytes(dump_answers(answers, score(lab, answers)))
        # As in a process of its own: nothing is remembered from making them.
        from topox_core.labs import keys

        keys._drawn.cache_clear()
        keys._kept_value.cache_clear()
        began, worked = time.perf_counter(), time.process_time()
        graded = grade_folder(Path(folder), labs)
        lasted, core = time.perf_counter() - began, time.process_time() - worked
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{STUDENTS} students x {len(labs)} labs: {len(graded.grades)} grades in {lasted:.1f} s, "
        f"{core:.1f} s of a core, {peak_mb:.0f} MB"
    )


if __name__ == "__main__":
    main()
