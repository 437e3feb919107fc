"""Figures of studies, of cost and of what a class predicted draw what they were given."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from topox_core.economics.comparison import Question, Swing, curves
from topox_core.economics.networks import NETWORKS, Counting, bills
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.figures.iteration.lanes import Lanes
from topox_core.figures.labs.predictions import numbers_as_dots, numbers_histogram, options_chosen
from topox_core.figures.networks import buying, cost
from topox_core.figures.palette import LIGHT
from topox_core.figures.studies.axes import MeasureWords, StudyAxis, measure_axis, seed_lines
from topox_core.figures.studies.cells import HeatMap, heat_map
from topox_core.figures.studies.points import Cloud, Upright, drawn_points, inside
from topox_core.studies.slices import Cell, CloudRows, SeedLine, front_of
from topox_core.studies.study_run import PointRow
from topox_core.text.numbers import delay_label, money, power, short, time

MS = MeasureWords("iteration time", time)
RATIO = MeasureWords("against a fat-tree", lambda v: f"{short(v)}x")
DELAYS = (0.0, 1.0, 10.0)
DELAY = StudyAxis("delay", DELAYS, tuple(map(delay_label, DELAYS)))
SPEED = StudyAxis("port speed", (100, 400), ("100G", "400G"))
PRICED = bills(1024, PRICE_SETS["opus-v1"])
QUESTION = Question(1024, PRICE_SETS["opus-v1"], Counting())


def ratios(*rows, measure=RATIO, more=()) -> HeatMap:
    """Each row a delay, each column a speed; ``more`` are cells in place of them."""
    found = {
        (speed, delay): Cell(value, value, value, 1, (), False)
        for delay, row in zip(DELAYS, rows, strict=True)
        for speed, value in zip(SPEED.values, row, strict=True)
        if value is not None
    }
    return HeatMap(SPEED, DELAY, measure, found | dict(more), ratio=True)


def test_a_cell_has_its_value_a_dot_while_it_is_still_to_come_and_a_cross_if_it_cannot_run() -> (
    None
):
    picture = ratios(
        (0.5, None),
        (1.0, None),
        (5.9, 1.18),
        more={
            (400, 0.0): Cell(None, None, None, 0, (), True, "too few ports"),
            (400, 10.0): Cell(1.18, 1.1, 1.26, 2, (7, 9), False),
        },
    )
    figure = heat_map(picture, LIGHT)
    written = {(mark.x, mark.y): mark.text for mark in figure.layout.annotations}
    assert written == {
        (0, 0): "0.5x",
        (1, 0): "✗",
        (0, 1): "1x",
        (1, 1): "·",
        (0, 2): "5.9x",
        (1, 2): "1.18x",
    }
    clicks = figure.data[1]
    runs = {(x, y): c[0] for x, y, c in zip(clicks.x, clicks.y, clicks.customdata, strict=True)}
    assert runs[1, 2] == [7, 9] and runs[1, 1] is None
    said = [tuple(one[3:]) for one in clicks.customdata]
    assert said[1] == ("cannot run", "too few ports") and said[5][1] == "mean of 2 points"


def colours_of(picture: HeatMap) -> list[list[str]]:
    figure = heat_map(picture, LIGHT)
    scale = [colour for _, colour in figure.data[0].colorscale][::2]
    return [[scale[int(value)] for value in row] for row in figure.data[0].z]


def test_a_ratio_is_pale_at_one_and_deeper_the_further_it_is_from_it_on_either_side() -> None:
    picture = ratios((0.3, 0.85), (0.996, 1.004), (1.3, 9.0))
    (deep, less), (pale, same), (worse, worst) = colours_of(picture)
    assert pale == same and len({deep, less, pale, worse, worst}) == 5
    turned = ratios(
        *((1 / 0.3, 1 / 0.85), (1.0, 1.0), (1 / 1.3, 1 / 9)),
        measure=MeasureWords("gain", str, more_is_better=True),
    )
    assert colours_of(turned) == [[deep, less], [pale, same], [worse, worst]]


LINES = [
    SeedLine(
        name,
        {
            at: Cell(
                base + 1.5 * spread, base, base + 3 * spread, 4, tuple(range(at, at + 4)), False
            )
            for at in range(3)
        },
        fabric,
    )
    for name, fabric, base, spread in (
        ("Planned circuits", "scheduled", 100.0, 5.0),
        ("Fixed circuits", "static", 150.0, 0.0),
    )
]


def test_a_line_is_the_mean_of_its_seeds_and_its_band_reaches_from_the_least_to_the_most() -> None:
    # The seeds of the fixed circuits agree: no band.
    band, planned, fixed = seed_lines(LINES, DELAY, MS, LIGHT).data
    assert list(planned.y) == [107.5] * 3 and list(fixed.y) == [150.0] * 3
    assert set(band.y) == {100.0, 115.0}
    assert list(planned.customdata[1][0]) == [1, 2, 3, 4]


@examples(60)
@given(st.lists(st.floats(-1e9, 1e9), max_size=6))
def test_the_axis_of_a_measure_holds_every_value_and_its_ticks_lie_on_it(values) -> None:
    drawn = measure_axis(LIGHT, MS, values)
    low, high = drawn["range"]
    log = drawn.get("type") == "log"
    for value in values:
        assert low <= (math.log10(value) if log else value) <= high
    assert all(low <= (math.log10(t) if log else t) <= high for t in drawn["tickvals"])


RANDOM = np.random.Generator(np.random.PCG64(3))
X, Y = RANDOM.random(300) * 9e5 + 1e5, RANDOM.random(300) * 500 + 100


def cloud(n: int = 300) -> Cloud:
    on = front_of([X[:n].tolist(), Y[:n].tolist()])
    steps = sorted(np.flatnonzero(on).tolist(), key=lambda k: X[k])
    return Cloud(
        MeasureWords("price", lambda v: f"${v:,.0f}"),
        MS,
        CloudRows(
            tuple(PointRow(k, (), run=k) for k in range(n)),
            tuple(X[:n].tolist()),
            tuple(Y[:n].tolist()),
            tuple(on.tolist()),
            tuple(steps),
            0,
        ),
        tuple(f"run {k}" for k in range(n)),
    )


def test_of_many_points_the_front_is_drawn_whole_and_the_rest_evenly_from_first_to_last() -> None:
    picture = cloud()
    shown = drawn_points(picture, most=40)
    assert len(shown) == 40 and set(picture.found.steps) <= set(shown.tolist())
    beaten = [k for k in range(300) if not picture.found.on_front[k]]
    kept = [k for k in shown.tolist() if not picture.found.on_front[k]]
    assert (kept[0], kept[-1]) == (beaten[0], beaten[-1])
    assert max(np.diff(kept)) <= 2 * min(np.diff(kept)) + 2


UPRIGHTS = (
    Upright("delay, ms", (1.0, 10.0, 100.0, None)),
    Upright("fabric", (0, 1, 0, 1), ("Fixed", "Planned")),
    Upright("iteration, ms", (5.0, 7.0, 9.0, 11.0)),
)


def test_runs_inside_the_ranges_are_those_whose_values_lie_there() -> None:
    assert inside(UPRIGHTS, {}).tolist() == [True] * 4
    assert inside(UPRIGHTS, {2: (6.0, 9.0)}).tolist() == [False, True, True, False]
    assert inside(UPRIGHTS, {1: (0, 0)}).tolist() == [True, False, True, False]
    # A run without the value lies in no range of it.
    assert inside(UPRIGHTS, {0: (0.0, 1000.0)}).tolist() == [True, True, True, False]
    assert inside(UPRIGHTS, {0: (5.0, 200.0), 1: (0, 0)}).tolist() == [False, False, True, False]


LANES = Lanes(8, 1, ((0, 0),), 0, 7)


@pytest.mark.parametrize(
    ("measure", "unit", "words"), [("cost", 1e6, money), ("power", 1e3, power)]
)
def test_stacked_parts_add_up_to_the_total_on_top(measure, unit, words) -> None:
    figure = cost.stacked(PRICED, measure, LIGHT, infeasible=("photonic_rails",))
    heights = np.zeros(len(NETWORKS))
    for trace in figure.data:
        np.add.at(heights, np.array(trace.x), np.array(trace.y))
    amounts = [one.cost_usd if measure == "cost" else one.power_w for one in PRICED.values()]
    assert heights * unit == pytest.approx(amounts)
    texts = [mark.text for mark in figure.layout.annotations]
    assert texts[0] == f"<b>{words(amounts[0])}</b>" and texts[-1].endswith("✗")


def test_a_swing_whose_ends_lie_on_one_side_shows_both() -> None:
    (larger,) = buying.tornado((Swing("x", ("a", 0.6), ("b", 0.7)),), 0.5, LIGHT).data
    assert larger.name == "larger saving"
    assert len(larger.x) == 2 and abs(larger.x[0]) > abs(larger.x[1])
    assert [text.replace("\u00a0", " ") for text in larger.text] == ["", "60 %"]


@pytest.mark.parametrize("measure", ["cost", "power"])
def test_names_at_the_lines_ends_do_not_meet(measure) -> None:
    figure = cost.by_size(curves(QUESTION, (512, 1024)), measure, 1024, LIGHT)
    low, high = figure.layout.yaxis.range
    places = sorted(mark.y for mark in figure.layout.annotations)
    assert len(places) == len(NETWORKS)
    assert min(np.diff(places)) >= (high - low) * 13 / (cost.HEIGHT - 52)


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


def test_a_label_does_not_pass_another_network_s_point_to_the_left_of_its_own() -> None:
    def at(name: str, usd: float, ms: float, rival: bool = False) -> buying.Drawn:
        ends = (usd, usd, usd) if rival else (0.7 * usd, usd, 1.6 * usd)
        return buying.Drawn(name, ends, (ms, ms, ms), rival)

    networks = [
        at("Fixed circuits on a patch panel", 1_167.0, 12.0, True),
        at("Robotic", 1_167.0, 12.0),
        at("Full fat-tree", 1_860.0, 12.0, True),
        at("Fat-tree of the same cost", 1_860.0, 12.0, True),
        *(at(name, 2_052.0, 10.0) for name in ("PLZT", "Silicon photonics", "RotorNet")),
        *(at(name, 2_052.0, 12.0) for name in ("3D MEMS", "Piezo", "Liquid crystal")),
    ]
    figure = buying.buying_figure(networks, MeasureWords("price", money), MS, LIGHT, (4, 5, 6))
    sides = {mark.text: (mark.xanchor, mark.yanchor) for mark in figure.layout.annotations}
    assert sides["3D MEMS<br>Piezo<br>Liquid crystal"] == ("left", "bottom") and len(sides) == 4
    # One that stands some rows off is led to its point by a line, past none to its right.
    led = [mark.text for mark in figure.layout.annotations if mark.showarrow]
    assert led == ["Fixed circuits on a patch panel<br>Robotic"]


def test_a_label_is_not_struck_through_by_another_network_s_range() -> None:
    networks = [
        *(
            buying.Drawn(name, (26_000.0, 40_000.0, 68_000.0), (ms, ms, ms))
            for name, ms in (
                ("PLZT", 106.0),
                ("Photonics", 106.0),
                ("RotorNet", 106.0),
                ("Piezo", 165.0),
            )
        ),
        buying.Drawn("Fat-tree of the same cost", (40_000.0,) * 3, (366.0,) * 3, True),
    ]
    figure = buying.buying_figure(networks, MeasureWords("price", money), MS, LIGHT, (0, 1, 2))
    plzt = next(one for one in figure.layout.annotations if "PLZT" in one.text)
    assert (plzt.yanchor, plzt.yshift) == ("top", -3), "above it lies a range"
