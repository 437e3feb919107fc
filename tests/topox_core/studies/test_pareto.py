"""The front holds what nothing beats: checked against every pair of points, ties and gaps included."""

from hypothesis import example, given, strategies as st

from tests.conftest import examples
from topox_core.studies.pareto import front_of

# Few values, so that ties are frequent.
VALUES = st.one_of(st.none(), st.integers(-3, 3).map(float))


def beats(a: tuple, b: tuple) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


@examples(100)
@given(
    st.integers(1, 4).flatmap(lambda d: st.lists(st.tuples(*[VALUES] * d), min_size=1, max_size=30))
)
@example([(1.0, 2.0), (1.0, 2.0), (0.0, 3.0)])  # equal points do not beat each other
def test_the_front_is_what_no_other_point_beats(points):
    found = front_of(list(zip(*points, strict=True)))
    known = [p for p in points if None not in p]
    for on, point in zip(found, points, strict=True):
        assert on == (None not in point and not any(beats(other, point) for other in known))


@examples(50)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20))
def test_more_is_better_turns_a_measure_round(points):
    first, second = (list(column) for column in zip(*points, strict=True))
    turned = [None if v is None else -v for v in second]
    assert (front_of([first, second], (False, True)) == front_of([first, turned])).all()


def test_what_is_no_number_is_left_out():
    found = front_of([[1.0, float("nan"), 2.0, float("inf")], [2.0, 0.0, 1.0, 0.0]])
    assert found.tolist() == [True, False, True, False]
