"""Circuits in a browser: arrow keys on the slider step slot by slot, and it plays."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_arrow_keys_move_a_slot_and_play_goes_on_by_itself(tab: Tab) -> None:
    tab.open("/Circuits?sample=moe&slot=24")
    for stroke, slot in (("ArrowRight", 25), ("ArrowRight", 26), ("ArrowLeft", 25)):
        tab.push("slot", stroke)
        expect(tab.headline).to_contain_text(f"At {slot}.5 ms")
        tab.still()
    expect(tab.slider("slot")).to_be_focused()
    tab.button("Play").click()
    expect(tab.headline).to_contain_text(re.compile("At (2[7-9]|3)"))
    tab.button("Stop").click()
    expect(tab.button("Play")).to_be_visible()
    tab.still()
