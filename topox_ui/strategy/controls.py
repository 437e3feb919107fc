"""A strategy search: what of it is chosen in the sidebar, the strategy file a reader brings, its run beside the page."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from topox_core.errors import InputError, one_line
from topox_core.fabrics.registry import FABRICS
from topox_core.model.cluster import DELAYS_MS, SPEEDS_GBPS
from topox_core.model.execution import Layout
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import FunctionRun, RunProgress, Stop
from topox_core.strategy.fabric_table import StrategyTable, strategy_table
from topox_core.strategy.models import MODELS, Model
from topox_core.strategy.on_fabrics import ModelOnCluster, cluster_of
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search.co_optimisation import CoProgress
from topox_core.strategy.search.evaluator import FastEvaluator, laid_out, non_blocking
from topox_core.strategy.search.moves import MoveProgress, SearchSettings
from topox_core.strategy.search.search import Alternated, SearchResult, alternate, search
from topox_core.strategy.strategy import Placement, Strategy, load_strategy
from topox_core.text.numbers import delay_label, time
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.training.job import Job
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.shell.charts import as_label, button, escape, file_box, quiet
from topox_ui.state.loading import loaded, own_job
from topox_ui.state.widgets import control, menu, number, pick, sidebar, sidebar_part, slide
from topox_ui.strategy.details import strategy_link
from topox_ui.strategy.state import FIRST, LOADED, OWN_STRATEGY, StrategyState

SEARCH = RunKind(
    "search", 12, cancel_help="Stops at the next proposal; the best strategy so far is kept."
)
Answer = SearchResult | Alternated


@dataclass(frozen=True)
class Request:
    """What is searched: a model on servers, on which network, by which rule, from where, with what fixed."""

    graph: OperatorGraph
    servers: int
    ports: int
    port_gbps: float
    network: str
    settings: SearchSettings
    fixed: tuple[Placement, ...] = ()
    start: Strategy | None = None

    @property
    def key(self) -> str:
        """Everything the answer depends on."""
        return (
            f"{self.graph.name}|{self.servers}|{self.ports}|{self.port_gbps}|{self.network}|{self.settings}|{self.fixed}|"
            f"{self.start}"
        )


def run(request: Request, stop: Stop, on_step: Callable[[MoveProgress], None]) -> Answer:
    """Search; raises InputError where nothing fits or a file does not suit the model."""
    graph, servers = request.graph, request.servers
    if request.network == "switch":
        evaluate = FastEvaluator(graph, non_blocking(servers, request.ports, request.port_gbps))
        return search(
            graph,
            servers,
            evaluate,
            request.settings,
            fixed=request.fixed,
            start=request.start,
            stop=stop,
            on_progress=on_step,
        )

    def find(tasks: TaskGraph) -> Layout:
        return find_layout(traffic_of(tasks, servers), request.ports).layout

    return alternate(
        graph,
        servers,
        find,
        lambda layout: FastEvaluator(graph, laid_out(layout, request.port_gbps)),
        request.settings,
        fixed=request.fixed,
        stop=stop,
        on_progress=on_step,
    )


def start(request: Request) -> None:
    """Search beside the page; a search that runs is ended first."""
    run_owner().start(
        SEARCH,
        request.key,
        lambda _slots: FunctionRun(partial(run, request), partial(measure, request), "search"),
    )


def measure(request: Request, steps: tuple[MoveProgress, ...], elapsed_s: float) -> RunProgress:
    """Return how far a search is, in proposals."""
    done, total = steps[-1].proposals if steps else 0, request.settings.proposals
    words = f"best {time(steps[-1].best_ms)}" if steps else ""
    if done >= total:
        words += "; now trying every change of one operator"
    left_s = elapsed_s * max(0.0, total / done - 1) if done else None
    share = min(1.0, done / max(1, total))
    return RunProgress(elapsed_s, share, done, total, "proposals", words, left_s)


ON_FABRIC = RunKind(
    "on_fabric",
    8,
    cancel_help="Stops at the next proposal; the best strategy so far is run on its fabric and kept.",
)
# No time left is shown before so much is done.
TIME_LEFT_FROM = 0.03


@dataclass(frozen=True)
class FabricSearch:
    """What is searched: a model on a cluster, for which fabric, beside which others, with what fixed."""

    model: ModelOnCluster
    fabric: str
    beside: tuple[str, ...]
    settings: SearchSettings
    fixed: tuple[Placement, ...] = ()
    start: Strategy | None = None

    @property
    def fabrics(self) -> tuple[str, ...]:
        """All fabrics that are searched for."""
        return tuple(name for name in FABRICS if name == self.fabric or name in self.beside)

    @property
    def key(self) -> str:
        """Everything the table depends on; which of its fabrics is in the headline is not."""
        return (
            f"{self.model.graph.name}|{self.model.cluster.digest}|{self.fabrics}|{self.settings}|{self.fixed}|"
            f"{self.start}"
        )


def start_on_fabrics(search: FabricSearch) -> None:
    """Search beside the page; a search that runs is ended first."""
    run_owner().start(
        ON_FABRIC,
        search.key,
        lambda _slots: FunctionRun(
            partial(_run_on_fabrics, search), _measure_on_fabrics, "search on fabrics"
        ),
    )


def _run_on_fabrics(
    search: FabricSearch, stop: Stop, on_step: Callable[[CoProgress], None]
) -> StrategyTable | None:
    return strategy_table(
        search.model,
        search.fabrics,
        search.settings,
        fixed=search.fixed,
        starts=() if search.start is None else (search.start,),
        stop=stop,
        on_progress=on_step,
    )


def _measure_on_fabrics(steps: tuple[CoProgress, ...], elapsed_s: float) -> RunProgress:
    """Return how far a search is."""
    if not steps:
        return RunProgress(elapsed_s, 0.0)
    last = steps[-1]
    words = f"{FABRICS[last.fabric]}: {last.doing}" if last.fabric else last.doing
    if last.done:
        words += f", {last.done} of {last.total}"
    if last.best_ms:
        words += f", best {time(last.best_ms)}"
    left_s = elapsed_s * (1 / last.share - 1) if last.share > TIME_LEFT_FROM else None
    return RunProgress(elapsed_s, last.share, words=words, left_s=left_s)


SERVERS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
BUDGETS = (0, 100, 300, 1_000, 3_000, 10_000, 30_000)
PORTS = (1, 2, 4, 6, 8)
ON_FABRIC_BUDGETS = (0, 10, 30, 100, 300, 1_000)
NETWORKS = {"switch": "one switch", "circuits": "circuits", "fabric": "a fabric"}
UPLOAD = "w_strategy_file"
WAYS = {"search": "operators", "plans": "plans"}

SearchT = TypeVar("SearchT", FabricSearch, Request)


def pick_model() -> tuple[Model, str, int]:
    """Draw the first choices in the sidebar; return model, way and servers."""
    with sidebar_part("Model"):
        now, job = StrategyState.now(), own_job()
        names = ({} if job is None else {LOADED: "the loaded job"}) | {
            name: name for name in MODELS
        }
        name = menu(
            "Model", StrategyState, "model", names, value=now.of, label_visibility="collapsed"
        )
        model = MODELS[name] if job is None or name != LOADED else _model_of(job)
        quiet(f"{escape(model.meaning)}")
        way = "plans" if name == LOADED else "search"
        if model.shape is not None and name != LOADED:
            way = pick(
                "Split",
                StrategyState,
                "way",
                WAYS,
                value=now.way or "plans",
                help="plans: ranks all TP x PP x DP x CP x EP and microbatches that fit the memory. "
                "operators: searches a split for each operator.",
            )
        servers = slide(
            "Servers",
            StrategyState,
            "servers",
            {*SERVERS, model.servers},
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


def pick_request(graph: OperatorGraph, servers: int) -> Request | FabricSearch:
    """Draw the search's choices in the sidebar; raises InputError where an imported strategy does not suit the model."""
    with sidebar():
        ports = slide("Ports per server", StrategyState, "ports", PORTS)
        speed = slide(
            "Port speed", StrategyState, "port_gbps", SPEEDS_GBPS, words=lambda v: f"{v:g}G"
        )
        network = pick(
            "Network",
            StrategyState,
            "network",
            NETWORKS,
            help="one switch: only the ports of a server limit it. circuits: fixed before the "
            "job and searched again as the strategy changes (TopoOpt's two searches in turn). a fabric: judged on the fabric "
            "that will run it, by the times of Compare.",
        )
        if network == "fabric":
            fabric, beside, delay_ms = _pick_fabric()
        budgets = ("proposals", ON_FABRIC_BUDGETS) if network == "fabric" else ("budget", BUDGETS)
        budget = slide("Strategies to try", StrategyState, *budgets, words=lambda v: f"{v:,}")
        with st.expander("More choices", key="more_search", type="compact"):
            memory = StrategyState.now().memory_gb
            memory = number(
                "Memory of a GPU, GB",
                StrategyState,
                "memory_gb",
                0.0,
                10_000.0,
                value=float(graph.memory_gb) if memory is None else memory,
                step=8.0,
            )
            alpha = number(
                "alpha",
                StrategyState,
                "alpha",
                0.0,
                1e6,
                help="A strategy dT ms slower is taken with probability exp(-alpha dT).",
            )
            seed = number("Seed", StrategyState, "seed", 0, 1_000_000, step=1)
    settings = SearchSettings(budget, alpha, seed, memory)
    fixed, start = _imported(graph, servers)
    if network == "fabric":
        cluster = cluster_of(servers, ports, speed, delay_ms)
        model = ModelOnCluster(graph, cluster, memory)
        return FabricSearch(model, fabric, beside, settings, fixed, start)
    if start is not None and network == "circuits":
        raise InputError("can only stay fixed in a search on circuits", file="imported strategy")
    return Request(graph, servers, ports, speed, network, settings, fixed, start)


def _pick_fabric() -> tuple[str, tuple[str, ...], float]:
    """Draw which fabric judges, beside which others, and the delay of their switches."""
    fabric = menu("Judged on", StrategyState, "fabric", FABRICS)
    beside = control(
        "pills",
        "Beside",
        StrategyState,
        "beside",
        options=FABRICS,
        selection_mode="multi",
        help="Each gets a search of its own; the table then has every strategy on every fabric.",
    )
    delay_ms = slide(
        "Reconfiguration delay", StrategyState, "delay_ms", DELAYS_MS, words=delay_label
    )
    return fabric, tuple(beside), delay_ms


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


def search_actions(
    kind: RunKind,
    search: SearchT,
    start: Callable[[SearchT], None],
    take_away: Callable[[], None] | None,
) -> None:
    """Draw what can be done: search, which rests while a search runs, or take the answer away; import, and link.

    Parameters
    ----------
    take_away
        Offers the answer; None while there is none.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="strategy_actions"):
        if take_away is None:
            running = run_owner().run(kind, search.key) is not None
            button("Search", "search", "search", start, search, primary=True, disabled=running)
        import_box()
        if take_away is not None:
            take_away()
        strategy_link()


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
            "Its operators",
            StrategyState,
            "import_as",
            {"fixed": "stay fixed", "start": "are the start"},
            help="A file may name only some operators. Fixed: the search does not change them.",
        )
