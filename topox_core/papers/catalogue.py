"""All cards by name, in the order of the gallery."""

from __future__ import annotations

from topox_core.errors import InputError, shown, unknown
from topox_core.papers import abstracts, circuits, opus, tdm
from topox_core.papers.card import Card
from topox_core.papers.dedicated import CARD as DEDICATED
from topox_core.papers.dlrm_batches import ALL_TO_ALL, TAX
from topox_core.papers.reconfiguration import CARD as RECONFIGURATION
from topox_core.papers.shared_cluster import CARD as SHARED
from topox_core.papers.table_iii import CARD as TABLE_III

# Cards that compute in this process, most of them in under two seconds.
DIRECT: tuple[Card, ...] = (
    *circuits.CARDS,
    *opus.CARDS,
    *tdm.CARDS,
    *abstracts.CARDS,
)
CARDS: dict[str, Card] = {
    card.name: card
    for card in (TABLE_III, TAX, ALL_TO_ALL, RECONFIGURATION, DEDICATED, SHARED, *DIRECT)
}


def card_named(name: str) -> Card:
    """Return a card.

    Raises
    ------
    InputError
        If there is none of that name; the message has the nearest one.
    """
    if name not in CARDS:
        raise InputError(
            f"{shown(name)} is an {unknown(name, CARDS, 'card')}", file="gallery", field="card"
        )
    return CARDS[name]
