"""Tables on pages: what a reader saves or copies from one is no formula."""

import re

import pandas as pd
from streamlit.testing.v1 import AppTest

from tests.real_inputs import ROOT
from topox_core.io.tables import harmless
from topox_ui.shell.charts import _explained, without_formulas

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
    editor(table)


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
        "share": [0.1234, 0.5, None],
        "right": [True, False, True],
        "task": ["a", "b", "c"],
    }
    drawn = _explained(pd.DataFrame(columns), {})
    forms = {name: one.get("type_config", {}).get("format") for name, one in drawn.items()}
    assert {name: form for name, form in forms.items() if form} == {
        "cost ($)": "%,.2f",
        "bytes": "%,d",
    }


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
