"""The defects that are written down can still be made: their lines stand in the code as it is."""

import ast
from collections import Counter

import pytest

from tests.mutants.defects import Defect, all_defects
from tests.real_inputs import ROOT

DEFECTS = all_defects()


def test_defects_are_many_and_have_names_of_their_own() -> None:
    assert len(DEFECTS) >= 80
    assert [name for name, count in Counter(one.name for one in DEFECTS).items() if count > 1] == []


@pytest.mark.parametrize("defect", DEFECTS, ids=[one.name for one in DEFECTS])
def test_a_defect_can_be_made(defect: Defect) -> None:
    text = (ROOT / defect.file).read_text(encoding="utf-8")
    ast.parse(defect.in_text(text))
    assert (ROOT / defect.tests).is_dir()
