"""Ask whether the tests notice each defect: ``python -m tests.mutants [NAME ...]``, ``make mutants``.

Each defect is put into a copy of the project, and the tests of its package run until one fails; of what
they do not notice, all quick tests are asked, then the browser's. Answers are kept line by line in
a file, so that a run that was stopped goes on.
"""

import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from tests.mutants.defects import Defect, all_defects
from tests.real_inputs import REAL_INPUTS, ROOT

# A defect may make a test wait for ever: that is noticed too.
PATIENCE_S = 900
STAGES = ("package", "quick", "browser")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def copy_of_project(folder: Path) -> Path:
    """Copy what git knows or would add into a folder, with machine code of its own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for part in ([], ["fabrics"], ["jobs"]):
        python(folder, "-m", "topox_core.warm_up", *part)
    return folder


def python(folder: Path, *arguments: str) -> tuple[bool, str]:
    """Run Python in a copy; return whether it went well in time, and what it printed."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"TOPOX_REAL_INPUTS": str(REAL_INPUTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, late = process.communicate(timeout=PATIENCE_S)[0], False
    except subprocess.TimeoutExpired:
        said, late = f"ERROR later-than-{PATIENCE_S}-s", True
    with suppress(ProcessLookupError):  # whatever it started and left behind
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return process.returncode == 0 and not late, said


def run_of(stage: str, tests: str) -> list[str]:
    """Return what pytest is asked at a stage; `tests` is the folder of the package."""
    return {
        "package": [tests, "-m", "not long and not browser"],
        "long": [tests, "-m", "long and not browser"],
        "quick": ["-m", "not long and not browser"],
        "browser": ["-m", "browser and not long"],
    }[stage]


def answer(folder: Path, defect: Defect, stages: list[str]) -> dict[str, str | float]:
    """Return which run notices a defect, and by which test; "nobody" where none does."""
    began, noticed_by, test = time.monotonic(), "nobody", ""
    for stage in stages:
        with defect.applied(folder):
            well, said = pytest(folder, *run_of(stage, defect.tests))
        if not well:
            failed = FAILED.search(said)
            noticed_by, test = stage, failed[1] if failed else said.strip()[-200:]
            break
    # What fails without the defect as well says nothing of it.
    if test.startswith("tests/") and not pytest(folder, "-m", "", test)[0]:
        noticed_by = "a test that fails anyway"
    seconds = round(time.monotonic() - began, 1)
    return {"name": defect.name, "noticed_by": noticed_by, "test": test, "seconds": seconds}


def pytest(folder: Path, *arguments: str) -> tuple[bool, str]:
    """Run tests until one fails; a folder without tests of this kind is well."""
    well, said = python(folder, "-m", "pytest", "-x", "-p", "no:cacheprovider", *arguments)
    return well or re.search(
        r"^(no tests ran|\d+ deselected) in ", said, re.MULTILINE
    ) is not None, said


def main() -> int:
    """Ask of all defects, or of those named; print a line each, and how many nobody noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these defects")
    parser.add_argument("--jobs", type=int, default=2, help="copies that are tried side by side")
    parser.add_argument(
        "--stages",
        default=",".join(STAGES),
        help="which runs are asked: " + "package, long, quick, browser",
    )
    parser.add_argument("--answers", type=Path, default=ROOT / "test-output" / "mutants.jsonl")
    asked = parser.parse_args()
    known = {defect.name: defect for defect in all_defects()}
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"no such defect: {', '.join(unknown)}")
    asked.answers.parent.mkdir(parents=True, exist_ok=True)
    kept = asked.answers.read_text(encoding="utf-8") if asked.answers.exists() else ""
    done = {row["name"]: row for row in map(json.loads, kept.splitlines())}
    waiting: queue.SimpleQueue[Defect] = queue.SimpleQueue()
    for name in asked.names or known:
        if name not in done:
            waiting.put(known[name])
    with tempfile.TemporaryDirectory() as place, asked.answers.open("a", encoding="utf-8") as out:
        workers = [
            threading.Thread(
                target=_work,
                args=(Path(place) / str(k), waiting, asked.stages.split(","), out, done),
            )
            for k in range(min(asked.jobs, waiting.qsize()))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    names = asked.names or list(known)
    missed = [name for name in names if done[name]["noticed_by"] not in ("long", *STAGES)]
    print(f"{len(names) - len(missed)} of {len(names)} noticed; not: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def _work(
    folder: Path,
    waiting: queue.SimpleQueue[Defect],
    stages: list[str],
    out: TextIO,
    done: dict[str, dict[str, str | float]],
) -> None:
    copy_of_project(folder)
    while True:
        try:
            defect = waiting.get_nowait()
        except queue.Empty:
            return
        row = done[defect.name] = answer(folder, defect, stages)
        out.write(json.dumps(row) + "\n")
        out.flush()
        print(
            f"{row['noticed_by']:8} {row['seconds']:6} s  {defect.name}  {row['test']}", flush=True
        )


if __name__ == "__main__":
    sys.exit(main())
