"""Numbers on screen: three significant digits, units always."""

import pytest

from topox_core.text.numbers import (
    about_seconds,
    count,
    energy,
    money,
    percent,
    power,
    seconds,
    short,
    size,
    time,
)

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


def test_what_a_solve_took_has_two_digits_and_keeps_its_order():
    said = [about_seconds(one).replace(THIN, " ") for one in (0.0975, 0.0991, 61.4, 125.6)]
    assert said == ["0.098 s", "0.099 s", "61 s", "2 min 5 s"]


def test_units_are_always_there_and_times_change_theirs_at_a_second():
    times = time(999), time(3944), time(0.0042), seconds(0.0001), seconds(125)
    words = *times, percent(0.0101), size(306_340_000), size(12), count(17604)
    assert [one.replace(THIN, " ") for one in words] == [
        *("999 ms", "3.94 s", "4.2 µs", "< 0.001 s", "2 min 5 s"),
        *("1.01 %", "306 MB", "12 B", "17,604"),
    ]


@pytest.mark.parametrize(
    ("words", "value", "says"),
    [
        (money, 1_289_216, "$1.29 M"),
        (money, 454_656, "$455 k"),
        (money, 12, "$12"),
        (money, 999_990, "$1.00 M"),
        (power, 11_040, "11.0 kW"),
        (power, 850, "850 W"),
        (energy, 126_000, "126 MWh"),
    ],
)
def test_dollars_and_watts_as_people_read_them(words, value, says) -> None:
    assert words(value).replace("\u00a0", " ") == says
