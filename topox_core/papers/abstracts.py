"""The cards on papers of which only the abstract is public here, with their claims."""

from __future__ import annotations

from topox_core.papers import delta, mixnet, spectra, swot

CARDS = (delta.CARD, spectra.CARD, swot.CARD, mixnet.CARD)
CLAIMS = (*delta.CLAIMS, *spectra.CLAIMS, *swot.CLAIMS, *mixnet.CLAIMS)
