"""Lines no wider than the terminal, broken between words."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TextIO
from unicodedata import category, east_asian_width

from wakeloop.display.clean import clean

HANG = 4  # columns that a further row is set off
LEAST = 12  # columns of a text in a table: where there are fewer, it has a row of its own
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


def tell(text: str, out: TextIO, *, whole: bool = False, end: str = "\n") -> None:
    """Write a text without control codes; what the output's encoding lacks is replaced.

    On a terminal its lines are broken between words, but of a `whole` one, which is for a program.
    """
    text, width = clean(text), None if whole else room(out)
    if width is not None:
        text = "\n".join(within(text, width))
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding) + end)
    out.flush()


def room(out: TextIO) -> int | None:
    """The columns of a terminal; None for any other output, and for one that does not tell."""
    if not out.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(out.fileno()).columns or None
    return None


def cells(text: str) -> int:
    """The columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if category(one) in ("Mn", "Me", "Cf") else 2 if east_asian_width(one) in "WF" else 1
        for one in text
    )


def within(text: str, width: int, hang: int = HANG) -> Iterator[str]:
    """A text's rows; each further one of a line is set off. A word that is longer than a row stays whole.

    A command to copy has rows of its own, which a shell takes for one line.
    """
    for line in text.expandtabs().split("\n"):
        if cells(line) <= width:
            yield line
        elif found := COMMAND.match(line):
            if found[0]:
                yield from within(found[0].rstrip(), width, hang)
            yield from _broken(ARGUMENT.findall(line[found.end() :].rstrip()), 0, width, hang, joint=" \\")
        else:
            lead = min(len(line) - len(line.lstrip(" ")), width // 2)
            yield from _broken(WORD.findall(line.rstrip()), lead, width, hang)


def _broken(words: Iterable[str], lead: int, width: int, hang: int, joint: str = "") -> Iterator[str]:
    row = ""
    for word in words:
        if row and cells(row + word) + len(joint) <= width:
            row += word
            continue
        bare = word.lstrip()
        if row:
            yield row + joint
        deeper = min(lead + hang, width // 2) if row else lead
        row = " " * max(min(deeper, width - cells(bare) - len(joint)), 0) + bare
    yield row


# -- tables ----------------------------------------------------------------------------------------------


def columns(
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    texts: Collection[int] = (),
    spare: Sequence[int] = (),
) -> Iterator[str]:
    """Rows of cells as lines, each column as wide as its longest cell.

    Where `width` is less, the columns `spare` are left out, in this order, for as long as that is needed; the
    columns `texts` are cut, and what has no room then goes to a further line.
    """
    wide = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    kept = [*range(len(wide))]
    for place in spare:
        if width is None or sum(_needs(wide, kept, texts), -len(GAP)) <= width:
            break
        kept.remove(place)
    lines = [kept] if width is None else _lines(wide, kept, width, texts)
    shown = [_widths(line, wide, width, texts, first=line is lines[0]) for line in lines]
    for row in rows:
        for line in shown:
            lead = "" if line is shown[0] else GAP
            yield (lead + GAP.join(fitted(row[place], most) for place, most in line.items())).rstrip()


def _needs(wide: Sequence[int], kept: Iterable[int], texts: Collection[int]) -> list[int]:
    """What each column takes at least, with the gap before it."""
    return [len(GAP) + (min(wide[place], LEAST) if place in texts else wide[place]) for place in kept]


def _lines(wide: Sequence[int], kept: Sequence[int], width: int, texts: Collection[int]) -> list[list[int]]:
    """Which columns share a line; texts at the end have one for themselves where not all can."""
    needs = _needs(wide, kept, texts)
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


def _widths(
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


def fitted(text: str, wide: int) -> str:
    """A text in as many columns: filled up, or without its end."""
    text = cut(text, wide)
    return text + " " * (wide - cells(text))


def cut(text: str, wide: int) -> str:
    """A text in as many columns at most: cut between words, or in one that takes more than half of them."""
    if cells(text) <= wide:
        return text
    last = ""
    while cells(text) >= wide:
        text, last = text[:-1], text[-1]
    head = text if last == " " else text.rpartition(" ")[0]
    return (head if cells(head) * 2 >= wide - 1 else text).rstrip() + "…"
