"""A closer look at a recorded step: its groups, its lanes on one clock, its windows, whether it can be trusted."""

from collections import defaultdict
from functools import partial
from typing import Any

import streamlit as st

from topox_core.figures.iteration.recorded import call_colour, call_words, lanes
from topox_core.figures.palette import KIND_COLOURS, Theme, faded, parallelism_word
from topox_core.figures.rails.windows import cdf
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.model.task_graph import PARALLELISMS
from topox_core.rails.window_lengths import (
    dump_windows_csv,
    dump_windows_json,
    load_windows,
    share_hiding,
)
from topox_core.text.numbers import capitalised, count, percent, plural, size, time
from topox_core.traces.checks import FAILED, PASSED, WARNED
from topox_core.traces.communication import parallelism_of
from topox_core.traces.recorded.recorded_run import spans
from topox_core.traces.run_graph import call_bars, label_of
from topox_ui.recorded.found import RecordedStep
from topox_ui.recorded.reading import LABELS, opened
from topox_ui.recorded.state import RecordedState
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import (
    Content,
    button,
    chart,
    chart_title,
    escape,
    legend_line,
    quiet,
    table_under,
    title_row,
    write_html,
)
from topox_ui.shell.downloads import File, download_menu, result_json, stem
from topox_ui.shell.menu import leave_for
from topox_ui.state.loading import OWN_WINDOWS, Loaded, adopt
from topox_ui.state.session import notify_errors
from topox_ui.state.widgets import bound, menu, stretch_in_view


def ways_on(found: RecordedStep) -> None:
    """Draw what can be done with the step: schedule it, compare fabrics, look at its windows, save it."""
    with st.container(horizontal=True, vertical_alignment="center", key="recorded_ways"):
        none = found.imported is None
        button(
            "Schedule it",
            "recorded_schedule",
            "arrow_forward",
            _adopt,
            found,
            "Schedule",
            primary=True,
            disabled=none,
            help="Loads the task graph as the job of all pages, on a cluster of the chosen speed.",
        )
        button(
            "Compare fabrics",
            "recorded_compare",
            "bar_chart",
            _adopt,
            found,
            "Compare",
            disabled=none,
        )
        button(
            "Windows on Rails",
            "recorded_rails",
            "space_bar",
            _to_rails,
            found,
            disabled=not found.windows.windows,
        )
        download_menu(_name(found), _files(found))
    if any(one.status == FAILED for one in found.checks):
        quiet('<span class="bad">✗</span> A check failed: do not trust the results of this step.')


def _name(found: RecordedStep) -> str:
    return stem(f"step-{found.number}" if found.number >= 0 else "recorded-run")


@notify_errors()
def _adopt(found: RecordedStep, title: str) -> None:
    graph = found.imported.graph
    server_limits().check_tasks(len(graph.tasks), graph.name)
    adopt(Loaded(graph, found.cluster(RecordedState.now().nic_gbps), graph.name))
    leave_for(title)


def _windows(found: RecordedStep) -> bytes:
    return dump_windows_json(_name(found), found.recorded_ms, found.windows.windows)


def _to_rails(found: RecordedStep) -> None:
    OWN_WINDOWS.set(load_windows(_windows(found), f"{_name(found)}.windows.json"))
    leave_for("Rails", **{"rails.source": "upload"})


def _files(found: RecordedStep) -> list[File]:
    """Return what the step is saved as; each is built when it is asked for."""
    files: list[File] = []
    known, speed = found.imported, RecordedState.now().nic_gbps
    if known is not None:
        files += [
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(known.graph)),
            ("Cluster (JSON)", ".cluster.json", lambda: dump_cluster(found.cluster(speed))),
            (
                "Report (JSON)",
                ".report.json",
                result_json(lambda: found.report(speed), {"recording": opened().key}),
            ),
        ]
    if found.windows.windows:
        files += [
            ("Windows (JSON)", ".windows.json", lambda: _windows(found)),
            ("Windows (CSV)", ".windows.csv", lambda: dump_windows_csv(found.windows.windows)),
        ]
    return files


# Groups that can be labelled on the page, lanes and bars that are drawn at once.
MAX_GROUPS, MAX_RANKS, MAX_BARS = 10, 8, 2_000
MAX_WARNINGS = 8
# Of a step: shorter waiting for one rank is not worth a sentence.
WORTH_A_WORD = 0.01
MARKS = {FAILED: ("✗", "bad"), WARNED: ("!", "bad"), PASSED: ("✓", "good")}
CHECK_WORDS = {
    "replay": "Replay with recorded durations",
    "host step": "Step of the host",
    "waits": "Dependencies on communication",
    "matching": "Communication matched across ranks",
    "clocks": "Common clock of all ranks",
    "bytes": "Sizes of calls",
    "clipped": "Negative segments",
    "busy": "GPU busy",
}


def groups_section(found: RecordedStep) -> None:
    """Draw the groups with their bytes, and a label each to choose."""
    chart_title("Groups", "a label says which parallelism a group serves; labels are optional")
    labels = LABELS.get() or {}
    for number, one in enumerate(found.groups[:MAX_GROUPS]):
        name = str(one["group"] or one["description"])
        words, pick = st.columns([1.5, 1], vertical_alignment="center")
        with words:
            calls, sent = plural(int(str(one["calls"])), "call"), float(str(one["size_bytes"]))
            st.html(
                f'<p class="card">Ranks {escape(str(one["ranks"]))}<span>{calls}, {size(sent)}, '
                f"{escape(_described(one['description']))}</span></p>"
            )
        own = str(one["parallelism"] or "")
        # A group whose description says nothing is told by what it calls: bare sends are a pipeline's.
        told = "by name" if parallelism_of(str(one["description"] or ""), "") else "by its calls"
        first = f"{own}, {told}" if own else "no label"
        options = {label: parallelism_word(label) for label in PARALLELISMS if label != own}
        chosen = labels.get(name, "")
        bound(
            "selectbox",
            f"Label of group {number + 1}",
            f"recorded_label_{found.run.world}_{number}_{name[:60]}",
            chosen if chosen in options else "",
            partial(_labelled, name),
            options={"": first} | options,
            at=pick,
            label_visibility="collapsed",
        )
    table_under(
        "groups",
        lambda: [
            {
                "ranks": one["ranks"],
                "name": one["description"],
                "calls": one["calls"],
                "bytes": one["size_bytes"],
                "label": labels.get(str(one["group"])) or one["parallelism"] or "",
            }
            for one in found.groups
        ],
        "Every group",
    )


def _labelled(name: str, label: str) -> None:
    rest = {known: one for known, one in (LABELS.get() or {}).items() if known != name}
    LABELS.set(rest | ({name: label} if label else {}))


def timeline(found: RecordedStep, theme: Theme) -> None:
    """Draw the lanes of up to eight ranks; of more ranks a menu picks which, of many bars a slider which stretch."""
    ranks = list(found.graph.present)
    folds = [ranks[k : k + MAX_RANKS] for k in range(0, len(ranks), MAX_RANKS)]
    [choice] = title_row(
        (2.6, 1),
        "Timeline of the step",
        "work of the GPU above, both passes in the colour of the longer one; calls below, pale while a rank waits for the last",
    )
    first = RecordedState.now().first_rank
    shown = next((fold for fold in folds if first in fold), folds[0])
    if len(folds) > 1:
        menu(
            RecordedState,
            "first_rank",
            {fold[0]: f"Ranks {spans(fold)}" for fold in folds},
            label="Ranks",
            value=shown[0],
            at=choice,
            label_visibility="collapsed",
        )
    labels = found.settings.parallelism
    keys = [(colour, kind) for kind, colour in KIND_COLOURS.items()]
    kinds: dict[str, dict[str, None]] = {}
    for node in found.graph.calls:
        kinds.setdefault(label_of(node, labels), {})[call_words(node, labels)] = None
    for label, words in kinds.items():
        colour = call_colour(label)
        look = f"linear-gradient(90deg,{faded(colour, 0.35)} 45%,{colour} 45%)"
        keys.append((look, "; ".join(words)))
    legend_line([*keys, ("", "pale part: waiting")], theme)
    _lanes_in_view(found, shown, theme)
    _straggler(found)


def _straggler(found: RecordedStep) -> None:
    """Say for which rank the others wait longest at collectives, where that is worth a sentence."""
    calls = [node for node in found.graph.calls if len(node.kernels) > 1 and node.kind != "send"]
    longest: defaultdict[int, list[float]] = defaultdict(list)
    for node in calls:
        latest, last = max((begin, rank) for rank, begin, _ in node.kernels)
        longest[last].append(latest - min(begin for _, begin, _ in node.kernels))
    if not longest:  # no two ranks meet
        return
    rank = max(longest, key=lambda one: (sum(longest[one]), -one))
    longest_ms = max(longest[rank])
    if longest_ms >= WORTH_A_WORD * found.recorded_ms:
        write_html(
            f'<p class="note"><b>Rank {rank} comes last at {count(len(longest[rank]))} of '
            f"{plural(len(calls), 'collective')}.</b> Others wait up to {time(longest_ms)} for it: this is waiting, "
            "not transfer.</p>"
        )


@st.fragment
def _lanes_in_view(found: RecordedStep, ranks: list[int], theme: Theme) -> None:
    whole = max(found.recorded_ms, 1e-9)
    bars = call_bars(found.graph, ranks)
    drawn = 2 * len(bars) + sum(
        not node.is_call and node.ranks[0] in ranks for node in found.graph.nodes
    )
    view = (0.0, whole)
    if drawn > MAX_BARS:
        view = stretch_in_view(RecordedState, whole, (0.0, whole * MAX_BARS / drawn))
    labels = found.settings.parallelism
    waited = sum(one.waiting_ms for one in bars)
    moved = sum(one.transfer_ms for one in bars)
    chart(
        lanes(found.graph, ranks, labels, view, theme),
        "recorded_lanes",
        f"Lanes of ranks {spans(ranks)} over {time(whole)}: {count(len(bars))} kernels of calls, which wait "
        f"{time(waited)} and move bytes for {time(moved)}, added up.",
        lambda: _bars_table(found, ranks),
        "Every bar",
    )


def _bars_table(found: RecordedStep, ranks: list[int]) -> Content:
    labels = found.settings.parallelism
    rows: list[dict[str, Any]] = [
        {
            "rank": node.ranks[0],
            "what": node.kind,
            "begins (ms)": node.end_ms - node.duration_ms,
            "ends (ms)": node.end_ms,
        }
        for node in found.graph.nodes
        if not node.is_call and node.ranks[0] in ranks
    ]
    rows += [
        {
            "rank": one.rank,
            "what": call_words(one.call, labels),
            "begins (ms)": one.begin_ms,
            "ends (ms)": one.end_ms,
            "waits (ms)": one.waiting_ms,
            "moves (ms)": one.transfer_ms,
            "bytes": one.call.size_bytes,
        }
        for one in call_bars(found.graph, ranks)
    ]
    return sorted(rows, key=lambda row: (row["rank"], row["begins (ms)"]))


def windows_section(found: RecordedStep, theme: Theme) -> None:
    """Draw the distribution of the recorded windows, the naive count in a caption."""
    windows, naive = found.windows.windows, found.windows.naive
    chart_title("Windows of the recording", "share of windows up to a length; line: your delay")
    if not windows:
        quiet("There is no window: the network carries only one kind of traffic.")
        return
    delay = RecordedState.now().delay_ms
    enough = share_hiding(windows, delay)
    chart(
        cdf(windows, delay, theme),
        "recorded_windows",
        f"{plural(len(windows), 'window')}; {percent(enough)} are long enough for a delay of {time(delay)}.",
        lambda: [
            {
                "rank": one.rank,
                "before": parallelism_word(one.before),
                "after": parallelism_word(one.after),
                "begins (ms)": one.begin_ms,
                "length (ms)": one.length_ms,
                "bytes after it": one.size_bytes,
            }
            for one in windows
        ],
        "Every window",
    )
    quiet(
        f"{plural(len(windows), 'window')}, each counted once though several ranks have it. Counting pauses per rank would "
        f"give {count(len(naive))}, because waiting would look like traffic."
    )


def trust_section(found: RecordedStep) -> None:
    """Write the checks, the worst first, and every warning."""
    passed = sum(one.status == PASSED for one in found.checks)
    chart_title("Can it be trusted?", f"{passed} of {len(found.checks)} checks pass")
    rows = []
    for one in found.checks:
        mark, look = MARKS[one.status]
        name = CHECK_WORDS.get(one.name, one.name)
        said = "" if one.status == PASSED else f" {one.status}"
        # What follows from a check is said first; the figures that it rests on stand behind, in grey.
        words, _, means = one.words.partition(", so ")
        first, figures = (means, words) if means else (words, "")
        rows.append(
            f'<li style="margin:.3rem 0"><b class="{look}">{mark}{said}</b> <b>{escape(name)}</b>: {escape(first)}. '
            f'<span class="quiet">{escape(capitalised(figures) + "." if figures else "")}</span></li>'
        )
    write_html(
        '<ul class="claim" style="list-style:none;padding:0;margin:0">' + "".join(rows) + "</ul>"
    )
    warnings = found.warnings
    if warnings:
        with st.expander(plural(len(warnings), "warning"), key="recorded_warnings"):
            for line in warnings[:MAX_WARNINGS]:
                quiet(escape(line))
            if len(warnings) > MAX_WARNINGS:
                quiet(
                    f"and {plural(len(warnings) - MAX_WARNINGS, 'more', 'more')}; the report has all."
                )


def _described(description: object) -> str:
    """Return what a file calls a group; PyTorch writes ``undefined`` where nobody named it."""
    words = str(description or "")
    return "no name" if words in ("", "undefined") else words
