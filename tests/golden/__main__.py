"""Whether any answer has changed: the commands of ``commands.txt`` beside the record of what they answered.

    python -m tests.golden            compute anew, print what differs, old beside new
    python -m tests.golden --renew    and write the record

Everything goes through the command line, which a redesign leaves as it is. A difference is a defect,
or stands in the change log with its reason.
"""

import argparse
import contextlib
import hashlib
import io
import json
import math
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "sample_data"
RECORD = HERE / "record.txt"
# What was asked, of which program and files, and what a clock says.
NO_ANSWER = re.compile(
    r"^(settings|cluster|format|version|source|threads|manifest)\b|(^|\.)(wall|working|time_limit)_s$"
)
MAX_LIST = 12  # leaves of a list that are recorded one by one
MAX_TEXT = 80  # characters; longer ones are sentences, which have tests of their own
SAME = 1e-9  # relative


def commands() -> list[list[str]]:
    """Return the command lines, lists expanded, in groups that share the files they write."""
    groups: list[list[str]] = [[]]
    for line in (HERE / "commands.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip():
            groups.append([])
        elif not line.startswith("#"):
            groups[-1].extend(_expanded(line))
    return [group for group in groups if group]


def answers(group: list[str]) -> dict[str, str]:
    """Run commands in one folder; return what each answered, leaf by leaf."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            f"{line} | {path}": value
            for line in group
            for path, value in _leaves(_answer(line, folder))
        }


def compute() -> dict[str, str]:
    """Run every command, groups of them in two processes; return all answers in the order of the file."""
    found: dict[str, str] = {}
    with ProcessPoolExecutor(2) as pool:
        for part in pool.map(answers, commands()):
            found.update(part)
    return found


def read_record() -> dict[str, str]:
    """Return the record: a line of a command and leaf, to its value."""
    found, command = {}, ""
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            leaf, _, value = line.strip().partition(" =")
            found[f"{command} | {leaf}"] = value.strip()
        else:
            command = line
    return found


def write_record(found: dict[str, str]) -> None:
    """Write the record: a command, and its leaves under it."""
    lines, last = [], ""
    for key, value in found.items():
        command, leaf = key.split(" | ", 1)
        lines += [command] * (command != last) + [f"  {leaf} = {value}"]
        last = command
    RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return a line for each leaf that changed, appeared or went."""
    return [
        f"{key}: {old.get(key, 'nothing')} -> {new.get(key, 'nothing')}"
        for key in dict.fromkeys((*old, *new))
        if not _same(old.get(key), new.get(key))
    ]


def main() -> int:
    """Print differences; return 1 if there are any and the record stays."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="write the record anew")
    began = time.perf_counter()
    renew = parser.parse_args().renew
    new = compute()
    old = read_record() if RECORD.exists() else {}
    changed = differences(old, new)
    print(*changed, sep="\n", end="\n" if changed else "")
    print(f"{len(new):,} answers in {time.perf_counter() - began:.0f} s, {len(changed):,} differ")
    if renew:
        write_record(new)
    return 1 if changed and not renew else 0


def _expanded(line: str) -> Iterator[str]:
    match = re.search(r"@\{([^}]*)\}", line)
    if match is None:
        yield line
        return
    for value in match[1].split(","):
        yield from _expanded(line.replace(match[0], value))


def _answer(line: str, folder: str) -> object:
    from topox_core.cli.main import main as command

    text = line.format(samples=SAMPLES, out=folder, here=HERE)
    words = [word for part in shlex.split(text) for word in _job(part)]
    printed, errors = io.StringIO(), io.StringIO()
    os.environ["TOPOX_LIBRARY"] = str(Path(folder) / "runs.sqlite")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        try:
            status = command([*words, "--json"])
        except SystemExit as end:
            status = end.code
    try:
        return json.loads(
            printed.getvalue().replace(folder, "{out}").replace(str(SAMPLES), "{samples}")
        )
    except ValueError:
        return {"status": status, "said": errors.getvalue().strip()[-200:]}


def _job(word: str) -> list[str]:
    if not word.startswith("job:"):
        return [word]
    name = word.removeprefix("job:")
    graph = next(SAMPLES.glob(f"{name}.taskgraph.json*"))
    return [str(graph), str(SAMPLES / f"{name}.cluster.json")]


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if NO_ANSWER.search(path):
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        leaves = [
            leaf for index, inner in enumerate(value) for leaf in _leaves(inner, f"{path}[{index}]")
        ]
        if len(leaves) <= MAX_LIST:
            yield from leaves
        else:
            yield path, _digest(leaves)
    elif not isinstance(value, str) or len(value) <= MAX_TEXT:
        yield path, f"{value:.9g}" if isinstance(value, float) else str(value).strip()


def _digest(leaves: list[tuple[str, str]]) -> str:
    """Return how many leaves there are, the sum of their numbers, and a hash."""
    total = 0.0
    for _, value in leaves:
        with contextlib.suppress(ValueError):
            total += number if math.isfinite(number := float(value)) else 0.0
    text = "\n".join(f"{where} {what}" for where, what in leaves)
    return (
        f"{len(leaves)} values, sum {total:.9g}, {hashlib.sha256(text.encode()).hexdigest()[:10]}"
    )


def _same(old: str | None, new: str | None) -> bool:
    if old == new or old is None or new is None:
        return old == new
    try:
        return math.isclose(float(old), float(new), rel_tol=SAME)
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
