"""A strategy search beside the page: in a thread of its own, watched, cancelled, kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st

from topox_core.errors import InputError
from topox_core.model.task_graph import TaskGraph
from topox_core.strategy.alternation import Alternated, alternate
from topox_core.strategy.evaluator import FastEvaluator
from topox_core.strategy.moves import MoveProgress, SearchSettings
from topox_core.strategy.network import laid_out, non_blocking
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search import SearchResult, search
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.topology.layout import Layout
from topox_ui.schedule.solving import BUSY, places

Answer = SearchResult | Alternated[Layout]


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


def run(request: Request, stop: Callable[[], bool], tell: Callable[[MoveProgress], None]) -> Answer:
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
            on_progress=tell,
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
        on_progress=tell,
    )


@dataclass
class SearchDesk:
    """One session's search: what it told so far, and the answers that were found."""

    places: threading.BoundedSemaphore
    answers: dict[str, Answer] = field(default_factory=dict)
    told: list[MoveProgress] = field(default_factory=list)
    request: Request | None = None
    note: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failed: Exception | None = None

    def start(self, request: Request) -> None:
        """Start a search; one that runs is ended first."""
        self.close()
        self.note = ""
        if not self.places.acquire(blocking=False):
            self.note = BUSY
            return
        self.request, self.told, self._failed, self._stop = request, [], None, threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(request, self._stop), daemon=True, name="strategy search"
        )
        self._thread.start()

    def _work(self, request: Request, stop: threading.Event) -> None:
        try:
            answer = run(request, stop.is_set, self.told.append)
            self.answers[request.key] = answer
            while len(self.answers) > 12:
                self.answers.pop(next(iter(self.answers)))
        except Exception as error:
            self._failed = error
        finally:
            self.places.release()

    @property
    def running(self) -> bool:
        """Whether a search runs."""
        return self._thread is not None and self._thread.is_alive()

    def poll(self) -> bool:
        """Return True when the search has just ended; bad input becomes a note, everything else is raised here."""
        if self._thread is None or self._thread.is_alive():
            return False
        self._thread, failed, self._failed = None, self._failed, None
        if isinstance(failed, InputError):
            self.note = str(failed)
        elif failed is not None:
            raise failed
        return True

    def cancel(self) -> None:
        """Ask the search to stop; it answers with the best so far."""
        self._stop.set()

    def close(self) -> None:
        """End the search and wait for it (it asks before every proposal)."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
            self._thread = None


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda desk: desk.close())
def search_desk() -> SearchDesk:
    """Return this session's search; closing the tab ends it."""
    return SearchDesk(places())
