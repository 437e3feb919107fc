"""The workbench in a made-up language that is 40 % longer than English, served as ``streamlit run app.py`` would be.

    python -m tests.e2e.longer_words --server.port 8502

Every sentence of the tour, the labs and the projector has its vowels, and some other letters, twice; places, tags and
keys stay as they are.
"""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from topox_core.labs import lab

# What is no word: a place to be filled in, a tag, a hard space.
_KEPT = re.compile(r"(\{[^}]*\}|<[^>]*>|&\w+;)")
_TWICE = re.compile(r"([aeiounrs])")


def longer(text: str) -> str:
    """Return a text with some letters twice."""
    return "".join(
        piece if _KEPT.fullmatch(piece) else _TWICE.sub(r"\1\1", piece)
        for piece in _KEPT.split(text)
    )


def longer_texts(sections: Any) -> Any:
    """Return the texts of a language in the made-up one."""
    if isinstance(sections, dict):
        return {key: longer_texts(value) for key, value in sections.items()}
    if isinstance(sections, list):
        return [longer_texts(value) for value in sections]
    return longer(sections)


def main() -> None:
    """Serve."""
    from streamlit.web import cli

    own = {"loads": lambda text: longer_texts(json.loads(text))}
    lab.json = SimpleNamespace(**vars(json) | own)
    app = Path(__file__).resolve().parents[2] / "app.py"
    sys.argv = ["streamlit", "run", str(app), *sys.argv[1:]]
    cli.main()


if __name__ == "__main__":
    main()
