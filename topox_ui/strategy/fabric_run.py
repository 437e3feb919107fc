"""A search on the fabric that will run the strategy, beside the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from topox_core.fabrics.registry import FABRICS
from topox_core.runs.run import FunctionRun, RunProgress
from topox_core.runs.stopping import Stop
from topox_core.strategy.co_optimisation import CoProgress
from topox_core.strategy.fabric_table import StrategyTable, strategy_table
from topox_core.strategy.moves import SearchSettings
from topox_core.strategy.on_fabrics import ModelOnCluster
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.text.numbers import time
from topox_ui.runs.owner import RunKind, run_owner

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


def start(search: FabricSearch) -> None:
    """Search beside the page; a search that runs is ended first."""
    run_owner().start(
        ON_FABRIC,
        search.key,
        lambda _slots: FunctionRun(partial(_run, search), _measure, "search on fabrics"),
    )


def _run(
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


def _measure(steps: tuple[CoProgress, ...], elapsed_s: float) -> RunProgress:
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
