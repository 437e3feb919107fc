"""Tables on pages: what a reader saves or copies from one is no formula."""

import pandas as pd

from topox_core.io.tables import harmless
from topox_ui.shell.charts import without_formulas

FORMULA = "=HYPERLINK(1)"


def test_no_cell_and_no_column_of_a_table_is_a_formula_and_the_rest_is_as_it_was():
    table = pd.DataFrame(
        {"task": [FORMULA, "f0"], "change": ["+3 %", "-1.5 ms"], FORMULA: [-1.5, 2.0]}
    )
    shown = without_formulas(table)
    assert list(shown.columns) == ["task", "change", harmless(FORMULA)]
    assert shown.iloc[:, 0].tolist() == [harmless(FORMULA), "f0"]
    assert shown["change"].tolist() == ["+3 %", "-1.5 ms"]
    assert shown.iloc[:, 2].tolist() == [-1.5, 2.0]
    assert shown.dtypes.iloc[2] == "float64"
    assert list(table.columns)[2] == FORMULA  # what was given is as it was


def test_equal_names_of_columns_stay_apart():
    table = pd.DataFrame([["=a", 1, "b"]], columns=["x", "y", "x"])
    assert without_formulas(table).to_numpy().tolist() == [["'=a", 1, "b"]]
