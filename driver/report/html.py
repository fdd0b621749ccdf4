"""What every page is made of: one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from typing import Final

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#111827;background:#fff;max-width:1180px;
margin:0 auto;padding:28px 24px 60px}
h1{font-size:26px;margin:0 0 2px}h2{font-size:18px;margin:38px 0 4px}
p{margin:4px 0 10px}.sub{color:#6b7280}.bad{color:#b91c1c}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0 8px}
.tile{border:1px solid #e5e7eb;border-radius:8px;padding:10px 16px;min-width:128px}
.tile b{display:block;font-size:22px;font-weight:600}.tile span{color:#6b7280;font-size:13px}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px}
th{text-align:left;font-weight:600;color:#6b7280;border-bottom:1px solid #d1d5db;
padding:5px 10px 5px 0}
td{border-bottom:1px solid #f3f4f6;padding:5px 10px 5px 0;white-space:nowrap}
small{display:block;color:#6b7280;font-size:12px}
td.n{font-variant-numeric:tabular-nums}
.bar{display:inline-block;width:70px;height:9px;background:#e5e7eb;border-radius:3px;overflow:hidden}
.bar i{display:block;height:100%;background:#2563eb}
.accelerator{color:#1d4ed8}.cpu{color:#92400e}
svg{width:100%;height:auto;display:block;margin-top:6px}
svg text{font:12px system-ui,sans-serif;fill:#374151}svg .name{fill:#6b7280}
svg .grid{stroke:#e5e7eb;stroke-width:1}svg .axis{stroke:#9ca3af;stroke-width:1}
svg .curve{fill:none;stroke-width:2}svg .tensor{stroke:#fff;stroke-width:1;fill-opacity:.85}
svg .on{fill:#fff}svg .bound{stroke:#111827;stroke-dasharray:5 4}
"""
"""Of every page with charts and tables."""


def html_page(title: str, body: str, *, style: str = _STYLE, more_style: str = "") -> str:
    """The whole page around a body; `title` is escaped already."""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{title} · tilefarm</title><style>{style}{more_style}</style></head>"
        f"<body>{body}</body></html>\n"
    )
