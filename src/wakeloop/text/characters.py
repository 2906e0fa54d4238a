"""Text that every server, database and terminal accepts."""

import json
import re
from shlex import quote
from typing import Any

# Default_Ignorable_Code_Point without the joiners of letters, U+200C and U+200D: DerivedCoreProperties.txt of
# Unicode 16, unchanged since 14. `unicodedata` only knows the category Cf, without fillers and selectors.
_IGNORED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_BLANK = "\u2800\U0001d159"  # letters and signs to Unicode, but drawn as nothing
INVISIBLE = (  # C0 except tab and newline, DEL, C1, line ends, surrogates, annotations
    f"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufff9-\ufffb{_BLANK}{_IGNORED}"
)
"""Characters for a regex class that are not visible or change how others look; joiners of letters stay."""
_CONTROLS = re.compile(f"[{INVISIBLE}]+")
_HIDDEN = re.compile(f"[{_BLANK}{_IGNORED}]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_SYNTAX = str.maketrans("", "", '[]":.')  # an id without these needs no quotes
_AROUND_IDS = ("[", "]", ": ", ". ", '"')  # what dialects put around an id


def fix_surrogates(value: Any) -> Any:
    """Join surrogate pairs in a string or in plain JSON; a lone surrogate is replaced.

    JSON readers pass lone surrogates on, also where a stream cut a pair, but UTF-8 cannot encode them.

    >>> fix_surrogates(chr(0xD83D) + chr(0xDE00)) == chr(0x1F600)
    True
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict | list) and is_plain_json(value):
        return value
    if isinstance(value, dict):
        return {fix_surrogates(key): fix_surrogates(part) for key, part in value.items()}
    return [fix_surrogates(part) for part in value] if isinstance(value, list) else value


def is_plain_json(value: object) -> bool:
    """Tell whether a value is JSON that UTF-8 can encode: one pass in C, which is enough for nearly all."""
    try:
        _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def find_lone_surrogate(text: str) -> str | None:
    """Return the first surrogate in a string, in ASCII, or None if UTF-8 can encode the string."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return ascii(error.object[error.start])[1:-1]
    return None


def storable_text(text: Any) -> str:
    """Return a string that every saver can store: Postgres keeps a channel's string in a text column.

    NUL is removed, as from metadata, and lone surrogates are replaced.
    """
    return str(fix_surrogates(str(text))).replace("\0", "")


def is_visible(text: str) -> bool:
    """Tell whether every character of a string is visible or a blank, so that a person may approve it."""
    return text.isprintable() and not _HIDDEN.search(text)


def escape_invisible(text: str) -> str:
    r"""Spell out every character that cannot be seen, for a person who approves the text.

    >>> escape_invisible("rm" + chr(0x200B))
    'rm\\u200b'
    """
    lines = []
    for line in text.split("\n"):
        if is_visible(line):  # as nearly all are: then no character is looked at alone
            lines.append(line)
        else:
            lines.append("".join(char if is_visible(char) else ascii(char)[1:-1] for char in line))
    return "\n".join(lines)


def quote_path(path: object) -> str:
    """Return a path as a shell accepts it: in quotes if it contains blanks."""
    text = str(path)
    return quote(text) if any(map(str.isspace, text)) else text


def shorten(text: str, limit: int = 60) -> str:
    """Cut a string to fit into a sentence or a line.

    >>> shorten("a long text", 6)
    'a lon…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def to_one_line(text: str) -> str:
    """Join a string into one line that no control character can break or change."""
    return " ".join(_CONTROLS.sub("", " ".join(text.split())).split())


def is_blank(text: str) -> bool:
    """Tell whether a string shows nothing, so that it cannot be an item or a reason."""
    if text[:1].isalnum() and text.isascii():
        return False  # most strings are like this, and no sign of theirs is blank
    return not to_one_line(text)


def indent_lines(text: str) -> str:
    """Indent the later lines of a string, so that none can pass for a line of the graph's own."""
    first, *more = text.splitlines() or [""]
    return "\n".join([to_one_line(first), *(f"  | {to_one_line(line)}" for line in more)])


def format_id(key: int | str) -> str:
    """Return an id for a line: in quotes if it could be mistaken for more than an id.

    >>> format_id(3), format_id("1] done")
    ('3', '"1] done"')
    """
    text = str(key)
    if isinstance(key, int):
        return text
    is_odd = text != to_one_line(text) or any(sign in f"{text} " for sign in _AROUND_IDS)
    return json.dumps(text) if is_odd else text


def shorten_id(key: int | str, limit: int) -> int | str:
    """Return an id, or its beginning if `format_id` makes it longer than `limit` characters."""
    if len(format_id(key)) <= limit:
        return key
    return to_one_line(str(key).translate(_SYNTAX))[: limit - 1] + "…"


def pluralize(count: int, word: str) -> str:
    """Return a count with its word.

    >>> pluralize(1, "call"), pluralize(1200, "call")
    ('1 call', '1,200 calls')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
