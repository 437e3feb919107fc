"""The Rails page below its first screen: one section at a time, so that only what is looked at is computed."""

from __future__ import annotations

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.figures.rails_delay import overhead_curves
from topox_core.figures.rails_pattern import strip
from topox_core.figures.rails_windows import cdf
from topox_core.rails.technologies import TECHNOLOGIES
from topox_ui.rails.delay import Curves
from topox_ui.rails.first_screen import dark_ms, lane_of
from topox_ui.rails.reference import advice_section, bytes_section
from topox_ui.rails.rivals import experts_section, rivals_section
from topox_ui.rails.state import SECTIONS, RailsState, choices
from topox_ui.rails.subject import Pattern, Simulated, Subject, subject_preset
from topox_ui.rails.windows import control_section, windows_section
from topox_ui.shell.charts import show_error
from topox_ui.shell.downloads import Figures
from topox_ui.state.widgets import pick


def sections_of(subject: Subject) -> list[str]:
    """Return the sections that a subject has: a list of windows has no control plane, an execution no model."""
    if not isinstance(subject, Simulated):
        return ["windows", "experts", "advice"]
    if subject.preset is None:
        return ["windows", "control", "experts", "advice"]
    return list(SECTIONS)


def section(subject: Subject, pattern: Pattern, theme: Theme) -> None:
    """Draw the choice of a section, and that section."""
    have = sections_of(subject)
    see = pick(
        "Look closer",
        RailsState,
        "see",
        {name: SECTIONS[name] for name in have},
        label_visibility="collapsed",
    )
    preset = subject_preset(subject)
    try:
        if see == "windows":
            windows_section(pattern, preset, theme)
        elif see == "control" and isinstance(subject, Simulated):
            control_section(subject, theme)
        elif see == "rivals" and isinstance(subject, Simulated):
            rivals_section(subject, theme)
        elif see == "experts":
            experts_section(subject if isinstance(subject, Simulated) else None, theme)
        elif see == "bytes" and preset is not None:
            bytes_section(preset)
        else:
            advice_section(preset)
    except InputError as error:
        show_error(error)


def figures_of(pattern: Pattern, curves: Curves) -> Figures:
    """Return the first screen's figures for download, built when asked for: outside the session, whose choices are read here."""
    lane, now, dark = lane_of(pattern), choices(), dark_ms()
    traffic, windows = pattern.of(lane)
    figures: Figures = {
        "Pattern": lambda theme: strip(
            traffic, windows, dark, (0.0, max(pattern.iteration_ms, 1e-9)), theme
        ),
        "Delay study": lambda theme: overhead_curves(
            [one for one in curves.values() if one.delay_ms],
            now.delay_ms,
            now.limit / 100,
            {one.name: one.reconfiguration_ms for one in TECHNOLOGIES},
            theme,
        ),
    }
    if pattern.windows:
        figures["Windows"] = lambda theme: cdf(pattern.windows, dark, theme)
    return figures
