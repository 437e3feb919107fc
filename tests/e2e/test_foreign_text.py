"""What a link says is text in the browser as well, whatever its renderer makes of addresses."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser
ADDRESSES = "www.example.org http://example.org/x me@example.org"


@pytest.mark.long
def test_an_address_in_a_link_does_not_become_one(tab: Tab) -> None:
    tab.open(f"/Schedule?sample={quote(ADDRESSES)}&port_gbps={quote(ADDRESSES)}")
    expect(tab.message.first).to_contain_text("Ignored in the link")
    expect(tab.message.first).to_contain_text("example.org")
    links = tab.page.locator("a").evaluate_all("all => all.map(one => one.href)")
    assert [one for one in links if "example.org" in one] == []
