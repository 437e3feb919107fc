"""The registry of pages: the entries of the menu, and the views that each of them holds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from topox_ui.state.session import VIEW_KEY, PageState, states


@dataclass(frozen=True)
class Page:
    """One view of an entry of the menu; an entry with one view is a page by itself.

    Attributes
    ----------
    path
        The script of its entry: the views of an entry have the same.
    title
        Its name in links and in the browser's tab; of the first view the name of the entry.
    draw
        What draws it, as ``module.function`` within ``topox_ui``, given how figures are drawn and, if
        it needs one, the loaded job.
    states
        The models of what can be chosen on it, as ``module.Class`` within ``topox_ui``; imported, like
        ``draw``, when they are needed, so that no page waits for another one's imports.
    view
        The word of its address; the first view has none.
    label
        Its name in the row of views, where that is not its title.
    prefix
        What its keys begin with in a link.
    needs_graph
        Whether it is about the task graph that is loaded.
    group
        Under which heading of the menu its entry stands.
    listed
        Whether the row of views has it; else another view leads to it.
    reads
        The models of other pages that count on it too.
    compiled
        Whether it shows nothing without compiled kernels.
    linked
        Whether *Link* stands at its foot: others offer it beside their files, or have none.
    question, then
        What it answers, and the title of the page whose question comes next.
    """

    path: str
    title: str
    draw: str
    states: tuple[str, ...]
    view: str = ""
    label: str = ""
    prefix: str = ""
    needs_graph: bool = False
    group: str = ""
    listed: bool = True
    reads: tuple[str, ...] = ()
    compiled: bool = False
    linked: bool = False
    question: str = ""
    then: str = ""

    @property
    def carried(self) -> tuple[str, ...]:
        """Return the names of the models whose choices its address carries."""
        names = dict.fromkeys((*EVERYWHERE, *self.states, *self.reads))
        return tuple(name.rpartition(".")[2] for name in names)

    @property
    def query(self) -> dict[str, str]:
        """Return what its address says of the view."""
        return {VIEW_KEY: self.view} if self.view else {}

    @property
    def views(self) -> "list[Page]":
        """Return the views of its entry, the first one first."""
        return [page for page in PAGES if page.path == self.path]

    def at(self, word: str) -> "Page":
        """Return the view of its entry that a word of the address names, the first where it names none."""
        views = self.views
        return next((page for page in views if page.view == word), views[0])

    @property
    def address(self) -> str:
        """Return the path of its address."""
        return Path(self.path).stem.partition("_")[2]


EVERYWHERE = ("state.scenario.Scenario", "shell.page.Display")
CONTEST, PRICES = "state.choices.ContestState", "state.prices.Prices"
YOUR_JOB, MORE, EVIDENCE, LEARNING = "Your job", "More questions", "Evidence", "Learning"
SCHEDULE, COMPARE, COST = "pages/1_Schedule.py", "pages/2_Compare.py", "pages/3_Cost.py"
PAPERS, STUDIES, LEARN = "pages/8_Papers.py", "pages/9_Studies.py", "pages/10_Learn.py"
PAGES = (
    Page(
        "app.py",
        "Home",
        "home.view.draw",
        (*EVERYWHERE, "state.choices.HomeState"),
        reads=(PRICES,),
    ),
    Page(
        SCHEDULE,
        "Schedule",
        "schedule.view.draw",
        ("state.choices.ScheduleState",),
        label="Timeline",
        needs_graph=True,
        group=YOUR_JOB,
        reads=(PRICES,),
        question="How fast can my job get, and is that proved?",
        then="Compare",
    ),
    Page(
        SCHEDULE,
        "Circuits",
        "circuits.view.draw",
        ("state.choices.CircuitsState",),
        "circuits",
        needs_graph=True,
        question="Which circuits does the schedule need, and when?",
        then="Proof",
    ),
    Page(
        SCHEDULE,
        "Proof",
        "schedule.view.draw_proof",
        ("state.choices.RaceState",),
        "proof",
        needs_graph=True,
        question="How was this schedule found, and what is proved?",
        then="Compare",
    ),
    Page(
        COMPARE,
        "Compare",
        "compare.view.draw",
        (CONTEST, "state.choices.CompareState", "state.choices.GatingState"),
        label="All fabrics",
        needs_graph=True,
        group=YOUR_JOB,
        reads=(PRICES,),
        compiled=True,
        question="Does switching pay, and against which network?",
        then="Where which wins",
    ),
    Page(
        COMPARE,
        "Where which wins",
        "compare.view.draw_map",
        ("state.choices.MapState",),
        "map",
        needs_graph=True,
        reads=(CONTEST, PRICES),
        compiled=True,
        linked=True,
        question="At which delay and port speed does which network win?",
        then="Cost",
    ),
    Page(
        COMPARE,
        "Fixed circuits",
        "topology.view.draw",
        ("state.choices.TopologyState",),
        "fixed",
        needs_graph=True,
        reads=(CONTEST, PRICES),
        compiled=True,
        linked=True,
        question="How good are circuits that never change?",
        then="Where which wins",
    ),
    Page(
        COMPARE,
        "One collective",
        "topology.view.draw_collective",
        ("state.choices.CollectiveState",),
        "collective",
        needs_graph=True,
        reads=("state.choices.TopologyState",),
        compiled=True,
        linked=True,
        question="Does it pay to switch inside one collective?",
        then="Compare",
    ),
    Page(
        COST,
        "Cost",
        "cost.view.draw_per_iteration",
        (PRICES, "cost.controls.CostState"),
        label="Per iteration",
        prefix="cost.",
        needs_graph=True,
        group=YOUR_JOB,
        reads=(CONTEST, "cost.switches.BuyingState"),
        compiled=True,
        question="What does an iteration cost on each network?",
        then="Which switch",
    ),
    Page(
        COST,
        "Which switch",
        "cost.which_switch.draw",
        ("cost.switches.BuyingState",),
        "switch",
        prefix="buy.",
        needs_graph=True,
        reads=(PRICES, "cost.controls.CostState"),
        question="Which optical switch is worth its price?",
        then="Network",
    ),
    Page(
        COST,
        "Network",
        "cost.view.draw",
        (),
        "network",
        prefix="cost.",
        reads=(PRICES, "cost.controls.CostState"),
        question="What does a network of any size cost, part by part?",
        then="Studies",
    ),
    Page(
        "pages/4_Trace.py",
        "Your trace",
        "recorded.view.draw",
        ("recorded.state.RecordedState",),
        prefix="recorded.",
        group=YOUR_JOB,
        question="What would a faster network save in a recorded run?",
        then="Compare",
    ),
    Page(
        "pages/5_Rails.py",
        "Rails",
        "rails.view.draw",
        ("rails.state.RailsState",),
        prefix="rails.",
        group=MORE,
        reads=(CONTEST, PRICES),
        question="How slow may a switch inside the job be?",
        then="Which switch",
    ),
    Page(
        "pages/6_Sharing.py",
        "Sharing",
        "jobs.view.draw",
        ("jobs.state.JobsState",),
        prefix="jobs.",
        group=MORE,
        compiled=True,
        question="What do several jobs gain by time division on one fabric?",
        then="Plans",
    ),
    Page(
        "pages/7_Plans.py",
        "Plans",
        "strategy.view.draw",
        ("strategy.state.StrategyState",),
        prefix="strategy.",
        group=MORE,
        question="How should a model be split over servers?",
        then="Schedule",
    ),
    Page(
        PAPERS,
        "Papers",
        "gallery.view.draw",
        ("gallery.card.GalleryState",),
        label="Tables and figures",
        prefix="gallery.",
        group=EVIDENCE,
        linked=True,
        question="Do the published speed-ups hold?",
        then="Claims against each other",
    ),
    Page(
        PAPERS,
        "Claims against each other",
        "claims.view.draw",
        ("claims.view.ArgumentState",),
        "claims",
        prefix="argument.",
        question="Which claims hold on the same jobs?",
        then="Accuracy",
    ),
    Page(
        PAPERS,
        "Accuracy",
        "gallery.accuracy.draw",
        (),
        "accuracy",
        compiled=True,
        linked=True,
        question="How far off are predictions, and what is not modelled?",
        then="Studies",
    ),
    Page(
        STUDIES,
        "Studies",
        "studies.view.draw",
        ("studies.choosing.StudiesState",),
        label="Ready and own studies",
        prefix="study.",
        group=EVIDENCE,
        question="Does the answer hold over many what-ifs?",
        then="Kept runs",
    ),
    Page(
        STUDIES,
        "Kept runs",
        "library.view.draw",
        ("library.listing.RunsState",),
        "kept",
        prefix="runs.",
        question="Which runs are kept, and how do they differ?",
    ),
    Page(
        LEARN,
        "Learn",
        "learn.view.draw_tour",
        ("learn.view.LearnState",),
        label="Tour",
        prefix="learn.",
        group=LEARNING,
    ),
    Page(LEARN, "Labs", "labs.view.draw", ("labs.state.LabsState",), "labs", prefix="lab."),
    Page(
        LEARN,
        "Glossary",
        "learn.view.draw_glossary",
        ("learn.view.GlossaryState",),
        "glossary",
        prefix="glossary.",
    ),
    Page(
        LEARN,
        "Present",
        "present.view.draw",
        ("present.tally.PresentState",),
        "present",
        prefix="present.",
        listed=False,
    ),
)


def groups() -> dict[str, list[Page]]:
    """Return the first views of the entries by their heading in the menu, in its order; Home has none."""
    entries = [page for page in PAGES if not page.view]
    names = dict.fromkeys(page.group for page in entries)
    return {name: [page for page in entries if page.group == name] for name in names}


def page_of(title: str) -> Page:
    """Return a page by its title."""
    return next(page for page in PAGES if page.title == title)


def imported(name: str) -> Any:
    """Return what a ``module.name`` within ``topox_ui`` stands for."""
    module, _, inside = name.rpartition(".")
    return getattr(import_module(f"topox_ui.{module}"), inside)


def models(keys: Iterable[str] | None = None) -> Iterator[type[PageState]]:
    """Yield the models that keys of a link may belong to, and those in use; without keys those of all pages."""
    for page in PAGES:
        for name in page.states:
            named = keys is None or any(key.startswith(page.prefix) for key in keys)
            if named or not page.prefix or name.rpartition(".")[2] in states():
                yield imported(name)
