"""Cards taken out for a test come back in their place."""

from collections.abc import Iterator

import pytest

from topox_core.papers.catalogue import CARDS


@pytest.fixture(autouse=True)
def cards_in_order() -> Iterator[None]:
    """Give the list of cards back as it was: what monkeypatch puts back goes to the end."""
    order = list(CARDS.items())
    yield
    CARDS.clear()
    CARDS.update(order)
