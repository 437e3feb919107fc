"""What a link or a file says, drawn as text: never as Markdown, HTML, a formula, an emoji or a directive.

Names, ids and titles are somebody else's. Whoever draws one passes it through :func:`escape_untrusted`.
"""

import html
import re
from typing import Literal

Medium = Literal["html", "markdown", "figure"]

# Breaks what Markdown's renderer looks for after parsing, where a backslash is gone already: addresses
# become links and :names: become emoji there. It has no width and forbids a line break.
JOINER = "\u2060"
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_MARKS = re.compile(r"[\\`*\[\]<$~|]|(?<![^\W_])_|_(?![^\W_])|&(?=[#\w])")
_LINE_START = re.compile(r"^(\s*)([-+#>=]|\d+(?=[.)]))")
# The colon of https://, mailto:, :emoji: and :red[directive], the at of a@b.c; of www.x.y the first point.
_JOINTS = re.compile(r":(?=\S)|@")
_WWW = re.compile(r"www(?=\.)", re.IGNORECASE)


def escape_untrusted(text: object, medium: Medium) -> str:
    """Return somebody else's text such that a page shows it letter by letter, in one line.

    Parameters
    ----------
    medium
        What reads it: our own ``html``, Streamlit's ``markdown`` (labels, error lines, captions), or a
        plotly ``figure``, which takes some HTML in labels and hover text.
    """
    line = re.sub(r"[\t\n\r\u2028\u2029\u0085]+", " ", str(text))
    line = _INVISIBLE.sub("\ufffd", line)
    if medium == "markdown":
        line = _MARKS.sub(r"\\\g<0>", line)
        line = _JOINTS.sub(lambda found: found[0] + JOINER, _WWW.sub(r"\g<0>" + JOINER, line))
        return _LINE_START.sub(_not_a_list, line)
    if medium == "figure":
        # A template's %{...} is filled in once: what is filled in is not looked at again.
        return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return html.escape(line, quote=True)


def _not_a_list(found: re.Match[str]) -> str:
    start = found[2]
    return f"{found[1]}{start}{JOINER}" if start.isdigit() else f"{found[1]}\\{start}"
