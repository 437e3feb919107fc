"""The house stays a house: imports go one way, files stay small, names say what is inside."""

import ast
import functools
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.real_inputs import ROOT

# What every room stands on; it looks at nobody outside itself (docs/architecture.md says what each
# room is for).
GROUND = {"compiled", "errors", "schema", "text", "runs", "model", "io"}
MAY_USE = {
    "schedule": GROUND,
    "training": GROUND,
    "workloads": GROUND | {"training"},
    "check": {
        "errors",
        "io",
        "schema",
        "model.cluster",
        "model.task_graph",
        "tdm.model.jobs",
    },
    "tdm": GROUND | {"schedule"},
    "worker": GROUND | {"schedule"},
    "figures": GROUND
    | {
        "schedule.results.result",
        "schedule.source",
        "schedule.results.story",
        "check.report",
        "fabrics",
        "topology",
        "strategy",
        "papers",
        "tdm",
        "rails",
        "economics",
        "traces",
        "training",
        "studies",
        "labs",
        "claims",
    },
    "warm_up": GROUND | {"schedule", "fabrics", "strategy", "tdm", "training"},
    "topology": GROUND | {"schedule"},
    "demand": GROUND | {"schedule"},
    "fabrics": GROUND | {"schedule", "topology", "economics", "demand"},
    "strategy": GROUND | {"fabrics", "schedule", "topology", "training", "workloads"},
    "rails": GROUND | {"fabrics", "topology", "training"},
    "traces": GROUND | {"rails"},
    "economics": GROUND,
    "library": GROUND,
    "studies": GROUND
    | {
        "economics",
        "fabrics",
        "library",
        "rails",
        "schedule",
        "tdm",
        "traces",
        "training",
        "workloads",
    },
    "labs": GROUND
    | {"check", "economics", "fabrics", "rails", "schedule", "tdm", "topology", "training"}
    | {"workloads"},
    "claims": GROUND | {"fabrics", "library", "papers.rows", "studies"},
    "papers": GROUND
    | {
        "demand",
        "economics",
        "fabrics",
        "library",
        "rails",
        "schedule",
        "strategy",
        "tdm",
        "topology",
    }
    | {"training", "workloads"},
}
# Inside ``tdm``: what each part may use besides itself.
TDM_MAY_USE = {
    "kernels": set(),
    "model": {"kernels"},
    "mixes": {"model"},
    "search": {"model"},
    "exact": {"model", "search"},
    "algorithms": {"exact", "kernels", "model", "search"},
}
# Of the app: what its pages stand on.
UI_SHARED = {"answers", "classroom", "runs", "shell", "state"}
VAGUE = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imported(path: Path) -> set[str]:
    """Every module that a file imports, with ``from a import b`` told as ``a`` and, if b is a module, ``a.b``."""
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: relative import"
            folder = ROOT / node.module.replace(".", "/")
            parts = [
                alias.name
                for alias in node.names
                if (folder / f"{alias.name}.py").exists()
                or (folder / alias.name / "__init__.py").exists()
            ]
            names |= {f"{node.module}.{part}" for part in parts}
            if len(parts) < len(node.names):
                names.add(node.module)
    return names


def imports(*folders: str) -> list[tuple[str, str]]:
    """Every module of some folders with each of those that it imports."""
    return [(module_name(path), name) for path in python_files(*folders) for name in imported(path)]


def room(module: str) -> str:
    """The room of a core module: ``schedule`` for ``topox_core.schedule.solve``."""
    return module.split(".")[1] if "." in module else ""


def test_no_core_module_loads_streamlit() -> None:
    modules = [
        module_name(path) for path in python_files("topox_core") if path.name != "__main__.py"
    ]
    program = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\nprint('streamlit' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    assert run.stdout.strip() == "False"


def test_nothing_imports_what_stands_above_it() -> None:
    above = {"topox_core": {"streamlit", "topox_ui", "pages", "app"}, "topox_ui": {"pages", "app"}}
    for folder, forbidden in above.items():
        assert not [one for one in imports(folder) if one[1].split(".")[0] in forbidden]


def test_a_page_s_package_is_nobody_else_s() -> None:
    """What two pages need is in a package that both stand on; the registry of pages names the others as text."""
    packages = {path.parent.name for path in (ROOT / "topox_ui").glob("*/__init__.py")}
    inside = [one for one in imports("topox_ui") if one[1].startswith("topox_ui.")]
    assert packages > UI_SHARED
    assert not [one for one in inside if room(one[1]) in packages - UI_SHARED - {room(one[0])}]
    assert not [
        (here, name)
        for here, name in inside
        if room(name) == "answers" and room(here) in UI_SHARED - {"answers"}
    ]


@pytest.mark.parametrize("name", sorted(GROUND))
def test_the_ground_floor_looks_at_nobody_above(name: str) -> None:
    assert not [
        (here, other)
        for here, other in imports("topox_core")
        if room(here) == name and other.startswith("topox_core.") and room(other) not in GROUND
    ]


@pytest.mark.parametrize("name", sorted(MAY_USE))
def test_each_room_uses_only_the_rooms_below_it(name: str) -> None:
    allowed = tuple(f"topox_core.{other}." for other in MAY_USE[name] | {name})
    assert not [
        (here, other)
        for here, other in imports("topox_core")
        if room(here) == name
        and other.startswith("topox_core.")
        and not f"{other}.".startswith(allowed)
    ]


def test_the_parts_of_time_division_use_only_those_below_them() -> None:
    parts = {path.stem for path in (ROOT / "topox_core/tdm").iterdir() if path.name[0] != "_"}
    assert parts == set(TDM_MAY_USE)
    assert not [
        (here, name)
        for here, name in imports(*(f"topox_core/tdm/{part}" for part in parts))
        if name.startswith("topox_core.tdm.")
        and name.split(".")[2] not in TDM_MAY_USE[part := here.split(".")[2]] | {part}
    ]


def test_every_room_has_its_rule() -> None:
    rooms = {room(module_name(path)) for path in python_files("topox_core")} - {""}
    assert rooms == GROUND | set(MAY_USE) | {
        "api",
        "cli",
        "file_schemas",
        "result_keys",
        "__main__",
    }


def test_the_checker_knows_not_how_rounds_are_found() -> None:
    used = {name for _, name in imports("topox_core/check")}
    rounds = {"topox_core.tdm.model.jobs"}
    assert {name for name in used if name.startswith("topox_core.tdm")} == rounds
    beyond = {
        name
        for here, name in imports("topox_core/tdm/model")
        if here in rounds and name.startswith("topox_core.")
    }
    assert beyond <= rounds | {
        "topox_core.model.quantities",
        "topox_core.runs.run",
        "topox_core.schema.fields",
    }


def test_rooms_do_not_go_round_in_circles() -> None:
    # The ground floor is one room: a task graph is checked against a cluster, an execution holds both.
    one_room = dict.fromkeys(GROUND, "ground")
    uses: defaultdict[str, set[str]] = defaultdict(set)
    for module, name in imports("topox_core"):
        here, there = (one_room.get(room(one), room(one)) for one in (module, name))
        if name.startswith("topox_core.") and there != here:
            uses[here].add(there)
    order = list(TopologicalSorter(uses).static_order())
    assert order.index("ground") < order.index("schedule") < order.index("cli")


@pytest.mark.parametrize("tree", ["topox_core", "topox_ui"])
def test_packages_and_files_of_a_room_do_not_go_round_in_circles(tree: str) -> None:
    uses: defaultdict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module, name in imports(tree):
        (house, here), (there, other) = (split_room(one, tree) for one in (module, name))
        if house == there and here != other and here and other:
            uses[house][here].add(other)
    assert uses
    for house in uses.values():
        TopologicalSorter(house).prepare()  # raises CycleError with the circle


def split_room(module: str, tree: str) -> tuple[str, str]:
    """Return the room of a module, for the app the whole house, and the package or file in it that the module belongs to."""
    parts = module.split(".")
    depth = 2 if tree == "topox_core" else 1
    return ".".join(parts[:depth]), ".".join(parts[depth : depth + 1])


def test_whoever_remembers_something_says_whether_a_reload_keeps_it() -> None:
    """Session state is written by ``Lasting`` and ``Passing`` alone; elsewhere a widget's value is read by its key."""
    wrong, names = [], []
    for path in [*python_files("topox_ui", "pages"), ROOT / "app.py"]:
        tree = parsed(path)
        reads = {
            id(node.value)
            for node in ast.walk(tree)
            if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load))
            or (isinstance(node, ast.Attribute) and node.attr == "get")
        } | {id(node.comparators[0]) for node in ast.walk(tree) if isinstance(node, ast.Compare)}
        if path != ROOT / "topox_ui/state/session.py":
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and node.attr == "session_state"
                and id(node) not in reads
            ]
        names += [
            node.args[0].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func).partition("[")[0] in ("Lasting", "Passing")
            and isinstance(node.args[0], ast.Constant)
        ]
    assert wrong == []
    assert len(names) == len(set(names)) > 15


@pytest.mark.parametrize(
    ("folder", "most"), [("topox_core", 650), ("topox_ui", 650), ("pages", 120)]
)
def test_files_can_be_read_in_one_sitting_and_pages_are_thin(folder: str, most: int) -> None:
    lines = {path: path.read_text("utf-8").count("\n") for path in python_files(folder)}
    assert not [path for path, count in lines.items() if count > most]


def test_names_say_what_is_inside() -> None:
    places = [path.relative_to(ROOT) for path in python_files("topox_core", "topox_ui", "pages")]
    assert not [place for place in places if VAGUE & {*place.parts[:-1], *place.stem.split("_")}]
