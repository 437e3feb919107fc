"""Where the samples lie: at the top of a checkout, or inside the package once installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parent / "sample_data"

SAMPLE_FOLDER = _CHECKOUT if (_CHECKOUT / "index.json").is_file() else _PACKAGE / "sample_data"
