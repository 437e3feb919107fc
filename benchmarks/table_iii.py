"""TOPO-X Table III from a cold start: how long it takes, whether it repeats, and how far each column is off.

    python benchmarks/table_iii.py [--runs 2] [--readings]

``--readings`` also runs the TopoOpt column under every layout, sharing and element size.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

from topox_core.papers.catalogue import card_named
from topox_core.papers.rows import Answer, Row
from topox_core.papers.table_iii_runs import TABLE, topoopt_ms
from topox_core.runs.run import never

LIMIT_S = 120


def timed() -> tuple[Answer, float, float]:
    """Return the answer, wall seconds, and processor seconds of the child processes."""
    rows: list[Row] = []
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = card_named("topox-table3").run({}, never, rows.append)
    wall = time.monotonic() - began
    time.sleep(2)  # the children's time counts once they have ended
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def readings() -> None:
    """Print the deviations of the TopoOpt column, row by row, under each reading."""
    card = card_named("topox-table3")
    for variant in ("published", "released"):
        for links in ("shared", "booked"):
            for size in (8, 4):
                switches = card.settings(
                    {"topoopt_variant": variant, "links": links, "topoopt_bytes": size}
                )
                off = [topoopt_ms(row, switches) / row.topoopt_ms - 1 for row in TABLE]
                degree_four = max(
                    abs(one) for one, row in zip(off, TABLE, strict=True) if row.degree == 4
                )
                print(
                    f"{variant:9} {links:6} {size} bytes: "
                    + " ".join(f"{one:+5.0%}" for one in off)
                    + f"  mean {sum(map(abs, off)) / len(off):.1%}, degree 4 at most {degree_four:.0%}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--readings", action="store_true")
    options = parser.parse_args()
    answers = []
    for _ in range(options.runs):
        answer, wall, processor = timed()
        answers.append(answer)
        print(
            f"{len(answer.rows)} numbers in {wall:.1f} s (limit {LIMIT_S}), {processor:.1f} s of processor time on "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    print("identical on every run:", all(answer.rows == answers[0].rows for answer in answers))
    for row in answers[0].rows:
        print(
            f"{row.series:8} {row.item:>2}  theirs {row.theirs:8.3f}  ours {row.ours:8.3f} ms  {row.deviation:+7.1%}  "
            f"{row.verdict_words}"
        )
    print(answers[0].finding)
    for name, value, note in answers[0].facts:
        print(f"{name}: {value} ({note})")
    if options.readings:
        readings()


if __name__ == "__main__":
    main()
