"""The samples as cards: each is a link to its schedule, with one finding in words."""

from __future__ import annotations

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.text.numbers import plural
from topox_core.workloads.samples import SAMPLES, Sample
from topox_ui.shell.links import sample_link
from topox_ui.state.loading import scenario

CARDS_A_ROW = 4
# What comes out of each; the bold figure is the one that its Schedule page opens with.
FINDINGS = {
    "blackboard": "Two transfers need the same port: the better order takes <b>10 ms</b>, the other 12 ms.",
    "patience": "Waiting before the first transfer cuts 17 ms to 14. Never switching is faster still: <b>13 ms</b>.",
    "race": "Simple rules reach <b>70.4 ms</b>. Press <i>Prove it</i> to search for a better schedule.",
    "llama3-8b": "Fixed circuits take <b>557 ms</b>; changing circuits saves no time.",
    "fsdp": "Two rings use both ports: <b>182 ms</b>, proved best, and no circuit ever has to change.",
    "moe": "Circuits that change take <b>107 ms</b>; the best fixed circuits found take 165 ms.",
    "dlrm-16": "An iteration takes <b>36.8 ms</b>; without its all-reduce of 306 MB it would take 15.5 ms.",
    "llama3-70b": "Ten thousand tasks take <b>2.82 s</b>, within 2 % of the lower bound.",
}


def cards(theme: Theme) -> None:
    """Draw the samples, the one in use marked."""
    names = list(SAMPLES)
    now = scenario()
    for begin in range(0, len(names), CARDS_A_ROW):
        row = names[begin : begin + CARDS_A_ROW]
        for column, name in zip(st.columns(CARDS_A_ROW), row, strict=False):
            with column.container(border=True, key=f"card_{name}", height="stretch"):
                _card(SAMPLES[name])
            if now.source == "sample" and now.name == name:
                st.html(
                    f"<style>.st-key-card_{name} {{ border-color: {theme.primary}; "
                    f"box-shadow: inset 3px 0 0 {theme.primary}; }}</style>"
                )


def _card(sample: Sample) -> None:
    sample_link(sample.name, sample.title)
    sizes = f"{plural(sample.tasks, 'task')} · {plural(sample.servers, 'server')}"
    finding = FINDINGS.get(sample.name, sample.see)
    st.html(f'<p class="card">{finding}<span>{sizes}</span></p>')
