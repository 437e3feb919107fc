"""All cards on time-division multiplexing (drafts of Tang, Chen and Zhu), with their claims."""

from __future__ import annotations

from topox_core.papers import (
    tdm_packets,
    tdm_study,
    tdm_traffic,
    tdm_training_times,
)

CARDS = (
    tdm_packets.CARD,
    tdm_training_times.CARD,
    tdm_traffic.CARD,
    tdm_study.CARD,
)
CLAIMS = (
    *tdm_packets.CLAIMS,
    *tdm_training_times.CLAIMS,
    *tdm_traffic.CLAIMS,
    *tdm_study.CLAIMS,
)
