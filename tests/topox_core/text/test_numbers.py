"""Numbers on screen: three significant digits, units always."""

import pytest

from topox_core.text.numbers import count, percent, plural, seconds, short, size, time

THIN = "\u00a0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (0.5, "0.5"),
        (43.04, "43.0"),
        (32.226, "32.2"),
        (185.4, "185"),
        (5274.3, "5,270"),
        (0.0123, "0.0123"),
        (99.96, "100"),
        (-0.25, "-0.25"),
        (float("nan"), "–"),
        (1.234e-7, "1.23e-07"),
    ],
)
def test_three_significant_digits_and_exact_values_bare(value, text):
    assert short(value) == text


def test_times_change_unit_at_a_second():
    assert time(999) == f"999{THIN}ms"
    assert time(3944) == f"3.94{THIN}s"
    assert time(0.0042) == f"4.2{THIN}µs"
    assert seconds(0.0001) == f"<{THIN}0.001{THIN}s"
    assert seconds(125) == f"2{THIN}min 5{THIN}s"


def test_units_are_always_there():
    assert percent(0.0101) == f"1.01{THIN}%"
    assert size(306_340_000) == f"306{THIN}MB"
    assert size(12) == f"12{THIN}B"
    assert count(17604) == "17,604"
    assert plural(1, "task") == f"1{THIN}task"
    assert plural(3, "dependency", "dependencies") == f"3{THIN}dependencies"
