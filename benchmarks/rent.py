"""What each mechanism of a solve is worth: switched off alone, beside the program as it is.

    python -m benchmarks.rent [--suite FOLDER] [--only REGEX] [--off NAME,...] [--seconds 1,10]
    [--seeds 3] [--delays 0.1,1,10]

Every instance of the suite (circuits drawn per slot, no delay) and every sample (with delays in slots, on slots and on
continuous time) is solved by all programs one after another, on the cores of this machine. The
table says for each mechanism and time limit: geometric mean of makespan and of bound without it over
with it (medians of the seeds), and proofs gained and lost. A mechanism stays if a makespan's mean is
0.5 % longer without it, or a proof is lost.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.schedule_suite import machine
from benchmarks.side_by_side.instances import instances
from benchmarks.side_by_side.warm_command import load_code

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ("blackboard", "patience", "race", "moe", "fsdp", "dlrm-16")
BASE = "as it is"
# File, the line that is changed, and what it becomes.
OFF: dict[str, tuple[str, str, str]] = {
    "neighbourhoods with set-ups": (
        "schedule/circuits/disjunctions.py",
        "    net = problem.network\n",
        "    net = None if problem.n else problem.network\n",
    ),
    "race of the fine clock": (
        "schedule/race/proof.py",
        '        named = self.prepared.settings.engine in ("auto", "cpsat")\n        if not named',
        "        named = not self.prepared\n        if not named",
    ),
    "successive halving": (
        "schedule/race/portfolio.py",
        "import Pace, SuccessiveHalving\n",
        "import LocalSearch as SuccessiveHalving, Pace\n",
    ),
    "parallel generation": (
        "schedule/planning/list_scheduler.py",
        '            ("parallel", parallel(rank, generator.tasks)),\n',
        "",
    ),
    "bits of slots": (
        "schedule/planning/list_scheduler.py",
        "pairs == 0 and bool(",
        "pairs < 0 and bool(",
    ),
}
# What only circuits with a delay know is not asked without one.
ONLY_WITH_DELAY = ("neighbourhoods with set-ups", "race of the fine clock")


# Every process of a copy begins with this: it reads one module otherwise than it stands in its file.
HOOK = """
import importlib.abc, importlib.util, sys
NAME, PATH, OLD, NEW = {change!r}
class Loader(importlib.abc.Loader):
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        text = open(PATH, encoding="utf-8").read().replace(OLD, NEW)
        module.__file__ = PATH
        exec(compile(text, PATH, "exec"), module.__dict__)
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, Loader(), origin=PATH) if name == NAME else None
sys.meta_path.insert(0, Finder())
"""


def hook_without(folder: Path, name: str) -> None:
    """Write what switches a mechanism off into a folder that Python looks into when it starts."""
    if name == BASE:
        return
    file, old, new = OFF[name]
    path = ROOT / "topox_core" / file
    if path.read_text(encoding="utf-8").count(old) != 1:
        raise SystemExit(f"{name}: its line does not stand once in {file}")
    module = "topox_core." + file.removesuffix(".py").replace("/", ".")
    change = (module, str(path), old, new)
    (folder / "sitecustomize.py").write_text(HOOK.format(change=change), encoding="utf-8")


def serve() -> None:
    """Solve what comes as lines of JSON, and answer with lines of JSON."""
    from topox_core.api import load_cluster, load_graph
    from topox_core.schedule.settings import Settings
    from topox_core.schedule.solve import solve
    from topox_core.workloads.samples import load_sample

    load_code()
    print("ready", flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        if "sample" in case:
            graph, cluster = load_sample(case["sample"])
        else:
            graph, cluster = load_graph(case["graph"]), load_cluster(case["cluster"])
        if "delay_slots" in case:
            cluster = cluster.changed(reconfiguration_ms=case["delay_slots"] * cluster.slot_ms)
        settings = Settings.of(
            time_limit_s=case["seconds"], seed=case["seed"], **case.get("settings", {})
        )
        result = solve(graph, cluster, settings)
        answer = {
            "makespan_ms": result.makespan_ms,
            "bound_ms": result.bound_ms,
            "proved": result.status == "optimal",
        }
        print(json.dumps(answer), flush=True)


class Copy:
    """The program without a mechanism: a process that solves with it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        folder.mkdir()
        hook_without(folder, name)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.rent", "--serve"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def asked(self, case: dict[str, Any]) -> bool:
        """Whether the mechanism that is missing could matter."""
        return "delay_slots" in case or self.name not in ONLY_WITH_DELAY

    def answer(self, case: dict[str, Any]) -> dict[str, Any]:
        """Solve one case."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


def cases(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every case by name: its name says all but the seed and the time limit."""
    for one in instances(options.suite, options.only):
        yield (
            one.name,
            {
                "graph": str(one.graph),
                "cluster": str(one.cluster),
                "settings": {"circuits": "per-slot", "tick": "slot"},
            },
        )
    for sample in SAMPLES:
        for delay in options.delays:
            for clock in ("slots", "continuous"):
                if clock == "slots" and delay < 1:
                    continue
                yield (
                    f"{sample} {delay:g} {clock}",
                    {"sample": sample, "delay_slots": delay, "settings": {"clock": clock}},
                )


def table(rows: list[dict[str, Any]], options: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each mechanism and time limit."""
    by: defaultdict[tuple[str, float, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by[row["off"], row["seconds"], row["case"]].append(row)
    yield f"{'without':30} {'s':>4} {'cases':>5} {'makespan':>9} {'bound':>9} {'proofs':>9}"
    for name in options.off:
        for seconds in options.seconds:
            makespan, bound, lost, gained = [], [], 0, 0
            for case in {case for off, s, case in by if (off, s) == (name, seconds)}:
                ours, base = by[name, seconds, case], by[BASE, seconds, case]
                for key, into in (("makespan_ms", makespan), ("bound_ms", bound)):
                    into.append(median(o[key] for o in ours) / median(b[key] for b in base))
                change = median(o["proved"] for o in ours) - median(b["proved"] for b in base)
                lost, gained = lost + (change < 0), gained + (change > 0)
            means = [math.exp(sum(map(math.log, of)) / max(1, len(of))) for of in (makespan, bound)]
            yield (
                f"{name:30} {seconds:4g} {len(makespan):5} {means[0]:9.4f} {means[1]:9.4f} "
                f"{f'-{lost} +{gained}':>9}"
            )


def main() -> int:
    """Solve and print the table; every solve is kept as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--suite", type=Path, default=ROOT / "benchmarks" / "suite")
    parser.add_argument("--only", default="")
    parser.add_argument("--off", type=lambda text: text.split(","), default=list(OFF))
    parser.add_argument(
        "--seconds", type=lambda text: [float(s) for s in text.split(",")], default=[1.0, 10.0]
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--delays",
        type=lambda text: [float(s) for s in text.split(",") if s],
        default=[0.1, 1.0, 10.0],
    )
    parser.add_argument("--kept", type=Path, default=ROOT / "test-output" / "rent.jsonl")
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    print(machine(2))
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, options.kept.open("a", encoding="utf-8") as kept:
        copies = [Copy(Path(folder) / str(k), name) for k, name in enumerate((BASE, *options.off))]
        for name, case in cases(options):
            for seconds in options.seconds:
                for seed in range(options.seeds):
                    for copy in copies:
                        if not copy.asked(case):
                            continue
                        answer = copy.answer(case | {"seconds": seconds, "seed": seed})
                        row = {"off": copy.name, "case": name, "seconds": seconds, **answer}
                        rows.append(row)
                        print(json.dumps(row), file=kept, flush=True)
    print("\n".join(table(rows, options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
