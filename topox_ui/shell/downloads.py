"""What is taken along from a page: files built when asked for, a link that restores the state, a citation, a job for all pages."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import urlencode, urlsplit

import plotly.graph_objects as go
import streamlit as st

from topox_core.figures.files import (
    DOTS,
    PRINT,
    WIDTH,
    figures_page,
    on_paper,
    picture_height,
)
from topox_core.figures.palette import Theme
from topox_core.io import exports
from topox_core.io.foreign.perfetto import perfetto_trace
from topox_core.io.manifest import manifest
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import Execution
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.identity import code_version
from topox_core.schedule.circuits.standing import standing
from topox_core.schedule.results.result import Result
from topox_core.schedule.results.result_file import to_record
from topox_core.text.numbers import delay_label, plural
from topox_core.training.job import Job
from topox_ui.runs.limits import only_this_machine, server_limits
from topox_ui.shell.charts import CAMERA, button, picture_buttons, when_opened
from topox_ui.shell.menu import job_name, page_link, what_if_words
from topox_ui.shell.pages import PAGES, Page
from topox_ui.shell.terms import FIRST_WORDS, PLAN
from topox_ui.state.loading import (
    Loaded,
    adopt,
    loaded,
    loaded_job,
    open_source,
    scenario,
    scenario_of,
)
from topox_ui.state.scenario import CLUSTER, PARAMETER
from topox_ui.state.session import PLACE, Passing, link_query, notify, notify_errors, view_query

# What a menu calls a file, the end of its name, and what builds it.
File = tuple[str, str, Callable[[], bytes]]
# By name, what draws a figure for a theme: on the page in that of the page, in files in that of print.
Figures = dict[str, Callable[[Theme], go.Figure]]
MEDIA_TYPE = {
    "json": "application/json",
    "csv": "text/csv",
    "html": "text/html",
    **dict.fromkeys(("parquet", "sqlite"), "application/octet-stream"),
}


def stem(title: str, empty: str = "topox") -> str:
    """Return a title as a file name that any system takes; ``empty`` where nothing of it is left."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-.")[:60] or empty


def offer(name: str, files: Iterable[File]) -> None:
    """Offer files whose names begin with ``name``; each is built when asked for, and the page does not run again."""
    for label, end, build in files:
        st.download_button(
            label,
            data=build,
            file_name=f"{name}{end}",
            mime=MEDIA_TYPE[end.rsplit(".", 1)[-1]],
            on_click="ignore",
            key=f"get_{label}",
            width="stretch",
            type="tertiary",
            icon=":material/download:",
        )


def page_in_view() -> Page | None:
    """Return the page that is drawn, if one is."""
    place = PLACE.get()
    return next((one for one in PAGES if (one.path, one.view) == place), None)


def result_json(
    record: Callable[[], Mapping[str, Any]],
    inputs: Mapping[str, str],
    figures_from: Mapping[str, str] | None = None,
) -> Callable[[], bytes]:
    """Return what builds a result as JSON with its manifest: of the page and its choices as they are now.

    Parameters
    ----------
    inputs
        Digests of what the result was made of, by kind.
    figures_from
        As of :func:`~topox_core.studies.buying.offers.sources_of`.
    """
    # Files are built when nobody's session is at hand.
    page, asked = page_in_view(), link_query()

    def build() -> bytes:
        whole = record()
        made = manifest(whole, f"page {page.title if page else ''}", inputs, asked, figures_from)
        return json.dumps({**whole, "manifest": made}, allow_nan=False).encode()

    return build


def download_menu(
    name: str, files: Iterable[File], groups: Mapping[str, Iterable[File]] | None = None
) -> None:
    """Offer files in a menu; ``groups`` has others, each under a caption."""
    with st.popover("Download", icon=":material/download:"):
        offer(name, files)
        for caption, several in (groups or {}).items():
            st.caption(caption)
            offer(name, several)


def figures_file(title: str, figures: Figures) -> File:
    """Return figures as one file that opens in any browser and saves each as a picture."""
    return (
        "Figures (HTML, with PNG and SVG)",
        ".figures.html",
        lambda: figures_page(title, {name: draw(PRINT) for name, draw in figures.items()}),
    )


def picture_menu(name: str, figures: Figures) -> None:
    """Offer figures as pictures, drawn for print by plotly in the browser; nothing is drawn before it is opened.

    No popover: that closes as a file is saved, and takes the figure from plotly while it draws.
    """
    when_opened("Pictures for print (PNG, SVG)", "pictures", lambda: _picture(name, figures))


def _picture(name: str, figures: Figures) -> None:
    title = st.selectbox("Figure", list(figures), key="picture_of")
    figure = on_paper(figures[title or next(iter(figures))](PRINT))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        file = f"{name}.{stem(str(title).lower(), 'figure')}"
        picture_buttons("picture", file, (WIDTH, picture_height(figure)))
        st.caption(f"{WIDTH} px wide, on white; a PNG has {DOTS} dots a pixel.")
    st.plotly_chart(figure, theme=None, config=CAMERA, key="picture")


def execution_files(
    build: Callable[[], Execution],
    name: str,
    inputs: Mapping[str, str],
    exclusive_devices: bool = True,
) -> list[File]:
    """Return what an execution is exported as: its tasks, its cross-connects and its trace, called ``name``.

    ``inputs`` as of :func:`result_json`.
    """
    crosses = "Circuits of each switch over time"

    def tasks() -> bytes:
        execution = build()
        return exports.tasks_csv(execution, critical_path(execution, exclusive_devices))

    def trace() -> bytes:
        execution = build()
        return perfetto_trace(execution, name, critical_path(execution, exclusive_devices))

    return [
        ("Tasks (CSV)", ".tasks.csv", tasks),
        (
            f"{crosses} (JSON)",
            ".cross-connects.json",
            result_json(lambda: exports.cross_connects_record(standing(build())), inputs),
        ),
        (
            f"{crosses} (CSV)",
            ".cross-connects.csv",
            lambda: exports.cross_connects_csv(standing(build())),
        ),
        ("Trace for ui.perfetto.dev", ".perfetto.json", trace),
    ]


def take_away(
    name: str,
    files: Iterable[File],
    figures: Figures,
    kept_here: str = "",
    besides: Callable[[], None] | None = None,
    keep: Callable[[], None] | None = None,
    groups: Mapping[str, Iterable[File]] | None = None,
) -> None:
    """Draw the two menus, files and the link, and the pictures under them.

    Parameters
    ----------
    kept_here
        Why there is no link, where a file of the reader's own is shown.
    besides
        Draws what else the menu of the link offers.
    keep
        Draws what stands beside them, such as the way into the run library.
    groups
        As of :func:`download_menu`.
    """
    with st.container(horizontal=True, key="take_away"):
        download_menu(name, [*files, figures_file(name, figures)] if figures else files, groups)
        link_menu(kept_here, besides=besides)
        if keep is not None:
            keep()
    if figures:
        picture_menu(name, figures)


def result_files(
    loaded: Loaded,
    result: Result,
    figures: Figures,
    besides: Callable[[], None] | None = None,
    keep: Callable[[], None] | None = None,
) -> None:
    """Draw the two menus of a schedule, the way into the run library, and its pictures."""
    execution, exclusive = result.execution, result.settings.exclusive_devices
    assert execution is not None
    inputs = {"graph": loaded.graph.digest, "cluster": loaded.cluster.digest}
    record = (
        "Result (JSON)",
        ".schedule.json",
        result_json(
            lambda: to_record(result, loaded.cluster),
            inputs,
        ),
    )
    exported = execution_files(lambda: execution, loaded.graph.name, inputs, exclusive)
    take_away(
        stem(loaded.title),
        [record, *exported],
        figures,
        graph_kept_here(),
        besides,
        keep,
    )


def graph_kept_here() -> str:
    """Return why the task graph of this session has no link; empty where it has one."""
    if scenario().source not in ("none", "upload"):
        return ""
    return (
        "A link can carry a sample or a workload with every slider. Your own files stay on this machine: "
        "send the files, or download the result."
    )


def link_menu(
    kept_here: str = "", more: str = "", besides: Callable[[], None] | None = None
) -> None:
    """Show the address that opens this page as it is, or say why there is none; then what is besides."""
    with st.container(horizontal=True, width="content", gap="xsmall"):
        with st.popover("Link", icon=":material/link:"):
            if kept_here:
                st.caption(kept_here)
            else:
                address = address_now()
                st.caption(
                    f"Opens this page as you see it: the job, its what-ifs and the choices on this page.{more}"
                )
                st.code(address, language=None, wrap_lines=True)
                if only_this_machine(urlsplit(address).hostname or ""):
                    st.caption(
                        "This address opens only on this machine. On another workbench, put what follows the port behind its address."
                    )
            if besides is not None:
                besides()
        cite_menu(kept_here)


def address_now() -> str:
    """Return the address that opens the page in view with its choices."""
    query, base = view_query() | link_query(), (st.context.url or "").split("?")[0]
    return f"{base}?{urlencode(query)}" if query else base


# Whether the page in view has the menu of citations already.
CITED = Passing[bool]("cited")
OF_NO_JOB = ("Home", "Your trace", "Papers", "Learn")  # entries that say nothing of the loaded job
LONG_CHOICE = 60  # a longer one, such as a whole study, is only in the address


def cite_menu(kept_here: str = "") -> None:
    """Offer what the page says as a sentence that can be cited, and the program for BibTeX; ``kept_here`` as of :func:`link_menu`."""
    CITED.set(True)
    sentence, entry = citation(kept_here)
    with st.popover("Cite", icon=":material/format_quote:"):
        st.caption("What this page says now, and on what it rests")
        st.code(sentence, language=None, wrap_lines=True)
        st.caption("As a BibTeX entry")
        st.code(entry, language=None, wrap_lines=True)


def citation(kept_here: str = "") -> tuple[str, str]:
    """Return what the page in view says, with what that rests on, and a BibTeX entry; ``kept_here`` as of :func:`link_menu`."""
    kicker, finding = map(_plain, FIRST_WORDS.get() or ("", ""))
    page, opened, program = page_in_view(), loaded(), code_version()
    assert page is not None  # a page is cited while it is drawn
    address = urlsplit("" if kept_here else address_now())
    here = only_this_machine(address.hostname or "")
    place = kicker if kicker.startswith(page.title) else f"{page.title} · {kicker}"
    about, differ, named = [f"page {place}"], [], ("sample", "workload", "large")
    if opened is not None and page.views[0].title not in OF_NO_JOB:
        cluster = scenario().cluster(opened.cluster)
        ports = f"{plural(cluster.ports_per_server, 'port')} of {cluster.port_gbps:g} Gbit/s"
        switches = plural(cluster.switches, "switch", "switches")
        about += [
            f"{'loaded ' * (not page.needs_graph)}job: {_plain(job_name(opened))}, digest {opened.graph.digest[:12]}",
            f"cluster: {plural(cluster.servers, 'server')} with {ports} each, {switches}, "
            f"reconfiguration delay {delay_label(cluster.reconfiguration_ms)}",
        ]
        if plan := PLAN.get():
            about.append(f"plan: {plan}")
        differ = [one for one in what_if_words(opened) if kept_here or " instead of " in one]
        named += CLUSTER
    differ += [
        f"{key}={text}"
        for key, text in link_query().items()
        if not (key in named or key.startswith(PARAMETER) or len(text) > LONG_CHOICE)
    ]
    about.append(f"settings that differ from the defaults: {', '.join(differ) or 'none'}")
    if address.geturl():
        shown = (
            address._replace(scheme="", netloc="", path=address.path or "/") if here else address
        )
        about.append(f"address: {shown.geturl()}")
    accessed = datetime.now(UTC)
    fields = {
        "title": "{TOPO-X Workbench}",
        "author": "{TOPO-X Workbench contributors}",
        "year": f"{accessed:%Y}",
        "version": program,
        "license": "MIT",
        "url": "" if here else address.geturl(),
        "urldate": f"{accessed:%Y-%m-%d}",
        "note": _LATEX.sub(r"\\\g<0>", f"{finding} ({'; '.join(about)})"),
    }
    entry = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items() if text)
    return (
        f"“{finding}” (TOPO-X Workbench {program}; {'; '.join(about)})".replace("\u00a0", " "),
        f"@software{{topox-workbench,\n{entry}\n}}",
    )


_LATEX = re.compile(r"[%&#$_{}]")


def _plain(html: str) -> str:
    """Return our own HTML as text on one line."""
    return " ".join(
        unescape(re.sub(r"<br>|(<[^>]*>)", lambda tag: "" if tag[1] else " ", html)).split()
    )


def offer_task_graph(
    key: str, build: Callable[[], tuple[TaskGraph, Cluster]], help_text: str, where: str = ""
) -> None:
    """Offer to load a generated task graph with a cluster: the other pages then show it.

    Parameters
    ----------
    where
        What the task graph covers, said behind its number of tasks.
    """
    button(
        "Use this task graph", key, "arrow_forward", _adopt_generated, build, where, help=help_text
    )


@notify_errors()
def _adopt_generated(build: Callable[[], tuple[TaskGraph, Cluster]], where: str) -> None:
    with st.spinner("Building the task graph"):
        tasks, cluster = build()
    server_limits().check_tasks(len(tasks.tasks), tasks.name)
    adopt(Loaded(tasks, cluster, tasks.name))
    notify(
        "info",
        f"{tasks.name} is loaded: {plural(len(tasks.tasks), 'task')}{where}. Schedule and "
        "Compare show it.",
    )


def use_job(key: str, job: Job, gain: str = "") -> None:
    """Offer to load a job: its task graph on the cluster that suits it, for all pages; ``gain``: what is said then."""
    button(
        "Use this job",
        key,
        "arrow_forward",
        _open,
        job,
        gain,
        help="Load this job: Schedule, Compare, Plans and, where it fits a rail, Rails then show the same iteration.",
    )


def _open(job: Job, gain: str) -> None:
    before = loaded()
    open_source(scenario_of(job))
    now = loaded()
    if now is not None and now is not before:
        notify(
            "info",
            f"{now.graph.name} is loaded: {plural(len(now.graph.tasks), 'task')}. {gain}Schedule, Compare, Plans "
            "and, where it fits a rail, Rails show it.",
        )


def job_links() -> None:
    """Draw the ways on of the loaded training job: its rails, and other plans of its model."""
    job = loaded_job()
    if job is None:
        return
    with st.container(horizontal=True):
        page_link(
            "Rails",
            "Its windows on rails",
            icon=":material/arrow_forward:",
            **{"rails.source": "job"},
        )
        page_link(
            "Plans",
            "Other plans of this job",
            icon=":material/arrow_forward:",
            **{"strategy.model": "loaded"},
        )
