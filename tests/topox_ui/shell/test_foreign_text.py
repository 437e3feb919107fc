"""What a link or a file says is drawn as text on every page, and no session reads the names of another one's files."""

import ast
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.conftest import ROOT
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_json import dump_graph_json
from topox_core.text.foreign import JOINER, as_text
from topox_core.workloads.samples import load_sample
from topox_ui.shell.pages import PAGES
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
        if tag == "img" and dict(attrs).get("src", "").startswith("data:image/svg+xml;base64,"):
            return  # a picture that we have drawn
        if tag == "a" and len(attrs) == 1 and re.fullmatch(r"#entry-[a-z0-9-]+", attrs[0][1] or ""):
            return  # a place on the same page
        if tag in ("img", "a", "i", "script", "iframe") or any(
            k.startswith("on") for k, _ in attrs
        ):
            self.found.append((tag, attrs))


def elements(block):
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from elements(child)
        if hasattr(child, "proto") and child.proto is not None:
            yield child


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


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
                found += [
                    f"figure: {one}"
                    for one in strings(json.loads(proto.spec))
                    if re.search(r"<(?!/?(b|br|extra|span|i|sup|sub)\b)(?=[A-Za-z/!])", one)
                ]
            elif kind not in ("code", "arrow_data_frame", "dataframe"):
                texts = [getattr(proto, name, "") for name in MARKDOWN]
                texts = [
                    one for one in texts if isinstance(one, str) and EVIL in one.replace(JOINER, "")
                ]
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
        replace(
            task,
            id=f"{task.id}{ids}",
            dependencies=tuple(f"{one}{ids}" for one in task.dependencies),
        )
        for task in graph.tasks
    )
    return replace(graph, name=name, tasks=tasks), replace(cluster, name=f"cluster {name}"[:200])


def bring(at, graph, cluster, file="mine"):
    at.file_uploader(key="up_graph").upload(f"{file}.json", dump_graph_json(graph)).run()
    at.file_uploader(key="up_cluster").upload(f"{file}.cluster.json", dump_cluster(cluster)).run()
    assert not at.exception and not at.error, [one.value for one in at.error]
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
    written = as_text(hostile, "markdown")
    assert not any(one.search(written) for one in LIVE)
    assert not re.match(r"\s*([-+#>]|\d+[.)])\s", written)
    assert "\n" not in written and "\u202e" not in written
    assert re.search(r"[<>]", as_text(hostile, "html")) is None
    assert re.search(r"[<>]", as_text(hostile, "figure")) is None


@pytest.mark.parametrize(
    "plain", ["moe", "fsdp, 8 servers", "a_b.json, row 3: must be > 0 (got -1)"]
)
def test_an_ordinary_name_stays_as_it_is(plain):
    assert as_text(plain, "markdown") == plain


@pytest.mark.long
def test_no_page_draws_a_name_or_an_id_of_a_file_as_markdown_or_html(visit):
    at = bring(visit(way="files"), *named(HOSTILE, ids=HOSTILE.replace(" ", "")))
    assert not live(at)
    assert EVIL in seen(at)
    for page in PAGES[1:]:
        at.switch_page(page.path).run()
        assert not at.exception, page.title
        assert not live(at), page.title


@pytest.mark.parametrize("page", PAGES, ids=[page.title for page in PAGES])
@pytest.mark.long
def test_no_page_draws_what_a_link_says_as_markdown_or_html(visit, page):
    query = {
        "sample": HOSTILE,
        "set.servers": HOSTILE,
        HOSTILE: HOSTILE,
        f"{page.prefix}source": HOSTILE,
        f"{page.prefix}model": HOSTILE,
        f"{page.prefix}stage": HOSTILE,
        f"{page.prefix}ring": HOSTILE,
    }
    at = visit(page.path, **query)
    assert not at.exception
    assert not live(at)


def test_an_error_line_quotes_a_file_as_text(visit):
    at = visit(way="files")
    record = json.loads(dump_graph_json(named("x")[0]))
    record["tasks"][0]["dependencies"] = [HOSTILE[:100]]
    at.file_uploader(key="up_graph").upload(f"[a](http://{EVIL}).json", json.dumps(record).encode())
    at.run()
    assert len(at.error) == 1
    assert not live(at)


@pytest.mark.long
def test_no_session_reads_the_names_of_another_ones_files(visit):
    """Results are shared between sessions whose files say the same; names are each session's own."""
    for name, other in (("first-plan", "second-plan"), ("second-plan", "first-plan")):
        at = bring(visit(way="files"), *named(name), file=name)
        for page in PAGES[1:5]:
            at.switch_page(page.path).run()
            assert other not in seen(at), page.title
        at.switch_page(PAGES[7].path).run()
        assert other not in seen(at)


def test_a_shared_result_carries_the_names_of_the_session_that_asks():
    from topox_core.runs.stopping import never
    from topox_core.schedule.settings import Settings
    from topox_ui.answers.case import Case
    from topox_ui.answers.first import first_answer
    from topox_ui.answers.solving import drawn, token

    for name in ("first-plan", "second-plan"):
        case = Case(*named(name), Settings.of())
        result = first_answer(case, never)
        assert result.execution.cluster.name == f"cluster {name}"
        assert drawn(token(case, result), result).execution.cluster.name == f"cluster {name}"


# -- everything that draws text ---------------------------------------------------------------------

DRAWS_MARKDOWN = {"error", "warning", "info", "success", "caption", "markdown", "write", "toast"}
DRAWS_HTML = {"html", "write_html", "quiet", "headline", "chart_title"}
# Attributes in which names of files and links travel, and calls that say what is wrong.
FOREIGN = {"title", "name", "message", "problem", "trouble", "note", "file", "item", "ids"}
# Whose are our own: parts of the program, not of a file.
OURS = {
    "ALGORITHMS", "CARDS", "Path", "card", "choice", "kind", "model", "one", "page", "parallelism",
    "picture", "run", "sample", "theme", "way",
}  # fmt: skip
MAKE_TEXT = {"as_text", "escape"}


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
