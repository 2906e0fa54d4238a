"""Tells whether a reply ends by asking its reader something."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["text", "list", "aside"]

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+•–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+\S")
_TABLE_RULE = re.compile(r"\s*(?:\|\s*)?:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+(?:\|\s*)?$")
_ASIDE = re.compile(r"\s*(?:[|>]|(?:[-*_]\s*){3,}$)")  # a row of a table, a quote, a line across the page
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


@dataclass(frozen=True)
class Block:
    """Lines of one kind: a paragraph, a list, or an aside (code, table, quote)."""

    kind: Kind
    text: str


def asks_question(text: str) -> bool:
    r"""Tell whether a sentence of the last paragraph, or of a list at the end, is a question.

    If the text ends with a list, a table, a quote or code, the paragraph before that counts, too. Code,
    quotes, links and thoughts are not looked at.

    >>> asks_question("I found 14 files. Shall I delete them?")
    True
    >>> asks_question("Why was it slow? I looked.\n\nAn index was missing.")
    False
    """
    for block in reversed(list(_split_blocks(_THOUGHTS.sub("", text)))):
        if block.kind != "aside" and _has_question(block.text):
            return True
        if block.kind == "text":
            return False
    return False


def _has_question(text: str) -> bool:
    for pattern in (_INLINE_CODE, _LINK, _URL, _BARE_SIGN):
        text = pattern.sub("_", text)
    return _QUESTION.search(text) is not None


def _split_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a message. A fence that is never closed reaches to the end."""
    lines: list[str] = []
    kind: Kind | None = None
    for found, line in _classify_lines(text.expandtabs(4).splitlines()):
        if found != kind and lines:
            yield Block(kind or "aside", "\n".join(lines))
            lines = []
        kind = found
        if found is not None:
            lines.append(line)
    if lines:
        yield Block(kind or "aside", "\n".join(lines))


def _classify_lines(lines: list[str]) -> Iterator[tuple[Kind | None, str]]:
    """Yield each line with the kind of its block; None for a blank line, which ends a paragraph."""
    tables, following = _find_tables(lines), _find_following_lines(lines)
    fence, kind, in_list = "", cast("Kind | None", None), False
    for place, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0]):
                fence = ""
            yield "aside", line
            continue
        if mark:
            fence = mark[1]
        if not line.strip():  # between two items, or an item and its next paragraph, the list continues
            after = following[place]
            kind = "list" if in_list and (_ITEM.match(after) or after.startswith(" ")) else None
        elif mark or place in tables or _ASIDE.match(line):
            kind = "aside"
        elif _ITEM.match(line) or (in_list and kind == "list" and line.startswith(" ")):
            kind = "list"
        else:
            kind = "aside" if kind is None and line.startswith("    ") else "text"
        in_list = kind == "list"
        yield kind, line


def _find_following_lines(lines: list[str]) -> list[str]:
    """Return for each line the next one that is not blank, or ""."""
    following, after = [""] * len(lines), ""
    for place in reversed(range(len(lines))):
        following[place] = after
        if lines[place].strip():
            after = lines[place]
    return following


def _find_tables(lines: list[str]) -> set[int]:
    """Return the places of the lines of tables without outer bars: the head, the rule below it, the rows."""
    found: set[int] = set()
    inside = False
    for place, line in enumerate(lines):
        if _TABLE_RULE.match(line):
            found |= {place - 1, place}
            inside = True
        elif inside and "|" in line:
            found.add(place)
        else:
            inside = False
    return found
