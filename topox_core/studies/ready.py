"""Studies to begin with: what pages show of one job, as files that can be changed, kept and sent to a cluster."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from topox_core.economics.comparison import MOVED_PARTS
from topox_core.economics.networks import Counting
from topox_core.economics.price_sets import DEFAULT_SET, price_set
from topox_core.errors import InputError
from topox_core.fabrics.crossover.sweep import MAP_DELAYS_MS, MAP_SPEEDS_GBPS, with_degree
from topox_core.fabrics.registry import MAPPED
from topox_core.io.content import read
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.library.run_library import RunLibrary
from topox_core.model.cluster import Cluster
from topox_core.model.quantities import SMALL_COUNTS
from topox_core.rails import delay as rail_delay
from topox_core.studies.keys import GPUS, RAIL_CONTROLS, SEED
from topox_core.studies.study import FORMAT, VERSION, Study, load_study, study_of
from topox_core.studies.study_run import kept_by
from topox_core.studies.subject import resolve, subject_of
from topox_core.tdm.algorithms.catalogue import DEFAULT_ALGORITHMS
from topox_core.tdm.mixes.deployment import JOBS

JsonRecord = Mapping[str, Any]
_SAMPLE: JsonRecord = {"kind": "sample", "name": "race"}
_FIRST: JsonRecord = {"kind": "sample", "name": "moe"}  # what pages show where no job is chosen
_RAIL: JsonRecord = {"kind": "rails", "preset": "llama3-8b-perlmutter"}
_TURNED = ("nics", "fibre", "look_ahead")
# The points of the first ready study about the samples; ``tools/make_answers.py`` writes them.
SHIPPED = SAMPLE_FOLDER / "what-matters.json.gz"


@dataclass(frozen=True)
class Ready:
    """A study to begin with.

    Attributes
    ----------
    title, question
        Its name, and what it answers in a sentence.
    kinds
        Kinds of subject that it can be about; the first is the usual one.
    subject
        What it is about unless another one is chosen.
    rest
        Its record without name and subject, or what makes it of the cluster that it begins from.
    """

    title: str
    question: str
    kinds: tuple[str, ...]
    subject: JsonRecord
    rest: JsonRecord | Callable[[Cluster], JsonRecord]

    def study(self, subject: JsonRecord | None = None) -> Study:
        """Return the study, about another subject if one is given; raises InputError."""
        return study_of(self.record(subject), "study")

    def record(
        self,
        subject: JsonRecord | None = None,
        cluster: Cluster | None = None,
        fixed: JsonRecord = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Return it as a file has it.

        Parameters
        ----------
        cluster, fixed
            The cluster that it begins from, and where that is not the subject's own, by key what differs.

        Raises
        ------
        InputError
            If it begins from the cluster of a subject that cannot be read.
        """
        about = dict(self.subject if subject is None else subject)
        head = {"format": FORMAT, "version": VERSION, "name": self.title, "subject": about}
        rest = self.rest
        if callable(rest):
            own = cluster or resolve(subject_of(about)).cluster
            assert own is not None, "only task graphs have a cluster to begin from"
            rest = rest(own)
        # Where one axis moves at a time, the others stay at what is fixed; in a grid none is fixed.
        swept = set() if rest.get("design") == _ALONE else {axis["key"] for axis in rest["axes"]}
        held = {key: value for key, value in fixed.items() if key not in swept}
        held |= rest.get("fixed", {})
        return {
            **head,
            **({"fixed": held} if held else {}),
            **{k: v for k, v in rest.items() if k != "fixed"},
        }


_GRAPHS = ("sample", "workload", "job", "files", "recorded")
_ALONE = {"kind": "one_at_a_time"}


def _what_matters(cluster: Cluster) -> dict[str, Any]:
    """Return a study of what an iteration depends on: delay, port speed and ports of a cluster, one at a time."""
    delay, gbps = cluster.reconfiguration_ms, cluster.port_gbps
    moved = {
        "cluster.reconfiguration_ms": [0.0, 10 * delay] if delay else [1.0, 10.0],
        "cluster.port_gbps": [gbps / 2, 2 * gbps],
        "cluster.degree": _other_degrees(cluster),
    }
    return {
        "axes": [{"key": key, "values": values} for key, values in moved.items() if values],
        "design": _ALONE,
        "measures": ["iteration_ms", "bound_ms", "changes", "dark_share"],
    }


def _other_degrees(cluster: Cluster) -> list[int]:
    """Return half and twice the ports of a server, as far as the cluster can have them."""
    found = []
    for ports in (cluster.ports_per_server // 2, 2 * cluster.ports_per_server):
        with suppress(InputError):
            found.append(with_degree(cluster, ports).ports_per_server)
    return found


def rounds_record(
    jobs: Sequence[int] = JOBS,
    contexts: Sequence[int] = (),
    seeds: int = 10,
    algorithms: Sequence[str] = DEFAULT_ALGORITHMS,
    fixed: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return a study of the rounds of sets of jobs, seed by seed, so that every point has something soon."""
    axes: list[dict[str, Any]] = [{"key": SEED, "range": {"from": 0, "to": seeds - 1}}]
    if contexts:
        axes.append({"key": "tdm.context", "values": list(contexts)})
    axes.append({"key": "tdm.jobs", "values": list(jobs)})
    axes.append({"key": "tdm.algorithm", "values": list(algorithms)})
    record: dict[str, Any] = {"subject": {"kind": "tdm"}, "axes": axes}
    return record | ({"fixed": dict(fixed)} if fixed else {})


def _tornado() -> dict[str, Any]:
    """Return a study that moves every price to half and to double, and every choice of counting, one at a time."""
    counting, catalogue = Counting(), price_set(DEFAULT_SET)
    moved: dict[str, list[Any]] = {
        f"prices.{name}.{field}": [value / 2, value * 2]
        for name in MOVED_PARTS
        for field in ("price_usd", "power_w")
        if (value := getattr(catalogue.part(name), field))
    }
    for field in ("ocs_ports_per_gpu", "ocs_transceivers_per_gpu"):
        count = getattr(counting, field)
        moved[f"network.{field}"] = [value for value in (count // 2, 2 * count) if value]
    moved["network.method"] = ["whole-switches"]
    moved["network.switch_transceivers"] = [not counting.at_switches(catalogue)]
    moved |= {f"network.{field}": [not getattr(counting, field)] for field in _TURNED}
    return {
        "fixed": {"network.gpus": GPUS, "prices": DEFAULT_SET},
        "axes": [{"key": key, "values": values} for key, values in moved.items()],
        "design": _ALONE,
    }


READY: Mapping[str, Ready] = {
    "what-matters": Ready(
        "What the iteration depends on most",
        "How much does a slower switch, a faster port or another port change the iteration?",
        _GRAPHS,
        _FIRST,
        _what_matters,
    ),
    "crossover-map": Ready(
        "Which network wins by delay and port speed",
        "Which network is the fastest, at each delay and port speed?",
        _GRAPHS,
        _SAMPLE,
        {
            "axes": [
                {"key": "cluster.port_gbps", "values": list(MAP_SPEEDS_GBPS)},
                {"key": "cluster.reconfiguration_ms", "values": list(MAP_DELAYS_MS)},
                {"key": "fabric", "values": list(MAPPED)},
            ],
            "measures": ["iteration_ms", "bound_ms", "changes", "dark_share"],
        },
    ),
    "ports-and-speed": Ready(
        "What more or faster ports save",
        "Which network is fastest, and which ports give most iterations for a dollar?",
        _GRAPHS,
        _SAMPLE,
        {
            "axes": [
                {"key": "cluster.degree", "values": list(SMALL_COUNTS[:5])},
                {"key": "cluster.port_gbps", "values": list(MAP_SPEEDS_GBPS)},
                {"key": "fabric", "values": ["fat_tree", "static", "scheduled"]},
            ],
        },
    ),
    "seeds": Ready(
        "How much the random seed matters",
        "Which network is the fastest, over random draws and delays?",
        ("workload", "job"),  # of a job that is given nothing is drawn
        {"kind": "workload", "generator": "random-layered"},
        {
            "axes": [
                {"key": "cluster.reconfiguration_ms", "values": [0, 0.1, 0.5, 1, 2, 5, 10, 20, 50]},
                {"key": "fabric", "values": list(MAPPED)},
                {"key": SEED, "replicates": 8},
            ],
            "measures": ["iteration_ms", "gap", "dark_share"],
        },
    ),
    "jobs-in-turns": Ready(
        "What time division gains",
        "How much shorter does time division make a round, by number of jobs?",
        ("tdm",),
        {"kind": "tdm"},
        rounds_record(),
    ),
    "rails-delay": Ready(
        "How slow a rail's switch may be",
        "How much longer does a delay make the iteration on a photonic rail, on demand and provisioned?",
        ("rails",),
        _RAIL,
        {
            "axes": [
                {"key": "rails.reconfiguration_ms", "values": list(rail_delay.RAIL_DELAYS_MS)},
                {"key": "rails.control", "values": list(reversed(RAIL_CONTROLS))},
            ],
        },
    ),
    "cost-tornado": Ready(
        "What the price of rails depends on",
        "Which price or way of counting changes the price of photonic rails most?",
        ("network",),
        {"kind": "network"},
        _tornado(),
    ),
}


def study_given(
    study: Study | JsonRecord | str | Path, library: RunLibrary | None = None
) -> tuple[Study, Path | None]:
    """Return a study by its file, its record or its name among the ready ones, and where its own paths begin.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    if isinstance(study, Study):
        return study, None
    kept = kept_by(library)
    if isinstance(study, Mapping):
        return study_of(study, "study", kept=kept), None
    path = Path(study)
    if str(study) in READY and not path.exists():
        return READY[str(study)].study(), None
    return load_study(read(path), path.name, path.parent, kept), path.parent
