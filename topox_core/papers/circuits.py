"""The cards on TopoOpt, TOPO-X and the lecture that compute in this process, with their claims."""

from __future__ import annotations

from topox_core.papers import (
    lecture_technologies,
    topoopt_cost,
    topoopt_layouts,
    topox_delay,
    topox_introduction,
)

CARDS = (
    topox_introduction.CARD,
    topox_delay.CARD,
    topoopt_cost.CARD,
    topoopt_layouts.CARD,
    lecture_technologies.CARD,
)
CLAIMS = (
    *topox_introduction.CLAIMS,
    *topox_delay.CLAIMS,
    *topoopt_cost.CLAIMS,
    *topoopt_layouts.CLAIMS,
    *lecture_technologies.CLAIMS,
)
