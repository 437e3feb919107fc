"""Where real inputs lie: a folder that a checkout does not hold, for tests and benchmarks alike."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Recorded runs, published graphs and projects; beside the folder lie the benchmark instances.
REAL_INPUTS = Path(os.environ.get("TOPOX_REAL_INPUTS") or ROOT.parent / "shared" / "data")
SUITE = REAL_INPUTS.parent / "bench" / "instances"
