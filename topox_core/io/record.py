"""Records of JSON files and tables."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def record_of(one: object, names: str) -> dict[str, Any]:
    """Return the named attributes (separated by spaces) of an object as a JSON record has them."""
    return {name: getattr(one, name) for name in names.split()}


def digest_of(parts: object) -> str:
    """Return SHA-256 of canonical JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
