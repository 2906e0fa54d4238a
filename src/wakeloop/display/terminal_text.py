"""Terminal text: no control codes in it."""

import re

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
