"""A strategy search beside the page, by operators or on the fabrics that will run it: what is searched, how far it is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from topox_core.fabrics.registry import FABRICS
from topox_core.model.execution import Layout
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import FunctionRun, RunProgress, Stop
from topox_core.strategy.alternation import Alternated, alternate
from topox_core.strategy.co_optimisation import CoProgress
from topox_core.strategy.evaluator import FastEvaluator, laid_out, non_blocking
from topox_core.strategy.fabric_table import StrategyTable, strategy_table
from topox_core.strategy.moves import MoveProgress, SearchSettings
from topox_core.strategy.on_fabrics import ModelOnCluster
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search import SearchResult, search
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.text.numbers import time
from topox_core.topology.finder import find_layout, traffic_of
from topox_ui.runs.owner import RunKind, run_owner

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
