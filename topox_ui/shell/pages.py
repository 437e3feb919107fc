"""The registry of pages: a new page is one entry here, and one file in ``pages/``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

from topox_ui.state.page_state import PageState
from topox_ui.state.store import states


@dataclass(frozen=True)
class Page:
    """One page of the workbench.

    Attributes
    ----------
    path, title
        Its script, and its name in the menu.
    states
        The models of what can be chosen on it, as ``module.Class`` within ``topox_ui``; imported
        when a link names them, so that no page waits for another one's imports.
    reads
        The models of other pages that count on it too.
    prefix
        What its keys begin with in a link.
    needs_graph
        Whether it is about the task graph that is loaded.
    group
        Under which heading of the menu it stands.
    listed
        Whether the menu has it; else another page leads to it.
    compiled
        Whether it shows nothing without compiled kernels.
    """

    path: str
    title: str
    states: tuple[str, ...]
    prefix: str = ""
    needs_graph: bool = False
    group: str = ""
    listed: bool = True
    reads: tuple[str, ...] = ()
    compiled: bool = False

    @property
    def carried(self) -> tuple[str, ...]:
        """Return the names of the models whose choices its address carries."""
        names = dict.fromkeys((*EVERYWHERE, *self.states, *self.reads))
        return tuple(name.rpartition(".")[2] for name in names)


EVERYWHERE = ("state.scenario.Scenario", "shell.page.Display")
CONTEST, PRICES = "answers.state.ContestState", "state.prices.Prices"
YOUR_JOB, JOBS_RAILS_COST = "Your job", "Jobs, rails, cost"
RESULTS, LEARN = "Studies and results", "Learning"
PAGES = (
    Page(
        "app.py",
        "Home",
        (*EVERYWHERE, "home.state.HomeState"),
        reads=(PRICES,),
    ),
    Page(
        "pages/1_Schedule.py",
        "Schedule",
        ("schedule.state.ScheduleState",),
        "",
        True,
        YOUR_JOB,
        reads=(PRICES,),
    ),
    Page("pages/2_Circuits.py", "Circuits", ("circuits.state.CircuitsState",), "", True, YOUR_JOB),
    Page(
        "pages/3_Compare.py",
        "Compare",
        (CONTEST, "compare.state.CompareState", "compare.state.GatingState"),
        "",
        True,
        YOUR_JOB,
        reads=(PRICES,),
        compiled=True,
    ),
    Page(
        "pages/4_Topology.py",
        "Topology",
        ("topology.state.TopologyState",),
        "",
        True,
        YOUR_JOB,
        reads=(CONTEST, PRICES),
        compiled=True,
    ),
    Page(
        "pages/5_Strategy.py",
        "Strategy",
        ("strategy.state.StrategyState",),
        "strategy.",
        group=YOUR_JOB,
    ),
    Page(
        "pages/12_Recorded.py",
        "A recorded run",
        ("recorded.state.RecordedState",),
        "recorded.",
        group=YOUR_JOB,
    ),
    Page(
        "pages/6_Jobs.py",
        "Jobs",
        ("jobs.state.JobsState",),
        "jobs.",
        group=JOBS_RAILS_COST,
        compiled=True,
    ),
    Page(
        "pages/7_Rails.py",
        "Rails",
        ("rails.state.RailsState",),
        "rails.",
        group=JOBS_RAILS_COST,
        reads=(CONTEST, PRICES),
    ),
    Page(
        "pages/8_Cost.py",
        "Cost",
        (PRICES, "cost.state.CostState"),
        "cost.",
        group=JOBS_RAILS_COST,
        reads=(CONTEST,),
    ),
    Page(
        "pages/15_Buying.py",
        "What to buy",
        ("buying.state.BuyingState",),
        "buy.",
        True,
        JOBS_RAILS_COST,
        reads=(PRICES,),
    ),
    Page(
        "pages/18_Who_is_right.py",
        "Who is right?",
        ("claims.state.ArgumentState",),
        "argument.",
        group=RESULTS,
    ),
    Page(
        "pages/13_Studies.py",
        "Studies",
        ("studies.state.StudiesState",),
        "study.",
        group=RESULTS,
    ),
    Page(
        "pages/14_Runs.py",
        "Runs",
        ("library.state.RunsState", "answers.keeping.KeepState"),
        "runs.",
        group=RESULTS,
    ),
    Page(
        "pages/9_Gallery.py",
        "Published results",
        ("gallery.state.GalleryState",),
        "gallery.",
        group=RESULTS,
    ),
    Page("pages/10_Learn.py", "Learn", ("learn.state.LearnState",), "learn.", group=LEARN),
    Page("pages/16_Labs.py", "Labs", ("labs.state.LabsState",), "lab.", group=LEARN),
    Page(
        "pages/11_Glossary.py",
        "Glossary",
        ("learn.state.GlossaryState",),
        "glossary.",
        group=LEARN,
    ),
    Page(
        "pages/17_Present.py",
        "Present",
        ("present.state.PresentState",),
        "present.",
        group=LEARN,
        listed=False,
    ),
)


def groups() -> dict[str, list[Page]]:
    """Return the pages by their heading in the menu, in its order; Home has none."""
    grouped: dict[str, list[Page]] = {}
    for page in PAGES:
        if page.listed:
            grouped.setdefault(page.group, []).append(page)
    return grouped


def page_of(title: str) -> Page:
    """Return a page by its title."""
    return next(page for page in PAGES if page.title == title)


def models(keys: Iterable[str] | None = None) -> Iterator[type[PageState]]:
    """Yield the models that keys of a link may belong to, and those in use; without keys those of all pages."""
    for page in PAGES:
        for name in page.states:
            module, model = name.rsplit(".", 1)
            named = keys is None or any(key.startswith(page.prefix) for key in keys)
            if named or not page.prefix or model in states():
                yield getattr(import_module(f"topox_ui.{module}"), model)
