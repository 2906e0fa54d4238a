"""Report text: HTML without secrets or links."""

from collections.abc import Callable

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from wakeloop.display.terminal_text import strip_controls
from wakeloop.text.secrets import redact_text

MAX_TEXT = 20_000  # characters of one message
MIN_LIMIT = 1_000  # the limit for one message if there are very many
MAX_TOTAL = 6_000_000  # of all messages together, roughly
MARGIN = 2_000  # redacted beyond the limit, so that the cut does not split a secret

Hide = Callable[[str], str]

# Messages are not trusted: raw HTML stays text, and nothing becomes a link or loads anything.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.disable(["link", "image", "autolink", "html_block", "html_inline", "reference", "entity"])


def limit_per_text(count: int) -> int:
    """Return how long each of `count` messages may be so that a browser opens the page quickly."""
    return max(MIN_LIMIT, min(MAX_TEXT, MAX_TOTAL // max(count, 1)))


def clean_text(text: str, hide: Hide, most: int = MAX_TEXT) -> str:
    """Remove control codes and secrets, and cut what is too long, with a count of the rest."""
    kept = redact_text(hide(strip_controls(text[: most + MARGIN])))
    if len(text) <= most:
        return kept
    return f"{kept[:most]}\n… and {len(text) - most:,} more characters"


def markdown_to_html(text: str) -> Markup:
    """Render Markdown as HTML without links or anything that loads."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 - it escapes what it is given


def text_to_html(text: str) -> Markup:
    """Render text as it is."""
    return Markup("<pre>{}</pre>").format(text) if text else escape("")
