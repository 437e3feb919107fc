"""What a walk over the whole workbench opens: every page, and of pages with several faces each of them."""

from urllib.parse import quote, urlencode

from topox_ui.jobs.state import SECTIONS as OF_JOBS
from topox_ui.rails.state import SECTIONS as OF_RAILS
from topox_ui.shell.pages import PAGES, page_of

# A job for the pages that need one: what it shows is rich where that is quick, and its map is small.
SAMPLE = {"Schedule": "moe", "Circuits": "moe", "Compare": "blackboard"}
# A study that is small enough to be seen whole, as its link has it.
STUDY = (
    '{"format":"topox-study","version":1,"name":"Delay","subject":{"kind":"sample","name":"blackboard"},'
    '"axes":[{"key":"cluster.reconfiguration_ms","values":[0,1,5]},{"key":"cluster.port_gbps","values":[100,200]}]}'
)
# Further faces of a page, as its link names them.
FACES = {
    "Home": ("sample=race", "way=files", "way=generate"),
    "Compare": (
        "sample=race&lanes=scheduled",
        "sample=moe&fabrics=static&gated=yes&gating_iterations=2",
    ),
    "Fixed circuits": ("sample=race&layout_by=graph",),
    "Plans": ("strategy.model=llama3-8b&strategy.servers=4", "strategy.network=fabric"),
    "Your trace": ("recorded.example=yes",),
    "Sharing": tuple(f"jobs.see={name}" for name in OF_JOBS),
    "Rails": tuple(f"rails.see={name}" for name in OF_RAILS),
    "Studies": (f"study.of={quote(STUDY)}", f"study.see=table&study.of={quote(STUDY)}"),
    "Papers": ("gallery.card=measured",),
    "Learn": tuple(f"learn.step={step}" for step in range(2, 7)),
    "Labs": (
        "lab.id=six-tasks&lab.seed=1&lab.q=1",
        "lab.id=bandwidth-tax&lab.seed=1",
        "lab.id=windows&lab.seed=1",
        "lab.id=time-division&lab.seed=1&lab.q=4",
    ),
    "Glossary": ("glossary.find=delay",),
    "Present": ("present.see=statistics", "present.see=leaderboards"),
}


def address(title: str, choice: str = "") -> str:
    """Return the address of a page of the registry, with what a link chooses on it."""
    page = page_of(title)
    if page.needs_graph and "sample=" not in choice:
        own = f"sample={SAMPLE.get(title, 'blackboard')}"
        choice = f"{own}&{choice}" if choice else own
    query = "&".join(filter(None, (urlencode(page.query), choice)))
    return f"/{page.address}" + (f"?{query}" if query else "")


def every_face() -> list[tuple[str, str]]:
    """Return every page with every choice that shows another face of it: (title, choice)."""
    return [(page.title, choice) for page in PAGES for choice in ("", *FACES.get(page.title, ()))]
