"""Reading recorded runs: CPU seconds and memory for large files of PyTorch's profiler, and the longest path.

The files are made: the steps of a small made-up job with the host's operators, Python frames and flow
arrows that fill real files (190 to 580 bytes an event, two in five of them of use).

    python -m benchmarks.recorded_runs [--megabytes 100 1000] [--ranks 8]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ITSELF = [sys.executable, "-m", "benchmarks.recorded_runs"]

OPERATOR = (
    '{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 4000, "tid": 1, "ts": %.3f, "dur": 3.5, "args": '
    '{"External id": 12345, "Record function id": 0, "Concrete Inputs": ["", "", "", "1", "1"], "Input type": '
    '["float", "float", "float", "Scalar", "Scalar"], "Input Strides": [[1], [1024, 1], [1, 1024], [], []], '
    '"Input Dims": [[1024], [32, 1024], [1024, 1024], [], []], "Ev Idx": 4711}}'
)
FLOW = '{"ph": "s", "id": 4711, "pid": 4000, "tid": 1, "ts": %.3f, "cat": "ac2g", "name": "ac2g"}'
LAUNCH = (
    '{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4000, "tid": 1, "ts": %.3f, "dur": 4.1, '
    '"args": {"External id": 12345, "cbid": 211, "correlation": %d}}'
)
KERNEL = (
    '{"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::'
    "AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 2> >"
    '(int)", "pid": 0, "tid": 7, "ts": %.3f, "dur": 0.05, "args": {"External id": 12345, "queued": 0, "device": 0, '
    '"context": 1, "stream": 7, "correlation": %d, "registers per thread": 32, "shared memory": 0, "blocks per SM": 4, '
    '"warps per SM": 16, "grid": [432, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 25}}'
)


def write_file(path: Path, megabytes: int, rank: int = 0) -> None:
    """Write a file of about so many megabytes: the steps of a made-up job with much around them."""
    from tests.topox_core.traces.made import JOBS, Style, recordings

    record = json.loads(
        recordings(JOBS["fsdp"](ranks=8), 100.0, Style(steps=4))[f"run_rank{rank}.json"]
    )
    events = record.pop("traceEvents")
    written, number = 0, 10_000_000
    with path.open("w", encoding="utf-8") as out:
        out.write(json.dumps(record)[:-1] + ', "traceEvents": [\n')
        out.write(",\n".join(json.dumps(event) for event in events))
        launches = {e["args"]["correlation"]: e["ts"] for e in events if e["cat"] == "cuda_runtime"}
        work = [e for e in events if e["name"] == "gemm"]
        places = [(launches[e["args"]["correlation"]], e["ts"], e["dur"]) for e in work]
        while written < megabytes * 1_000_000:
            number += 1
            # Beside the work of the job, so that its segments stay what they are.
            asked, runs, lasts = places[number % len(places)]
            at, run = asked + 0.2, runs + (number * 0.37) % (lasts - 0.1)
            lines = [OPERATOR % at, OPERATOR % at, FLOW % at, LAUNCH % (at, number)]
            lines.append(KERNEL % (run, number))
            text = ",\n" + ",\n".join(lines)
            written += out.write(text)
        out.write("\n]}")


def read_once(path: str) -> None:
    """Read one file and print CPU seconds and the most memory that was held."""
    from topox_core.traces.recorded.kineto import read_kineto
    from topox_core.traces.source import Source

    began = time.process_time()
    recording = read_kineto(Source.of_path(Path(path)))
    cpu_s = time.process_time() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{recording.events:,} events, {len(recording.work):,} activities: {cpu_s:.2f} CPU s, {most:.0f} MB"
    )


def longest_path(tasks: int) -> None:
    """Print how long the replay of a graph of so many tasks takes."""
    from topox_core.traces.run_graph import Node, RunGraph, at_speed, replay_ms

    nodes = [
        Node(
            f"n{k}",
            "all_reduce" if k % 2 else "forward",
            [j for j in (k - 1, k - 2, k - 7) if j >= 0],
            0.1,
            tuple(range(8)) if k % 2 else (0,),
            bool(k % 2),
            1e6,
        )
        for k in range(tasks)
    ]
    graph = RunGraph(nodes, 8, tuple(range(8)), 1.0)
    began = time.process_time()
    replay_ms(graph, at_speed(400.0))
    print(f"longest path of {tasks:,} tasks: {time.process_time() - began:.3f} CPU s")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--ranks", type=int, default=0, help="import so many files of 100 MB")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_once(options.read)
        return
    longest_path(20_000)
    with tempfile.TemporaryDirectory() as folder:
        for size in options.megabytes:
            path = Path(folder) / f"rank0_{size}.json"
            write_file(path, size)
            print(f"{size:,} MB:", end=" ", flush=True)
            subprocess.run([*ITSELF, "--read", str(path)], check=True, cwd=ROOT)
            path.unlink()
        if options.ranks:
            for rank in range(options.ranks):
                write_file(Path(folder) / f"r_rank{rank}.json", 100, rank)
            began = time.perf_counter()
            run = [sys.executable, "-m", "topox_core", "trace", "inspect", folder]
            subprocess.run(run, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
            print(f"{options.ranks} files of 100 MB: {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
