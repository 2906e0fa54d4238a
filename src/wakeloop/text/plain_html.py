"""Plain HTML for notebooks: escaped, readable without style."""

from collections.abc import Iterable, Sequence
from html import escape

from wakeloop.text.characters import escape_invisible


def escape_html(value: object) -> str:
    """Return a value as text for HTML and SVG, with invisible characters spelled out.

    >>> escape_html("a < b")
    'a &lt; b'
    """
    return escape(escape_invisible(str(value)))


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of strings and numbers that stays readable if a page drops the style."""
    lines = ["<table>", f"<thead>{_html_row(head, 'th')}</thead>", "<tbody>"]
    lines += [_html_row(row, "td") for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>"])


def _html_row(values: Iterable[object], tag: str) -> str:
    return f"<tr>{''.join(_html_cell(value, tag) for value in values)}</tr>"


def _html_cell(value: object, tag: str) -> str:
    side = "left" if isinstance(value, str) else "right"
    return f'<{tag} style="text-align:{side}">{escape_html(value)}</{tag}>'
