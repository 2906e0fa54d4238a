"""A model's Markdown as a terminal shows it."""

from collections.abc import Iterator

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markdown import Heading, Markdown
from rich.text import Text

MAX_CHARACTERS = 100_000  # characters that are laid out; more is shown as it came


class LeftHeading(Heading):
    """A heading at the left, as every line of a text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Draw it."""
        self.text.justify = "left"
        yield self.text


class TerminalMarkdown(Markdown):
    """Markdown with such headings."""

    elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - as the class that it is of


def render_markdown(text: str) -> RenderableType:
    """The text laid out; all that it says is seen: tags stay text, addresses stand behind their links.

    An entity stays as it is written: one of a control code would be obeyed.
    """
    if len(text) > MAX_CHARACTERS:
        return Text(text)
    page = TerminalMarkdown("", code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("entity")
    page.markup, page.parsed = text, parser.parse(text)
    for token in page.parsed:
        for part in token.children or ():
            if part.type == "softbreak":
                part.type = "hardbreak"  # a model's lines are meant
    return page
