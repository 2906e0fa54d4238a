"""Plain HTML for notebooks: escaped, readable without style."""

from collections.abc import Iterable, Sequence
from html import escape

from wakeloop.text.characters import escape_invisible


def escape_html(value: object) -> str:
    """A value as text for HTML and SVG: escaped, with all that cannot be seen spelled out."""
    return escape(escape_invisible(str(value)))


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts and numbers; a page that drops the style shows all of it."""
    cells = ((*(_html_cell(value) for value in row), "</tr>\n") for row in rows)
    named = "".join(_html_cell(name, "th") for name in head)
    body = "".join("<tr>" + "".join(row) for row in cells)
    return f"<table>\n<thead><tr>{named}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def _html_cell(value: object, tag: str = "td") -> str:
    side = "left" if isinstance(value, str) else "right"
    return f'<{tag} style="text-align:{side}">{escape_html(value)}</{tag}>'
