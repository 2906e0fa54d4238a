"""Text that may go to a terminal: no control codes in it."""

import re

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erasing
    r"|[\x1b\x9d][\]PX^_]?[^\x07\x1b\x9c\n]{0,4096}?(?:\x07|\x1b\\|\x9c)"  # OSC and its kin, with their text
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
CODES = re.compile(  # C0 but tab and newline, DEL, C1, marks and overrides of direction, halves of pairs
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")


def clean(text: str) -> str:
    """The text without anything that a terminal would obey; every kind of line end becomes a newline."""
    return CODES.sub("", ENDS.sub("\n", ESCAPES.sub("", text)))


def one_line(text: str, limit: int = 200) -> str:
    """The text on one line, cut where it is longer than `limit` characters."""
    joined = " ".join(clean(text).split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def escaped(text: str) -> str:
    """The text with its control codes spelled out: what a person approves must show all of itself."""
    return CODES.sub(lambda found: ascii(found.group())[1:-1], text)
