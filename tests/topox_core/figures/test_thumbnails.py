"""The small picture of a published card shows how far apart numbers are, not only that they differ."""

import re
from base64 import b64decode

import pytest

from topox_core.figures.palette import LIGHT
from topox_core.figures.papers import EDGE, HEIGHT, thumbnail
from topox_core.papers.rows import Row


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize(
    ("theirs", "ours", "apart_px"), [(70.5, 70.46, (0, 1)), (10, 70, (25, 41))]
)
def test_printed_and_ours_lie_as_far_apart_as_they_are(logarithmic, theirs, ours, apart_px):
    address = thumbnail([Row("a", "b", "", theirs, ours, "match", "")], LIGHT, logarithmic)
    svg = b64decode(address.partition(",")[2]).decode()
    of_ours, of_theirs = re.search(r"M[\d.]+ ([\d.]+)V([\d.]+)", svg).groups()
    low, high = apart_px
    assert low <= abs(float(of_ours) - float(of_theirs)) <= high
    assert all(EDGE <= float(one) <= HEIGHT - EDGE for one in (of_ours, of_theirs))
