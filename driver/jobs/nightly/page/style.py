"""What every page of a zoo has: its frame, colours for light and dark, and the one script.

Colours are those of Okabe and Ito, which people who see few colours tell apart
(https://jfly.uni-koeln.de/color/); a sign and a word say the same. Without the script all tables
are there; it sorts them, filters them, and keeps both in the address.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Final

from tilefarm.printable import page_text as escape

_STYLE: Final = Path(__file__).with_name("zoo.css").read_text("utf-8")

_SCRIPT: Final = Path(__file__).with_name("zoo.js").read_text("utf-8")
_SCRIPT_HASH: Final = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()


def zoo_page(title: str, body: str, *, root: str = "", path: str = "") -> str:
    """A whole page; it loads nothing from anywhere.

    Args:
        title: any text.
        body: markup, escaped already.
        root: from the page to the folder of `index.html`: "" or "../".
        path: markup that leads back, above the page.
    """
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_SCRIPT_HASH}'"
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; img-src data:">'
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · tilefarm</title>"
        f'<link rel=alternate type="application/atom+xml" href="{root}feed.xml">'
        f'<link rel=icon href="data:,"><style>{_STYLE}</style></head>'
        f"<body>{f'<nav>{path}</nav>' if path else ''}<main>{body}</main>"
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def tools(verdicts: tuple[tuple[str, str], ...]) -> str:
    """The fields that filter the page's table, for those who have scripts.

    Args:
        verdicts: (value, words) of those that are there.
    """
    options = "".join(
        f"<option value={value}>{escape(words)}</option>" for value, words in verdicts
    )
    return (
        '<div class=tools><input id=find type=search placeholder="find a model or a target"'
        ' aria-label="find a model or a target">'
        f"<select id=only aria-label=verdict><option value=''>every verdict</option>{options}"
        "</select><span id=told class=sub></span></div>"
    )
