"""Killed in the middle: children end, and what was there before is whole."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import long_after
from tests.patience import PATIENCE_S, wait_until
from tests.real_inputs import ROOT
from tests.topox_core.runs.test_run import alive

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")


def children(process_id: int) -> list[int]:
    """Return the processes below one, its own children first."""
    found: list[int] = []
    for task in Path(f"/proc/{process_id}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


@pytest.mark.parametrize("how", long_after(1, [signal.SIGKILL, signal.SIGTERM]))
def test_what_proves_in_the_middle_leaves_no_child_and_the_old_output_whole(
    how: signal.Signals, tmp_path: Path
) -> None:
    output = tmp_path / "best.schedule.json"
    output.write_text(json.dumps({"kept": True}))
    files = [f"sample_data/moe.{kind}.json" for kind in ("taskgraph", "cluster")]
    command = ["-m", "topox_core", "schedule", *files, "--engine", "cpsat", "--time-limit", "600"]
    solve = subprocess.Popen(
        [sys.executable, *command, "--output", str(output)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        engines = wait_until(lambda: children(solve.pid))
        os.kill(solve.pid, how)
        solve.wait(PATIENCE_S)
    finally:
        solve.kill()
    wait_until(lambda: not any(map(alive, engines)))
    written = json.loads(output.read_text())
    assert written == {"kept": True} or written["format"] == "topox-schedule"
    assert [one.name for one in tmp_path.iterdir()] == [output.name]
