"""What a link or a file says is drawn as text on every page, no table holds a formula, no session reads another's names."""

import ast
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from msgspec import structs
from streamlit.testing.v1 import AppTest

from tests.real_inputs import ROOT
from tests.topox_ui.conftest import bring, turn_to
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.tables import harmless
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.text.foreign import JOINER, escape_untrusted
from topox_core.workloads.samples import load_sample
from topox_ui.shell.charts import (
    DIGIT_PX,
    EDGES_PX,
    LETTER_PX,
    MOST_PX,
    _explained,
    without_formulas,
)
from topox_ui.shell.pages import PAGES, page_of
from topox_ui.shell.terms import ASK, explanations

EVIL = "evil.example"
HOSTILE = (
    f"![x](http://{EVIL}/p.png)[y](http://{EVIL}) <img src=//{EVIL}/q> <a href=//{EVIL}>z</a> "
    f"www.{EVIL} me@{EVIL} :smile: :red[r] :material/home: $\\pi$ `c` **b** &lt;i>"
)
# What Markdown's renderer would still make something of: of the first kind where a backslash is
# before it as well, since it looks again after parsing.
LIVE = (
    re.compile(rf"https?://|www\.|@{EVIL}|:(smile|material/home):|:red\["),
    re.compile(r"(?<!\\)(!?\[x|\[y|<img|<a |\$|`|\*\*|&lt;)"),
)
MARKDOWN = ("body", "label", "text", "value", "delta", "help")


class Tags(HTMLParser):
    """Collects tags that fetch or lead somewhere."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        picture = tag == "img" and values.get("src", "").startswith("data:image/svg+xml;base64,")
        place = tag == "a" and re.fullmatch(r"#entry-[a-z0-9-]+", values.get("href") or "")
        leads = tag in ("img", "a", "i", "script", "iframe") and not (picture or place)
        if leads or any(name.startswith("on") for name in values):
            self.found.append((tag, attrs))


def elements(block):
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from elements(child)
        if hasattr(child, "proto") and child.proto is not None:
            yield child


def live(at) -> list[str]:
    """Return what a browser would draw as more than text."""
    found = []
    for root in (at.main, at.sidebar):
        for element in elements(root):
            kind, proto = element.type, element.proto
            if kind == "html":
                tags = Tags()
                tags.feed(proto.body.replace(ASK, "").replace(explanations(), ""))
                found += [f"html: {one}" for one in tags.found]
            elif kind == "plotly_chart":
                drawn = json.dumps(json.loads(proto.spec), ensure_ascii=False)
                tag = r"<(?!/?(?:b|br|extra|span|i|sup|sub)\b)(?=[A-Za-z/!]).{0,20}"
                found += [f"figure: {one}" for one in re.findall(tag, drawn)]
            elif kind not in ("code", "arrow_data_frame", "dataframe"):
                texts = [str(getattr(proto, name, "")) for name in MARKDOWN]
                texts = [one for one in texts if EVIL in one.replace(JOINER, "")]
                found += [f"{kind}: {one}" for one in texts if any(p.search(one) for p in LIVE)]
    return found


def seen(at) -> str:
    """Return every string that a page sends to the browser."""
    return "".join(
        str(element.proto) for root in (at.main, at.sidebar) for element in elements(root)
    )


def named(name: str, ids: str = ""):
    """Return a sample's graph and cluster under other names, and its tasks' ids with ``ids`` in them."""
    graph, cluster = load_sample("patience")
    tasks = tuple(
        structs.replace(
            task,
            id=f"{task.id}{ids}",
            dependencies=tuple(f"{one}{ids}" for one in task.dependencies),
        )
        for task in graph.tasks
    )
    return replace(graph, name=name, tasks=tasks), replace(cluster, name=f"cluster {name}"[:200])


def with_job(at, graph, cluster):
    """Bring a task graph and its cluster."""
    bring(at, "up_graph", "mine.json", dump_graph_json(graph))
    bring(at, "up_cluster", "mine.cluster.json", dump_cluster(cluster))
    assert not at.error, [one.value for one in at.error]
    return at


@pytest.mark.parametrize(
    "hostile",
    [
        HOSTILE,
        "- x",
        "# x",
        "1. x",
        "a_b_c __d__",
        "~~s~~",
        "x\u202ey\u200bz\n# w",
        "<https://x.y>",
    ],
)
def test_what_is_made_text_has_nothing_left_for_markdown_or_html(hostile):
    assert all(one.search(HOSTILE) for one in LIVE)
    written = escape_untrusted(hostile, "markdown")
    assert not any(one.search(written) for one in LIVE)
    assert not re.match(r"\s*([-+#>]|\d+[.)])\s", written)
    assert "\n" not in written and "\u202e" not in written
    assert not set("<>") & {
        *escape_untrusted(hostile, "html"),
        *escape_untrusted(hostile, "figure"),
    }
    plain = "a_b.json, row 3: must be > 0 (got -1)"
    assert escape_untrusted(plain, "markdown") == plain


def test_home_draws_a_hostile_file_as_text_and_quotes_it_so_in_an_error_line(visit):
    graph, cluster = named(HOSTILE, ids=HOSTILE.replace(" ", ""))
    at = with_job(visit(way="files"), graph, cluster)
    assert EVIL in seen(at) and not live(at)
    record = json.loads(dump_graph_json(graph))
    record["tasks"][0]["dependencies"] = [HOSTILE[:100]]
    bring(at, "up_graph", f"[a](http://{EVIL}).json", json.dumps(record).encode())
    assert len(at.error) == 1 and not live(at)


@pytest.mark.long
def test_no_page_draws_a_name_of_a_file_as_more_than_text_or_shows_it_to_another_session(visit):
    """Results are shared between sessions whose files say the same; names are each session's own."""
    at = with_job(visit(way="files"), *named(HOSTILE, ids=HOSTILE.replace(" ", "")))
    for page in PAGES[1:]:
        turn_to(at, page.title)
        assert not at.exception and not live(at), page.title
    for name, other in (("first-plan", "second-plan"), ("second-plan", "first-plan")):
        at = with_job(visit(way="files"), *named(name))
        for page in (*PAGES[1:5], page_of("Sharing")):
            turn_to(at, page.title)
            assert not {other, EVIL} & set(re.findall(rf"{other}|{EVIL}", seen(at))), page.title


@pytest.mark.parametrize("page", PAGES, ids=[page.title for page in PAGES])
@pytest.mark.long
def test_no_page_draws_what_a_link_says_as_markdown_or_html(visit, page):
    own = {f"{page.prefix}{key}": HOSTILE for key in ("source", "model", "stage", "ring")}
    at = visit(page.title, **{"sample": HOSTILE, "set.servers": HOSTILE, HOSTILE: HOSTILE, **own})
    assert not live(at)


# -- everything that draws text ---------------------------------------------------------------------

DRAWS_MARKDOWN = {
    "error", "warning", "info", "success", "caption", "markdown", "write", "toast",
    "button", "page_link",
}  # fmt: skip
DRAWS_HTML = {"html", "write_html", "quiet", "headline", "chart_title"}
# Attributes in which names of files and links travel, and calls that say what is wrong.
FOREIGN = {"title", "name", "message", "problem", "trouble", "note", "file", "item", "ids"}
# Whose are our own: parts of the program, not of a file.
OURS = {
    "ALGORITHMS", "CARDS", "Path", "card", "choice", "kind", "model", "one", "page", "parallelism",
    "picture", "run", "sample", "theme", "way",
}  # fmt: skip
MAKE_TEXT = {"escape_untrusted", "escape", "as_label"}


def called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def owner_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


def raw(node: ast.AST):
    """Yield foreign attributes below a node that do not pass through the one function."""
    if isinstance(node, ast.Call) and called(node) in MAKE_TEXT:
        return
    if isinstance(node, ast.Attribute) and node.attr in FOREIGN and owner_of(node) not in OURS:
        yield ast.unparse(node)
    if isinstance(node, ast.Call) and called(node) == "str":
        yield ast.unparse(node)
    for child in ast.iter_child_nodes(node):
        yield from raw(child)


def test_nothing_draws_foreign_text_but_through_the_one_function():
    found = {}
    for path in [
        *sorted((ROOT / "topox_ui").rglob("*.py")),
        *sorted((ROOT / "pages").glob("*.py")),
    ]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            draws = isinstance(node, ast.Call) and called(node) in DRAWS_MARKDOWN | DRAWS_HTML
            if draws and (names := [name for one in node.args for name in raw(one)]):
                found[f"{path.relative_to(ROOT)}:{node.lineno}"] = names
    assert found == {}


FORMULA = "=HYPERLINK(1)"


def test_no_cell_and_no_column_of_a_table_is_a_formula_and_the_rest_is_as_it_was():
    table = pd.DataFrame(
        {"task": [FORMULA, "f0"], "change": ["+3 %", "-1.5 ms"], FORMULA: [-1.5, 2.0]}
    )
    shown = without_formulas(table)
    safe = harmless(FORMULA)
    expected = {"task": [safe, "f0"], "change": ["+3 %", "-1.5 ms"], safe: [-1.5, 2.0]}
    pd.testing.assert_frame_equal(shown, pd.DataFrame(expected))
    assert list(table.columns)[2] == FORMULA  # what was given is as it was


def test_equal_names_of_columns_stay_apart():
    table = pd.DataFrame([["=a", 1, "b"]], columns=["x", "y", "x"])
    assert without_formulas(table).to_numpy().tolist() == [["'=a", 1, "b"]]


def _tables_of_every_kind(formula):
    import pandas as pd

    from topox_ui.shell.charts import editor, frame

    table = pd.DataFrame({formula: [formula, "f0"], "ms": [-1.5, 2.0]})
    frame(table)
    frame([{formula: formula}])
    frame({formula: [formula]})
    frame(table, css=table.map(lambda _: "color: red"))
    editor(table.to_dict("records"), "edited", print)


def test_a_table_that_is_coloured_or_edited_holds_no_formula_either():
    at = AppTest.from_function(_tables_of_every_kind, args=(FORMULA,)).run()
    assert not at.exception
    shown = [frame.value for frame in at.dataframe]
    assert len(shown) == 5
    for table in shown:
        assert (table.columns[0], table.iloc[0, 0]) == (harmless(FORMULA),) * 2
    assert "color: red" in at.dataframe[3].proto.arrow_data.styler.styles


def test_large_numbers_of_a_table_have_separators_and_small_ones_keep_their_digits():
    columns = {
        "cost ($)": [1836258.7071, 3.0, None],
        "bytes": [2_000_000, 5, 0],
        "size_bytes": [86_507_520.0, None, 5.0],  # whole, whatever its cells without a number
        "share": [0.1234, 0.5, None],
        "right": [True, False, True],
        "task": ["a", "b", "c"],
    }
    drawn = _explained(pd.DataFrame(columns), {})
    forms = {name: one.get("type_config", {}).get("format") for name, one in drawn.items()}
    assert {name: form for name, form in forms.items() if form} == {
        "cost ($)": "%,.2f",
        "bytes": "%,d",
        "size_bytes": "%,d",
    }
    assert drawn["size_bytes"]["width"] == DIGIT_PX * len("86,507,520") + EDGES_PX


def test_a_column_is_as_wide_as_its_longest_text_and_no_wider_than_a_page():
    columns = {
        "by": ["circuits searched for the task graph", *(["serial LST"] * 12)],
        "remark": ["x" * 500, *([""] * 12)],
        "ms": [1.5] * 13,
        "moved": ["schedule"] * 13,
    }
    drawn = _explained(pd.DataFrame(columns), {})
    widths = {name: one["width"] for name, one in drawn.items() if one.get("width")}
    assert widths == {"by": LETTER_PX * 36 + EDGES_PX, "remark": MOST_PX}


def test_every_table_of_a_page_is_drawn_by_the_functions_that_keep_formulas_out():
    drawn = {
        f"{path.relative_to(ROOT)}: {found}"
        for path in [*(ROOT / "topox_ui").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
        for found in re.findall(
            r"\.(?:dataframe|data_editor|table|style|to_csv)\b(?=[.(])", path.read_text("utf-8")
        )
    }
    of = "topox_ui/shell/charts.py"
    assert drawn == {f"{of}: .{name}" for name in ("dataframe", "data_editor", "style")}
