"""HTML of results for notebooks: tables, parts that open, lines of code, bars.

Text is escaped unless it is `Markup`. Colours are translucent, or of middle brightness, for light
and dark pages; nothing is loaded. `fragment` is what a ``_repr_html_`` returns.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence

_STYLE = (
    ".gptrs{font-size:13px;line-height:1.4}"
    ".gptrs table{border-collapse:collapse;margin:4px 0;border:0;font-size:inherit}"
    ".gptrs th,.gptrs td{padding:2px 14px 2px 0;text-align:left;vertical-align:top;border:0;"
    "border-bottom:1px solid #8884;background:none;color:inherit;white-space:nowrap}"
    ".gptrs .n{text-align:right;font-variant-numeric:tabular-nums}"
    ".gptrs pre{margin:4px 0;padding:0;line-height:1.35;overflow-x:auto;white-space:pre;"
    "background:none;color:inherit;font-size:12px}"
    ".gptrs summary{cursor:pointer;display:list-item}"
    ".gptrs details details{margin-left:1.2em}"
    ".gptrs .bar{background:#8883;display:inline-block;width:160px}"
    ".gptrs .bar div{background:#4c8dd6;height:9px}"
    ".gptrs .dim{opacity:.65}.gptrs .plus{background:#2da44e33}.gptrs .minus{background:#cf222e33}"
    ".gptrs .place{background:#0969da22}"
    ".gptrs .word{color:#a463c8}.gptrs .op{color:#3584d4}.gptrs .text{color:#3d9950}"
    ".gptrs .number{color:#bd7d1e}"
)


class Markup(str):
    """HTML whose text is escaped already."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """``text`` as HTML; `Markup` is left as it is."""
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def joined(parts: Iterable[str]) -> Markup:
    """The parts one after the other."""
    return Markup("".join(map(escaped, parts)))


def fragment(*parts: str) -> Markup:
    """The output of a cell, with its style."""
    return Markup(f'<div class="gptrs"><style>{_STYLE}</style>{joined(parts)}</div>')


def styled(kind: str, text: str, title: str = "") -> Markup:
    """``text`` in the style of the class ``kind``, with a tooltip."""
    tip = f' title="{html.escape(title)}"' if title else ""
    return Markup(f'<span class="{kind}"{tip}>{escaped(text)}</span>')


def block(text: str, kind: str = "", title: str = "") -> Markup:
    """``text`` as a part of its own."""
    attributes = f' class="{kind}"' if kind else ""
    attributes += f' title="{html.escape(title)}"' if title else ""
    return Markup(f"<div{attributes}>{escaped(text)}</div>")


def code(text: str) -> Markup:
    """``text`` in letters of one width, as its lines are."""
    return Markup(f"<pre>{escaped(text)}</pre>")


def opening(title: str, *inner: str, is_open: bool = False) -> Markup:
    """A part that opens at a click on its title."""
    state = " open" if is_open else ""
    return Markup(f"<details{state}><summary>{escaped(title)}</summary>{joined(inner)}</details>")


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = ()
) -> Markup:
    """A table; the columns ``numbers`` are aligned to the right."""
    classes = ['class="n"' if column in numbers else "" for column in range(len(head))]

    def row(cells: Sequence[str], tag: str) -> str:
        made = (
            f"<{tag}{f' {kind}' if kind else ''}>{escaped(cell)}</{tag}>"
            for cell, kind in zip(cells, classes, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return Markup(f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>")


def facts(rows: Iterable[tuple[str, str]]) -> Markup:
    """A table of names and values, without a head."""
    lines = (
        f'<tr><td class="dim">{escaped(name)}</td><td>{escaped(value)}</td></tr>'
        for name, value in rows
    )
    return Markup(f"<table><tbody>{''.join(lines)}</tbody></table>")


def bar(share: float) -> Markup:
    """A bar of which ``share``, from 0 to 1, is full."""
    percent = 100 * min(max(share, 0.0), 1.0)
    return Markup(f'<div class="bar"><div style="width:{percent:.1f}%"></div></div>')


def histogram(counts: Sequence[int], title: str) -> Markup:
    """Columns as high as the ``counts``, as a small picture."""
    highest, width, height = max(counts, default=0) or 1, 6, 48
    columns = "".join(
        f'<rect x="{width * place}" y="{height - height * count / highest:.1f}"'
        f' width="{width - 1}" height="{height * count / highest:.1f}"/>'
        for place, count in enumerate(counts)
    )
    return Markup(
        f'<svg role="img" width="{width * len(counts)}" height="{height + 1}" fill="#4c8dd6">'
        f"<title>{html.escape(title)}</title>{columns}"
        f'<rect y="{height}" width="100%" height="1" fill="#8888"/></svg>'
    )
