"""A strategy search: what of it is chosen in the sidebar, the strategy file a reader brings, its run beside the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from topox_core.errors import InputError, one_line
from topox_core.fabrics.registry import FABRICS
from topox_core.model.cluster import Cluster
from topox_core.runs.run import FunctionRun, RunProgress, Stop
from topox_core.strategy.co_optimisation import CoProgress
from topox_core.strategy.fabric_table import StrategyTable, strategy_table
from topox_core.strategy.models import MODELS, Model
from topox_core.strategy.on_fabrics import ModelOnCluster, cluster_of
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search.evaluator import FastEvaluator, non_blocking
from topox_core.strategy.search.moves import MoveProgress, SearchSettings
from topox_core.strategy.search.search import Alternated, SearchResult, search, search_circuits
from topox_core.strategy.strategy import Placement, Strategy, load_strategy
from topox_core.text.numbers import time
from topox_core.training.job import Job
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.shell.charts import as_label, button, escape, file_box, quiet
from topox_ui.state.loading import loaded, own_job
from topox_ui.state.widgets import control, menu, number, pick, sidebar, sidebar_part, slide
from topox_ui.strategy.state import FIRST, LOADED, OWN_STRATEGY, StrategyState

SEARCH = RunKind(
    "search", 12, cancel_help="Stops at the next proposal; the best strategy so far is kept."
)
ON_FABRIC = RunKind(
    "on_fabric",
    8,
    cancel_help="Stops at the next proposal; the best strategy so far is run on its fabric and kept.",
)
# No time left is shown before so much is done.
TIME_LEFT_FROM = 0.03
Answer = SearchResult | Alternated


@dataclass(frozen=True)
class Search:
    """What is searched: a model on a cluster, on which network, by which rule, from where, with what fixed.

    Attributes
    ----------
    network
        One of ``NETWORKS``; a fabric is ``fabric``, which may have others ``beside`` it.
    """

    graph: OperatorGraph
    cluster: Cluster
    network: str
    settings: SearchSettings
    fixed: tuple[Placement, ...]
    start: Strategy | None
    fabric: str = ""
    beside: tuple[str, ...] = ()

    @property
    def on_fabric(self) -> bool:
        """Whether a fabric judges."""
        return self.network == "fabric"

    @property
    def kind(self) -> RunKind:
        """Which kind of run it is."""
        return ON_FABRIC if self.on_fabric else SEARCH

    @property
    def fabrics(self) -> tuple[str, ...]:
        """All fabrics that are searched for."""
        return tuple(name for name in FABRICS if name == self.fabric or name in self.beside)

    @property
    def key(self) -> str:
        """Everything the answer depends on; which of its fabrics is in the headline is not."""
        return (
            f"{self.graph.name}|{self.cluster.digest}|{self.network}|{self.fabrics}|{self.settings}|{self.fixed}|"
            f"{self.start}"
        )

    def run(self, stop: Stop, on_step: Callable[[Any], None]) -> Answer | StrategyTable | None:
        """Search; raises InputError where nothing fits or a file does not suit the model."""
        graph, cluster, settings = self.graph, self.cluster, self.settings
        more: dict[str, Any] = {"fixed": self.fixed, "stop": stop, "on_progress": on_step}
        if self.on_fabric:
            starts = () if self.start is None else (self.start,)
            model = ModelOnCluster(graph, cluster)
            return strategy_table(model, self.fabrics, settings, starts=starts, **more)
        sizes = cluster.servers, cluster.ports_per_server, cluster.port_gbps
        if self.network == "circuits":
            return search_circuits(graph, *sizes, settings, **more)
        evaluate = FastEvaluator(graph, non_blocking(*sizes))
        return search(graph, cluster.servers, evaluate, settings, start=self.start, **more)


def start(wanted: Search) -> None:
    """Search beside the page; a search that runs is ended first."""
    run_owner().start(
        wanted.kind, wanted.key, lambda _slots: FunctionRun(wanted.run, measure, "search")
    )


def measure(steps: tuple[MoveProgress | CoProgress, ...], elapsed_s: float) -> RunProgress:
    """Return how far a search is."""
    if not steps:
        return RunProgress(elapsed_s, 0.0)
    last = steps[-1]
    if isinstance(last, MoveProgress):
        share = min(1.0, last.proposals / max(1, last.budget))
        pieces = (last.proposals, last.budget, "proposals")
        words = f"best {time(last.best_ms)}"
        if last.proposals >= last.budget:
            words += "; now trying every change of one operator"
    else:
        share, pieces = last.share, ()
        words = f"{FABRICS[last.fabric]}: {last.doing}" if last.fabric else last.doing
        if last.done:
            words += f", {last.done} of {last.total}"
        if last.best_ms:
            words += f", best {time(last.best_ms)}"
    left_s = elapsed_s * (1 / share - 1) if share > TIME_LEFT_FROM else None
    return RunProgress(elapsed_s, share, *pieces, words=words, left_s=left_s)


SERVERS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
NETWORKS = {"switch": "one switch", "circuits": "circuits", "fabric": "a fabric"}
UPLOAD = "w_strategy_file"
WAYS = {"search": "operators", "plans": "plans"}


def pick_model() -> tuple[Model, str, int]:
    """Draw the first choices in the sidebar; return model, way and servers."""
    with sidebar_part("Model"):
        now, job = StrategyState.now(), own_job()
        names = ({} if job is None else {LOADED: "the loaded job"}) | {
            name: name for name in MODELS
        }
        name = menu(
            StrategyState, "model", names, label="Model", value=now.of, label_visibility="collapsed"
        )
        model = MODELS[name] if job is None or name != LOADED else _model_of(job)
        quiet(f"{escape(model.meaning)}")
        way = "plans" if name == LOADED else "search"
        if model.shape is not None and name != LOADED:
            way = pick(
                StrategyState,
                "way",
                WAYS,
                label="Split",
                value=now.way or "plans",
                help="plans: ranks all TP x PP x DP x CP x EP and microbatches that fit the memory. "
                "operators: searches a split for each operator.",
            )
        servers = slide(
            StrategyState,
            "servers",
            {*SERVERS, model.servers},
            label="Servers",
            value=now.servers or model.servers,
        )
    return model, way, servers


def _model_of(job: Job) -> Model:
    """Return the loaded job as a model whose plans are ranked."""
    servers = max(1, job.plan.gpus // job.machine.gpus_per_server)
    build = MODELS[FIRST].build  # plans of a job are ranked whole, not operator by operator
    opened = loaded()
    name = job.name if opened is None else opened.title
    return Model(name, job.heading, servers, build, job.shape, job.plan.batch)


def pick_search(graph: OperatorGraph, servers: int) -> Search:
    """Draw the search's choices in the sidebar; raises InputError where an imported strategy does not suit the model."""
    fabric, beside, delay_ms, tried = "", (), 0.0, "budget"
    with sidebar():
        ports = slide(StrategyState, "ports")
        speed = slide(StrategyState, "port_gbps")
        network = pick(
            StrategyState,
            "network",
            NETWORKS,
            label="Network",
            help="one switch: only the ports of a server limit it. circuits: fixed before the "
            "job and searched again as the strategy changes (TopoOpt's two searches in turn). a fabric: judged on the fabric "
            "that will run it, by the times of Compare.",
        )
        if network == "fabric":
            fabric = menu(StrategyState, "fabric", FABRICS, label="Judged on")
            beside = control(
                "pills",
                StrategyState,
                "beside",
                label="Beside",
                options=FABRICS,
                selection_mode="multi",
                help="Each gets a search of its own; the table then has every strategy on every fabric.",
            )
            delay_ms = slide(StrategyState, "delay_ms")
            tried = "proposals"
        budget = slide(StrategyState, tried, words=lambda v: f"{v:,}")
        with st.expander("More choices", key="more_search", type="compact"):
            memory = StrategyState.now().memory_gb
            memory = number(
                StrategyState,
                "memory_gb",
                label="Memory of a GPU (GB)",
                value=float(graph.memory_gb) if memory is None else memory,
                step=8.0,
            )
            alpha = number(
                StrategyState,
                "alpha",
                label="alpha",
                help="A strategy dT ms slower is taken with probability exp(-alpha dT).",
            )
            seed = number(StrategyState, "seed", step=1)
    fixed, start = _imported(graph, servers)
    if start is not None and network == "circuits":
        raise InputError("can only stay fixed in a search on circuits", file="imported strategy")
    cluster = cluster_of(servers, ports, speed, delay_ms)
    settings = SearchSettings(budget, alpha, seed, memory)
    return Search(graph, cluster, network, settings, fixed, start, fabric, beside)


def _imported(graph: OperatorGraph, servers: int) -> tuple[tuple[Any, ...], Strategy | None]:
    """Return what the imported file fixes, or where it starts."""
    known = OWN_STRATEGY.get()
    if known is None:
        return (), None
    data, name = known
    strategy = load_strategy(data, name, graph)
    if strategy.servers != servers:
        problem = f"must be {servers}, the servers chosen here (got {strategy.servers})"
        raise InputError(problem, file=name, field="servers")
    if StrategyState.now().import_as == "fixed":
        return strategy.placements, None
    return (), strategy


def import_box() -> None:
    """Offer to bring a strategy file."""
    with st.popover("Import", icon=":material/upload:"):
        file_box(
            "Strategy (.strategy.json)",
            UPLOAD,
            lambda data, file: OWN_STRATEGY.set((data, file)),
            OWN_STRATEGY.pop,
            type=["json"],
            max_upload_size=5,
        )
        known = OWN_STRATEGY.get()
        if known is not None and st.session_state.get(UPLOAD) is None:
            # The box is empty after a reload or another page; the file is not forgotten.
            name = as_label(one_line(known[1], 40))
            button(f"Leave out {name}", "drop_strategy", "close", OWN_STRATEGY.pop)
        pick(
            StrategyState,
            "import_as",
            {"fixed": "stay fixed", "start": "are the start"},
            label="Its operators",
            help="A file may name only some operators. Fixed: the search does not change them.",
        )
