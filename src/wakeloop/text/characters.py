"""Text that every server and every database takes."""

import json
import re
from shlex import quote
from typing import Any

# Default_Ignorable_Code_Point but the joiners of letters, U+200C and U+200D: DerivedCoreProperties.txt of
# Unicode 16, the same since 14. `unicodedata` tells of Cf alone, and not of fillers and selectors.
_IGNORED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_BLANK = "\u2800\U0001d159"  # letters and signs, to Unicode, whose picture is empty
INVISIBLE = (  # C0 but tab and newline, DEL, C1, ends of lines, halves of pairs, marks between lines
    f"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufff9-\ufffb{_BLANK}{_IGNORED}"
)
"""Characters, as a class of a pattern, that show nothing and may steer what does; joiners of letters stay."""
_CONTROLS = re.compile(f"[{INVISIBLE}]+")
_HIDDEN = re.compile(f"[{_BLANK}{_IGNORED}]")
_NO_NAME = str.maketrans("", "", '[]":.')  # a text without these needs no quotes
_BREAKS_A_NAME = ("[", "]", ": ", ". ", '"')  # what stands around an id in some dialect's line


def fix_surrogates(value: Any) -> Any:
    """Join the halves of character pairs in a text, or in plain JSON; a half alone is replaced.

    A JSON reader passes a lone half on (also where a stream cut the pair), and no UTF-8 can be made of it.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict):
        return {fix_surrogates(key): fix_surrogates(part) for key, part in value.items()}
    return [fix_surrogates(part) for part in value] if isinstance(value, list) else value


def find_lone_surrogate(text: str) -> str | None:
    """Return the half of a character pair in a text, in ASCII: no UTF-8 can be made of such a text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return ascii(error.object[error.start])[1:-1]
    return None


def storable_text(text: Any) -> str:
    """A text as every saver holds it: one that is a channel's value is a text in Postgres, too.

    A NUL is left out there as it is when metadata is stored; half of a character pair is replaced.
    """
    return str(fix_surrogates(str(text))).replace("\0", "")


def is_visible(text: str) -> bool:
    """Tell whether every character of a text shows, as itself or as a blank: a person may approve it."""
    return text.isprintable() and not _HIDDEN.search(text)


def escape_invisible(text: str) -> str:
    """The text with all that cannot be seen spelled out: what a person approves must show all of itself."""
    return "".join(one if is_visible(one) or one == "\n" else ascii(one)[1:-1] for one in text)


def quote_path(path: object) -> str:
    """A path as a shell takes it: one with blanks stands in quotes."""
    text = str(path)
    return quote(text) if any(map(str.isspace, text)) else text


def shorten(text: str, limit: int = 60) -> str:
    """Cut a text for an error sentence or a line."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def to_one_line(text: str) -> str:
    """Keep a text on its line, so that it cannot pass for another one; nothing in it steers a terminal."""
    return " ".join(_CONTROLS.sub("", " ".join(text.split())).split())


def is_blank(text: str) -> bool:
    """Tell whether a text shows nothing: no item and no reason is made of it."""
    return not to_one_line(text)


def indent_lines(text: str) -> str:
    """Keep a text of several lines behind the first: no later line stands where one of the graph's would."""
    first, *more = text.splitlines() or [""]
    return "\n".join([to_one_line(first), *(f"  | {to_one_line(line)}" for line in more)])


def format_id(key: int | str) -> str:
    """An id as a line shows it: as it is, or in quotes where it could be taken for more than an id."""
    text = str(key)
    odd = text != to_one_line(text) or any(sign in f"{text} " for sign in _BREAKS_A_NAME)
    return json.dumps(text) if odd else text


def shorten_id(key: int | str, limit: int) -> int | str:
    """An id that its name shows in so many characters: itself, or its beginning."""
    if len(format_id(key)) <= limit:
        return key
    return to_one_line(str(key).translate(_NO_NAME))[: limit - 1] + "…"


def pluralize(count: int, word: str) -> str:
    """A count with its word."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
