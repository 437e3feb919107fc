"""Time a preset on a photonic rail with its control plane: built, simulated, and swept over switching delays.

    python -m benchmarks.rails [--preset NAME] [--fold] [--delay-ms 25]

Without ``--preset``: Llama 3.1 405B on 2,048 GPUs whole and folded, then 16,384 GPUs folded,
collectives layer by layer.
"""

from __future__ import annotations

import argparse
import sys
import time

from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.delay import iteration_source, slowest_switch, study
from topox_core.rails.iteration import COMPUTE, Rail
from topox_core.rails.presets import PRESETS

DEFAULT = (
    ("llama3.1-405b-2048", False),
    ("llama3.1-405b-2048", True),
    ("llama3.1-405b-16384", True),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", choices=sorted(PRESETS))
    parser.add_argument(
        "--fold", action="store_true", help="one rank a stage stands for all its replicas"
    )
    parser.add_argument("--delay-ms", type=float, default=25.0, help="switching delay")
    given = parser.parse_args()
    print(
        f"{'preset':22} {'GPUs':>7} {'ranks':>5} {'nodes':>7} {'calls':>7} {'build s':>7} {'run s':>6} {'iteration ms':>12} "
        f"{'stall':>6} {'changes':>8} {'messages':>9} {'sweep s':>7} {'inverse s':>9}"
    )
    for name, fold in [(given.preset, given.fold)] if given.preset else DEFAULT:
        measure(name, fold, given.delay_ms)
    return 0


def measure(name: str, fold: bool, delay_ms: float) -> None:
    preset = PRESETS[name]
    began = time.perf_counter()
    iteration = build(preset, fold=fold)
    built = time.perf_counter()
    run = simulate(iteration, Rail(nic_gbps=preset.machine.nic_gbps, reconfiguration_ms=delay_ms))
    ran = time.perf_counter()
    calls = int((iteration.kind[iteration.issue_idx] != COMPUTE).sum())
    line = (
        f"{name:22} {preset.plan.gpus:7,} {iteration.ranks:5} {len(iteration):7,} {calls:7,} {built - began:7.2f} "
        f"{ran - built:6.2f} {run.iteration_ms:12,.1f} {100 * run.stall_ms / run.undisturbed_ms:5.1f}% "
        f"{run.reconfigurations:8,} {run.messages_sent:9,}"
    )
    if fold:
        began = time.perf_counter()
        source = iteration_source(iteration, Rail(nic_gbps=preset.machine.nic_gbps))
        study(source)
        swept = time.perf_counter()
        slowest_switch(source, 5.0)
        line += f" {swept - began:7.2f} {time.perf_counter() - swept:9.2f}"
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
