"""``make fuzz``: many malformed files of every format, each read in a process whose memory and CPU are measured.

Prints the seed of every round. The smallest file that breaks a promise is kept in ``build/fuzz``.
"""

import argparse
import random
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from tests.fuzz.crafted import CRAFTED, MAX_MB, MAX_S, read_crafted
from tests.fuzz.formats import FORMATS
from tests.fuzz.reading import Reading, read_case

KEPT = Path("build/fuzz")
# hypothesis keeps what it drew: rounds of so many cases keep that small.
ROUND = 1_000
# Bytes that this process and those that read may ask for; then they have a MemoryError, and the machine has none.
MAX_OF_ALL = 6 << 30


class Reader:
    """The process that reads; a new one takes over where one ended."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def read(self, name: str, data: bytes) -> Reading:
        """Return what came of a case; the end of the process is one more thing that may."""
        self._pool = self._pool or ProcessPoolExecutor(1, get_context("spawn"))
        try:
            return self._pool.submit(read_case, name, data).result()
        except BrokenProcessPool as ended:
            self._pool = None
            return Reading(str(ended), False, 0.0, 0.0)


def fuzz(name: str, cases: int, number: int, reader: Reader) -> tuple[list[Reading], str]:
    """Read cases of one format; return what came of them and the first broken promise, made small."""
    readings: list[Reading] = []

    @seed(number)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @given(FORMATS[name].cases)
    def promise(data: bytes) -> None:
        reading = reader.read(name, data)
        readings.append(reading)
        if reading.problem:
            # The last one written is the smallest: hypothesis ends with it.
            KEPT.mkdir(parents=True, exist_ok=True)
            (KEPT / f"{name}-{number}.{FORMATS[name].file}").write_bytes(data)
            raise AssertionError(reading.problem)

    try:
        promise()
    except (AssertionError, BaseExceptionGroup) as broken:
        return readings, str(broken).splitlines()[0][:300]
    return readings, ""


def main() -> int:
    """Fuzz every format in rounds; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=60_000, help="over all formats")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=list(FORMATS))
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_OF_ALL, MAX_OF_ALL))
    reader, began, broken, total = Reader(), time.monotonic(), 0, 0
    each = -(-options.cases // len(options.formats))
    print(f"seed {options.seed}: {each:,} cases of each of {len(options.formats)} formats")
    print(
        f"{'format':14} {'seed':>10} {'cases':>7} {'refused':>8} {'most MB':>8} {'most CPU s':>11}"
    )
    for name in options.formats:
        for first in range(0, each, ROUND):
            number = (options.seed + 7_919 * first + sum(name.encode())) % 2**31
            readings, problem = fuzz(name, min(ROUND, each - first), number, reader)
            total += len(readings)
            print(
                f"{name:14} {number:>10} {len(readings):>7,} {sum(r.refused for r in readings):>8,} "
                f"{max(r.mb for r in readings):>8.0f} {max(r.cpu_s for r in readings):>11.2f}",
                flush=True,
            )
            if problem:
                broken += 1
                print(f"  BROKEN: {problem}; kept in {KEPT}/{name}-{number}.{FORMATS[name].file}")
    for name in CRAFTED if options.formats == list(FORMATS) else ():
        with TemporaryDirectory() as folder:
            reading = read_crafted(name, Path(folder))
        problem = reading.problem or ("" if reading.cpu_s <= MAX_S else "took too long")
        problem = problem or ("" if reading.mb <= MAX_MB else "took too much memory")
        total, broken = total + 1, broken + bool(problem)
        print(f"{name:40} {reading.mb:>8.0f} MB {reading.cpu_s:>7.2f} CPU s", flush=True)
        if problem:
            print(f"  BROKEN: {problem}")
    print(
        f"{total:,} cases in {time.monotonic() - began:,.0f} s, {broken} rounds with a broken promise"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
