"""Terminal Markdown: a model's Markdown as rows of text."""

from collections.abc import Iterator

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markdown import Heading, Markdown
from rich.text import Text

MAX_CHARACTERS = 100_000  # longer messages are shown as they are


class LeftHeading(Heading):
    """A left-aligned heading; rich centres them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Render the heading."""
        self.text.justify = "left"
        yield self.text


class TerminalMarkdown(Markdown):
    """Markdown with left-aligned headings."""

    elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - as the class that it is of


def render_markdown(text: str) -> RenderableType:
    """Render Markdown with nothing hidden: HTML tags stay text, and links show their addresses.

    Entities stay as written, since one for a control code would be obeyed.
    """
    if len(text) > MAX_CHARACTERS:
        return Text(text)
    page = TerminalMarkdown("", code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("entity")
    page.markup, page.parsed = text, parser.parse(text)
    for token in page.parsed:
        for part in token.children or ():
            if part.type == "softbreak":
                part.type = "hardbreak"  # models mean their line breaks
    return page
