"""What every lab and the tour run with, so that a better search elsewhere changes no lesson and no key."""

from __future__ import annotations

from topox_core.schedule.settings import Settings

# Whole slots, planned circuits, one ring, fast rules.
LESSON_SETTINGS = Settings.of(
    clock="slots", iteration="first", switching="planned", tick="slot", engine="list"
)
CLASS_SEED = 0
