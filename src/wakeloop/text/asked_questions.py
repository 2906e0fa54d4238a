"""Tells whether a reply ends by asking its reader something."""

import re
from collections.abc import Iterator
from typing import Literal

Kind = Literal["text", "list", "aside"]

# A block of code; without an end it reaches to the end of the text.
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_TABLE = re.compile(  # also without outer bars: the head, the rule below it, the rows
    r"^(?:.+\n)?[ \t]*(?:\|[ \t]*)?:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)+(?:\|[ \t]*)?$(?:\n.*\|.*$)*",
    re.MULTILINE,
)
_ITEM = re.compile(r"\s*(?:[-*+•–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+\S")
_ASIDE = re.compile(r"\s*(?:[|>]|(?:[-*_]\s*){3,}$)")  # a table or code, a quote, a line across the page
_INLINE_CODE = re.compile(r"(?<!`)(`++).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[[^\[\]\n]*\]\([^()\s]*(?:\s+\"[^\"\n]*\")?\)|<https?://[^<>\s]*>")
_URL = re.compile(r"\b(?:https?://|www\.)\S*[^\s?!.,;:)\]\"'*_]")
_SIGNS = "?\uff1f\u061f"  # also the full-width and the Arabic one
_CLOSERS = ")\\]\"'\u201d\u2019\u00bb"
_BARE_SIGN = re.compile(
    rf"(?<=[(\[\"'\u201c\u2018\u00ab])[{_SIGNS}](?=[{_CLOSERS}])"
)  # the sign itself is spoken of
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
# After it: more such signs, quotes, brackets and emphasis, then a blank or the end. The signs of scripts that
# put no blank between sentences need none.
_QUESTION = re.compile(rf"[{_SIGNS[1:]}]|(?<![?!])(?!(?<=\s)\?\?)!*\?[?!]*+[{_CLOSERS}*_~]*(?=\s|$)")


def asks_question(text: str) -> bool:
    r"""Tell whether a sentence of the last paragraph, or of a list at the end, is a question.

    If the text ends with a list, a table, a quote or code, the paragraph before that counts, too. Code,
    quotes, links and thoughts are not looked at.

    >>> asks_question("I found 14 files. Shall I delete them?")
    True
    >>> asks_question("Why was it slow? I looked.\n\nAn index was missing.")
    False
    """
    text = _THOUGHTS.sub("", text).expandtabs(4)
    for pattern in (_FENCED, _TABLE):
        text = pattern.sub("|", text)
    for kind, block in reversed(list(_split_blocks(text.splitlines()))):
        if kind != "aside" and _has_question(block):
            return True
        if kind == "text":
            return False
    return False


def _has_question(text: str) -> bool:
    for pattern in (_INLINE_CODE, _LINK, _URL, _BARE_SIGN):
        text = pattern.sub("_", text)
    return _QUESTION.search(text) is not None


def _split_blocks(lines: list[str]) -> Iterator[tuple[Kind, str]]:
    """Yield kind and text of each block of a message; an aside is code, a table, a quote or a line."""
    block: list[str] = []
    kind: Kind | None = None
    in_list = False
    for line in [*lines, ""]:
        found: Kind | None = None  # a blank line ends a paragraph; after one in a list, the list may continue
        if _ASIDE.match(line):
            found = "aside"
        elif _ITEM.match(line) or (in_list and line.strip() and line.startswith(" ")):
            found = "list"
        elif line.strip():
            found = "aside" if kind is None and line.startswith("    ") else "text"
        if kind is not None and found != kind:
            yield kind, "\n".join(block)
            block = []
        kind = found
        if found is not None:
            in_list = found == "list"
            block.append(line)
