"""Cards taken out for a test come back in their place."""

from tests.cards_in_order import cards_in_order  # noqa: F401
