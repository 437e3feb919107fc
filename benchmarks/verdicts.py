"""How long a first verdict on each sample takes, and how wide it leaves open what nobody knows.

Run it with ``python -m benchmarks.verdicts [SAMPLE ...]``; ``--effort search`` looks longer.
"""

from __future__ import annotations

import argparse
import time

import topox_core
from topox_core.fabrics.crossover.verdict import EFFORTS
from topox_core.text.numbers import short
from topox_core.workloads.samples import SAMPLES


def main() -> None:
    """Print a line for each sample: seconds, tasks, and for each rival where changing pays and where it cannot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", nargs="*", default=[])
    parser.add_argument("--effort", choices=EFFORTS, default="list")
    options = parser.parse_args()
    names = options.samples or list(SAMPLES)
    topox_core.verdict(*topox_core.load_sample("race"))  # kernels are loaded
    for name in names:
        graph, cluster = topox_core.load_sample(name)
        began = time.perf_counter()
        found = topox_core.verdict(graph, cluster, effort=options.effort)
        took_s = time.perf_counter() - began
        print(f"{name}: {len(graph.tasks):,} tasks, {took_s:.2f} s", flush=True)
        for one in found.brackets:
            pays, cannot = one.pays_up_to_ms, one.cannot_pay_from_ms
            wide = "" if not pays or not cannot else f", {short(cannot / pays)} times"
            ends = "never" if pays is None else f"{short(pays)} ms"
            proved = "nothing proved" if cannot is None else f"{short(cannot)} ms"
            print(f"  {one.name} {short(one.iteration_ms)} ms: {ends} to {proved}{wide}")


if __name__ == "__main__":
    main()
