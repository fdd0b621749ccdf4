"""A page that steps through a compile: a text a step, with what the step changed marked in it.

Steps are radio buttons, so the page needs no script and arrow keys go from step to step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from tilefarm.printable import page_text as escape

from driver.report.html import html_page

_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;color:#111827;background:#fff;margin:0;padding:20px 24px}
h1{font-size:21px;margin:0}p{margin:2px 0 12px;color:#6b7280}
input{position:absolute;opacity:0}
.frame{display:grid;grid-template-columns:310px minmax(0,1fr);gap:20px;align-items:start}
nav{position:sticky;top:12px;max-height:94vh;overflow-y:auto}
nav label{display:flex;gap:6px;padding:2px 8px;border-radius:5px;cursor:pointer;white-space:nowrap}
nav label span{flex:1;overflow:hidden;text-overflow:ellipsis}
nav label:hover{background:#f3f4f6}nav .same{color:#9ca3af}nav h2{font-size:13px;color:#6b7280;
margin:12px 8px 2px;font-weight:600}
nav small{color:#6b7280;font-variant-numeric:tabular-nums}nav .more{color:#047857}
nav .less{color:#b91c1c}
section{display:none}section h2{font-size:17px;margin:0 0 2px}
pre{font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace;background:#f9fafb;border-radius:8px;
padding:10px 0;overflow-x:auto;margin:0}
pre span{display:block;padding:0 14px;min-height:1.5em}
pre .new{background:#dcfce7}pre .old{background:#fee2e2;color:#991b1b}
svg{width:100%;height:auto;display:block;margin:6px 0 12px}
svg text{font:12px system-ui,sans-serif;fill:#374151}svg .name{fill:#6b7280}
svg .grid{stroke:#e5e7eb;stroke-width:1}svg .axis{stroke:#9ca3af;stroke-width:1}
table{border-collapse:collapse;font-size:13px;margin:0 0 12px}
th{text-align:left;font-weight:600;color:#6b7280;padding:3px 14px 3px 0}
td{padding:3px 14px 3px 0;font-variant-numeric:tabular-nums}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStep:
    """One step of the page.

    Attributes:
        group: steps of one group stand together under its name.
        follows: whether the text is the one before, changed; others begin anew.
        above: markup that stands over the text, already escaped.
    """

    group: str
    name: str
    caption: str
    text: str
    follows: bool = True
    above: str = ""


def steps_page(title: str, subtitle: str, steps: Sequence[PageStep]) -> str:
    """The whole page; the first step is shown first. Every name and text in it is escaped."""
    marked = [_marked(step, steps[at - 1].text) for at, step in enumerate(steps)]
    buttons = "".join(
        f"<input type=radio name=step id=s{at}{' checked' * (at == 0)}>" for at in range(len(steps))
    )
    chosen = "".join(
        f"#s{at}:checked~.frame #p{at}{{display:block}}"
        f"#s{at}:checked~.frame label[for=s{at}]{{background:#dbeafe;color:#1e3a8a}}"
        for at in range(len(steps))
    )
    sections = "".join(
        f"<section id=p{at}><h2>{escape(step.name)}</h2><p>{escape(step.caption)}</p>"
        f"{step.above}<pre>{_lines(lines)}</pre></section>"
        for at, (step, lines) in enumerate(zip(steps, marked, strict=True))
    )
    return html_page(
        escape(title),
        f"<h1>{escape(title)}</h1><p>{escape(subtitle)} · arrow keys go from step to step</p>"
        f"{buttons}<div class=frame><nav>{''.join(_links(steps, marked))}</nav>"
        f"<main>{sections}</main></div>",
        style=_STYLE,
        more_style=chosen,
    )


_Line = tuple[str, str]
"""What became of a line ("new", "old" or "" for neither), and its text."""


def _marked(step: PageStep, before: str) -> list[_Line]:
    """The lines of a step's text; between them, marked, those that the step took away."""
    new = step.text.splitlines()
    if not step.follows:
        return [("", line) for line in new]
    old = before.splitlines()
    lines: list[_Line] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            lines += [("", line) for line in new[k:m]]
        else:
            lines += [("old", line) for line in old[i:j]] + [("new", line) for line in new[k:m]]
    return lines


def _lines(lines: Sequence[_Line]) -> str:
    return "".join(
        f"<span{f' class={mark}' if mark else ''}>{escape(text)}</span>" for mark, text in lines
    )


def _links(steps: Sequence[PageStep], marked: Sequence[Sequence[_Line]]) -> Iterator[str]:
    group = ""
    for at, (step, lines) in enumerate(zip(steps, marked, strict=True)):
        if step.group != group:
            group = step.group
            yield f"<h2>{escape(group)}</h2>"
        more = sum(mark == "new" for mark, _ in lines)
        less = sum(mark == "old" for mark, _ in lines)
        changes = f" <small class=more>+{more}</small>" * (more > 0)
        changes += f" <small class=less>−{less}</small>" * (less > 0)
        same = " class=same" if step.follows and not changes else ""
        tip, name = escape(step.caption), escape(step.name)
        yield f'<label for=s{at}{same} title="{tip}"><span>{name}</span>{changes}</label>'
