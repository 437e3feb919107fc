"""Steps of a figure one after another: back, on, play; the part of a page that steps by itself while it plays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from topox_ui.state.session import Passing

_TICKS = Passing[int]("play_ticks")


@dataclass(frozen=True)
class Player:
    """What is stepped through on a page.

    Attributes
    ----------
    name
        Of the page: each remembers whether it plays.
    go
        Goes to a step.
    every_s
        How long a step stands while it plays.
    """

    name: str
    go: Callable[[int], None]
    every_s: float = 1.6

    @property
    def _playing(self) -> Passing[bool]:
        return Passing(f"playing_{self.name}")

    @property
    def playing(self) -> bool:
        """Whether it plays."""
        return bool(self._playing.get())

    def draw(self, part: Callable[..., None], *args: Any) -> None:
        """Draw the part of the page that steps; it is drawn anew by itself while it plays."""
        st.fragment(part, run_every=self.every_s if self.playing else None)(*args)

    def step(self, at: int, last: int) -> int:
        """Return the step to draw: while it plays the next one, until the last."""
        if not self.playing:
            return at
        ticks = _TICKS.get() or 0
        _TICKS.set(ticks + 1)
        if ticks and at < last:
            at += 1
            self.go(at)
        elif ticks:
            self._play(False)
        return at

    def buttons(self, at: int, last: int, row: Any) -> None:
        """Draw back, on and play in a row, which does not part them."""
        row = row.container(horizontal=True, width="content")
        for key, icon, to, words in (
            ("step_back", "skip_previous", at - 1, "back"),
            ("step_on", "skip_next", at + 1, "on"),
        ):
            row.button(
                "",
                icon=f":material/{icon}:",
                key=key,
                disabled=not 0 <= to <= last,
                on_click=self.go,
                args=(to,),
                help=f"One step {words}",
            )
        if row.button(
            "Stop" if self.playing else "Play",
            icon=":material/stop:" if self.playing else ":material/play_arrow:",
            key="play",
            disabled=not last,
            help="Shows each step up to the last; at the last step it starts again.",
        ):
            if not self.playing and at == last:
                self.go(0)
            self._play(not self.playing)

    def _play(self, playing: bool) -> None:
        self._playing.set(playing)
        _TICKS.set(0)
        st.rerun()
