"""All cards by name, in the order of the gallery."""

from __future__ import annotations

from topox_core.errors import InputError, shown, unknown
from topox_core.papers import (
    delta,
    lecture_technologies,
    mixnet,
    opus_constraints,
    opus_cost,
    opus_practices,
    opus_provisioning,
    opus_rails,
    opus_switches,
    opus_window_lengths,
    opus_windows,
    spectra,
    swot,
    tdm_packets,
    tdm_study,
    tdm_traffic,
    tdm_training_times,
    topoopt_cost,
    topoopt_layouts,
    topox_delay,
    topox_introduction,
)
from topox_core.papers.card import Card
from topox_core.papers.claim import Claim
from topox_core.papers.dedicated import CARD as DEDICATED
from topox_core.papers.dlrm_batches import ALL_TO_ALL, TAX
from topox_core.papers.reconfiguration import CARD as RECONFIGURATION
from topox_core.papers.shared_cluster import CARD as SHARED
from topox_core.papers.table_iii import CARD as TABLE_III

# Cards that compute in this process, most of them in under two seconds; each says what it claims.
_DIRECT = (
    *(topox_introduction, topox_delay, topoopt_cost, topoopt_layouts, lecture_technologies),
    *(opus_practices, opus_constraints, opus_windows, opus_window_lengths, opus_switches),
    *(opus_cost, opus_provisioning, opus_rails),
    *(tdm_packets, tdm_training_times, tdm_traffic, tdm_study),
    *(delta, spectra, swot, mixnet),  # of which only the abstract is public here
)
DIRECT: tuple[Card, ...] = tuple(one.CARD for one in _DIRECT)
DIRECT_CLAIMS: tuple[Claim, ...] = tuple(claim for one in _DIRECT for claim in one.CLAIMS)
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
