"""Make the first answers of the samples in ``sample_data/answers`` afresh: ``python tools/make_answers.py``."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from topox_core.fabrics.scheduled import schedule  # noqa: E402
from topox_core.workloads.samples import SAMPLES, load_sample  # noqa: E402
from topox_ui.answers.case import Case, listing  # noqa: E402
from topox_ui.answers.first import FOLDER, answer_record  # noqa: E402
from topox_ui.state.scenario import Scenario  # noqa: E402


def first_visit(name: str) -> Case:
    """Return the case of a sample as a page opens it without any choice."""
    graph, cluster = load_sample(name)
    now = Scenario(source="sample", name=name)
    return Case(graph, now.cluster(cluster), now.settings())


def main() -> None:
    """Schedule every sample, and write what came out."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json.gz"):
        old.unlink()
    for name in SAMPLES:
        case = first_visit(name)
        result = schedule(case.graph, case.cluster, listing(case.settings))
        content = json.dumps(answer_record(result), allow_nan=False, separators=(",", ":")).encode()
        file = FOLDER / f"{case.graph.digest[:16]}.json.gz"
        file.write_bytes(gzip.compress(content, mtime=0))
        sys.stdout.write(f"{name}: {file.name}, {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
