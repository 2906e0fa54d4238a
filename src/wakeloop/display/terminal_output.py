"""Terminal output: cleaning, wrapping, writing, tables."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TextIO
from unicodedata import category, east_asian_width

from wakeloop.text.characters import INVISIBLE

ESCAPES = re.compile(  # alternatives do not overlap: linear time
    r"\x1b\[[0-?]*+[ -/]*+[@-~]"  # CSI: colours, cursor, erasing
    r"|[\x1b\x9d][\]PX^_]?[^\x07\x1b\x9c\x9d\n]{0,4096}+(?:\x07|\x1b\\|\x9c)"  # OSC and similar, with text
    r"|\x9b[0-?]*+[ -/]*+[@-~]"
)
CODES = re.compile(f"[{INVISIBLE}]")
LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")


def strip_controls(text: str) -> str:
    """Remove everything that a terminal would obey; every kind of line end becomes a newline."""
    return CODES.sub("", LINE_ENDS.sub("\n", ESCAPES.sub("", text)))


def clean_line(text: str, limit: int = 200) -> str:
    """Put `text` on one line, and cut it to `limit` characters."""
    joined = " ".join(strip_controls(text).split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def indent_continuation(text: str) -> str:
    """Indent all lines but the first, further than any line that a view writes itself."""
    return strip_controls(text).replace("\n", "\n    ")


INDENT = 4  # columns, of the rows of a line after its first
MIN_TEXT_COLUMNS = 12  # of a cell that may be cut; before it has fewer, other columns are left out
GAP = "  "  # between columns
COMMAND = re.compile(  # what may precede a command to copy
    r"""(?:|\s*(?:\S+: )?(?:… and \d+ more|(?!Usage)[A-Z][a-z ]+): (?:(?:[^'"]|(?<=\w)')*, then )?)"""
    r"(?=wakeloop [a-z])"
)
WORD = re.compile(  # quoted paths, commands, and numbers with a unit are not broken
    r"""\s*(?:(?<!\S)(?:'(?=~?/)[^'\n]*+'|"(?=~?/)[^"\n]*+")\S*"""
    r"|(?<!\S)wakeloop (?=[a-z])\S+|\S+(?:(?<=\d) (?:s|ms|min|h|%)(?!\w)\S*)?)"
)
ARGUMENT = re.compile(r"""\s*(?:'[^']*'|"[^"]*"|\S)+""")  # quoted strings are not broken


def write_text(text: str, out: TextIO, *, whole: bool = False, end: str = "\n") -> None:
    """Write text without control codes; characters that the output's encoding lacks are replaced.

    On a terminal, lines are wrapped between words, unless the text is for a program (`whole`).
    """
    text, width = strip_controls(text), None if whole else find_width(out)
    if width is not None:
        text = "\n".join(wrap_text(text, width))
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding) + end)
    out.flush()


def find_width(out: TextIO) -> int | None:
    """Return the columns of a terminal; None for other outputs and if the width is unknown."""
    if not out.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(out.fileno()).columns or None
    return None


def count_columns(text: str) -> int:
    """Count the columns that `text` takes; wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    columns = 0
    for character in text:
        if category(character) not in ("Mn", "Me", "Cf"):
            columns += 2 if east_asian_width(character) in "WF" else 1
    return columns


def wrap_text(text: str, width: int, hang: int = INDENT) -> Iterator[str]:
    """Wrap `text`, and indent the rows of a line after its first. A word longer than a row stays whole.

    A command to copy gets rows of its own, joined by backslashes, so that a shell reads them as one line.
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
    """Yield rows of words: the first indented by `lead`, the others by `hang` more, ending in `joint`."""
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
    cuttable: Collection[int] = (),
    spare: Sequence[int] = (),
) -> Iterator[str]:
    """Format rows of cells as lines, each column as wide as its longest cell.

    If that exceeds `width`, columns in `spare` are left out, in this order and as few as possible; then
    columns in `cuttable` are cut.
    """
    wide = {place: max(map(count_columns, column)) for place, column in enumerate(zip(*rows, strict=True))}
    if width is not None:
        for place in spare:
            if sum(_least_width(wide, one, cuttable) for one in wide) - len(GAP) <= width:
                break
            del wide[place]
        _cut_columns(wide, width, [place for place in cuttable if place in wide])
    for row in rows:
        yield GAP.join(pad_text(row[place], most) for place, most in wide.items()).rstrip()


def _least_width(wide: Mapping[int, int], place: int, cuttable: Collection[int]) -> int:
    """Return the least width of a column, with its gap."""
    return len(GAP) + (min(wide[place], MIN_TEXT_COLUMNS) if place in cuttable else wide[place])


def _cut_columns(wide: dict[int, int], width: int, shared: list[int]) -> None:
    """Let the columns in `shared` have what the others leave."""
    left = width - len(GAP) * (len(wide) - 1) - sum(wide[place] for place in wide if place not in shared)
    shared.sort(key=wide.__getitem__)  # what a narrow column does not need is left for the wider ones
    for number, place in enumerate(shared):
        wide[place] = min(wide[place], max(left // (len(shared) - number), 1))
        left -= wide[place]


def pad_text(text: str, wide: int) -> str:
    """Pad or cut `text` to `wide` columns."""
    text = cut_text(text, wide)
    return text + " " * (wide - count_columns(text))


def cut_text(text: str, wide: int) -> str:
    """Cut `text` to `wide` columns, between words unless that would cut more than half of it."""
    if count_columns(text) <= wide:
        return text
    last = ""
    while count_columns(text) >= wide:
        text, last = text[:-1], text[-1]
    head = text
    if last != " ":
        head = text.rpartition(" ")[0]
    if count_columns(head) * 2 >= wide - 1:
        text = head
    return text.rstrip() + "…"
