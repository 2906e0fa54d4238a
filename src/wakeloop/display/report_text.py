"""Texts of a thread as HTML: without secrets, without links."""

from collections.abc import Callable

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from wakeloop.display.terminal_text import strip_controls
from wakeloop.text.secrets import redact_text

MAX_TEXT = 20_000  # characters of one text on a page
MIN_LIMIT = 1_000  # of one where there are very many
MAX_TOTAL = 6_000_000  # of all texts together, about
MARGIN = 2_000  # of what is behind them, read so that no secret is cut in two

Hide = Callable[[str], str]

# Raw HTML stays text; what would lead away or load something is not made of a stranger's words.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.disable(["link", "image", "autolink", "html_block", "html_inline", "reference", "entity"])


def limit_per_text(texts: int) -> int:
    """How long each of so many texts may be, so that a browser opens their page at once."""
    return max(MIN_LIMIT, min(MAX_TEXT, MAX_TOTAL // max(texts, 1)))


def clean_text(text: str, hide: Hide, most: int = MAX_TEXT) -> str:
    """A text as a page shows it: cleaned, without secrets, cut with a count where it is very long."""
    kept = redact_text(hide(strip_controls(text[: most + MARGIN])))
    if len(text) <= most:
        return kept
    return f"{kept[:most]}\n… and {len(text) - most:,} more characters"


def markdown_to_html(text: str) -> Markup:
    """Markdown as HTML that loads nothing and leads nowhere."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 - it escapes what it is given


def text_to_html(text: str) -> Markup:
    """A text as it is."""
    return Markup("<pre>{}</pre>").format(text) if text else escape("")
