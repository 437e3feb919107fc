"""What a class predicted, as figures: counts add up, and the truth is drawn only where it is given."""

from topox_core.figures.palette import LIGHT
from topox_core.figures.predictions import numbers_as_dots, numbers_histogram, options_chosen

INTERVALS = [(float(k), float(k + 1), (3 * k) % 5) for k in range(12)]
ENDS = ("or less", "or more")


def test_the_truth_is_a_line_in_view_where_it_is_given_and_nowhere_else() -> None:
    for truth in (-30.0, 5.0, 90.0):
        told = {"truth": truth, "truth_words": "90 ms"}
        for figure in (
            numbers_histogram(INTERVALS, LIGHT, unit="ms", ends=ENDS, **told),
            numbers_as_dots([1.0, 2.0, 2.0], LIGHT, unit="ms", **told),
        ):
            low, high = figure.layout.xaxis.range
            assert low < truth == figure.layout.shapes[0].x0 < high
    before = numbers_histogram(INTERVALS, LIGHT, unit="ms", ends=ENDS)
    assert not before.layout.shapes and not before.layout.annotations


def test_the_right_option_is_marked_only_when_it_is_told() -> None:
    options = [("x", 6), ("y", 3), ("neither", 0)]
    told = {"names": ("first", "again"), "again": [1, 8, 0]}
    for more, marked in (({}, 0), (told, 0), (told | {"right": [1]}, 1)):
        assert str(options_chosen(options, LIGHT, **more)).count("✓") == marked
