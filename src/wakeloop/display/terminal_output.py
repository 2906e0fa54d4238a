"""Lines no wider than the terminal, broken between words."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TextIO
from unicodedata import category, east_asian_width

from wakeloop.display.terminal_text import strip_controls

INDENT = 4  # columns that a further row is set off
MIN_TEXT_COLUMNS = 12  # columns of a text in a table: where there are fewer, it has a row of its own
GAP = "  "  # between columns, and before the further rows of a table's row
COMMAND = re.compile(  # what stands before one to copy
    r"""(?:|\s*(?:\S+: )?(?:… and \d+ more|(?!Usage)[A-Z][a-z ]+): (?:(?:[^'"]|(?<=\w)')*, then )?)"""
    r"(?=wakeloop [a-z])"
)
WORD = re.compile(  # a path in quotes is one, the name of a command, too; a number takes its unit along
    r"""\s*(?:(?<!\S)(?:'(?=~?/)[^'\n]*+'|"(?=~?/)[^"\n]*+")\S*"""
    r"|(?<!\S)wakeloop (?=[a-z])\S+|\S+(?:(?<=\d) (?:s|ms|min|h|%)(?!\w)\S*)?)"
)
ARGUMENT = re.compile(r"""\s*(?:'[^']*'|"[^"]*"|\S)+""")  # a quoted text stays whole


def write_text(text: str, out: TextIO, *, whole: bool = False, end: str = "\n") -> None:
    """Write a text without control codes; what the output's encoding lacks is replaced.

    On a terminal its lines are broken between words, but of a `whole` one, which is for a program.
    """
    text, width = strip_controls(text), None if whole else find_width(out)
    if width is not None:
        text = "\n".join(wrap_text(text, width))
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding) + end)
    out.flush()


def find_width(out: TextIO) -> int | None:
    """The columns of a terminal; None for any other output, and for one that does not tell."""
    if not out.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(out.fileno()).columns or None
    return None


def count_columns(text: str) -> int:
    """The columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if category(one) in ("Mn", "Me", "Cf") else 2 if east_asian_width(one) in "WF" else 1
        for one in text
    )


def wrap_text(text: str, width: int, hang: int = INDENT) -> Iterator[str]:
    """A text's rows; each further one of a line is set off. A word that is longer than a row stays whole.

    A command to copy has rows of its own, which a shell takes for one line.
    """
    for line in text.expandtabs().split("\n"):
        if count_columns(line) <= width:
            yield line
        elif found := COMMAND.match(line):
            if found[0]:
                yield from wrap_text(found[0].rstrip(), width, hang)
            yield from _break_words(
                ARGUMENT.findall(line[found.end() :].rstrip()), 0, width, hang, joint=" \\"
            )
        else:
            lead = min(len(line) - len(line.lstrip(" ")), width // 2)
            yield from _break_words(WORD.findall(line.rstrip()), lead, width, hang)


def _break_words(words: Iterable[str], lead: int, width: int, hang: int, joint: str = "") -> Iterator[str]:
    row = ""
    for word in words:
        if row and count_columns(row + word) + len(joint) <= width:
            row += word
            continue
        bare = word.lstrip()
        if row:
            yield row + joint
        deeper = min(lead + hang, width // 2) if row else lead
        row = " " * max(min(deeper, width - count_columns(bare) - len(joint)), 0) + bare
    yield row


# -- tables ----------------------------------------------------------------------------------------------


def format_columns(
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    texts: Collection[int] = (),
    spare: Sequence[int] = (),
) -> Iterator[str]:
    """Rows of cells as lines, each column as wide as its longest cell.

    Where `width` is less, the columns `spare` are left out, in this order, for as long as that is needed; the
    columns `texts` are cut, and what has no room then goes to a further line.
    """
    wide = [max(map(count_columns, column)) for column in zip(*rows, strict=True)]
    kept = [*range(len(wide))]
    for place in spare:
        if width is None or sum(_needed_widths(wide, kept, texts), -len(GAP)) <= width:
            break
        kept.remove(place)
    lines = [kept] if width is None else _split_columns(wide, kept, width, texts)
    shown = [_share_width(line, wide, width, texts, first=line is lines[0]) for line in lines]
    for row in rows:
        for line in shown:
            lead = "" if line is shown[0] else GAP
            yield (lead + GAP.join(pad_text(row[place], most) for place, most in line.items())).rstrip()


def _needed_widths(wide: Sequence[int], kept: Iterable[int], texts: Collection[int]) -> list[int]:
    """What each column takes at least, with the gap before it."""
    return [
        len(GAP) + (min(wide[place], MIN_TEXT_COLUMNS) if place in texts else wide[place]) for place in kept
    ]


def _split_columns(
    wide: Sequence[int], kept: Sequence[int], width: int, texts: Collection[int]
) -> list[list[int]]:
    """Which columns share a line; texts at the end have one for themselves where not all can."""
    needs = _needed_widths(wide, kept, texts)
    apart = next((p for n, p in enumerate(kept) if all(q in texts for q in kept[n:])), None)
    lines: list[list[int]] = [[]]
    taken = -len(GAP)
    if sum(needs, taken) <= width:
        return [[*kept]]
    for place, need in zip(kept, needs, strict=True):
        if lines[-1] and (taken + need > width or place == apart):
            lines.append([])
            taken = 0
        taken += need
        lines[-1].append(place)
    return lines


def _share_width(
    line: Sequence[int], wide: Sequence[int], width: int | None, texts: Collection[int], *, first: bool
) -> dict[int, int]:
    """How wide each column of a line is: the texts share what the others leave."""
    found = {place: wide[place] for place in line}
    if width is None:
        return found
    cuttable = sorted((place for place in line if place in texts), key=wide.__getitem__)
    left = width - len(GAP) * (len(line) - first)
    left -= sum(wide[place] for place in line if place not in texts)
    for number, place in enumerate(cuttable):
        found[place] = min(wide[place], max(left // (len(cuttable) - number), 1))
        left -= found[place]
    return found


def pad_text(text: str, wide: int) -> str:
    """A text in as many columns: filled up, or without its end."""
    text = cut_text(text, wide)
    return text + " " * (wide - count_columns(text))


def cut_text(text: str, wide: int) -> str:
    """A text in as many columns at most: cut between words, or in one that takes more than half of them."""
    if count_columns(text) <= wide:
        return text
    last = ""
    while count_columns(text) >= wide:
        text, last = text[:-1], text[-1]
    head = text if last == " " else text.rpartition(" ")[0]
    return (head if count_columns(head) * 2 >= wide - 1 else text).rstrip() + "…"
