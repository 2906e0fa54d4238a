"""Answers in words: yes, no, or neither.

Every door reads a person's words here: the terminal, the chat, sessions and the library.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wakeloop.text.characters import fix_surrogates

YES_WORDS = frozenset(("yes", "y", "ok", "okay", "sure", "approve", "approved", "accept", "true"))
NO_WORDS = frozenset(
    ("no", "n", "nope", "reject", "rejected", "deny", "denied", "decline", "declined", "refuse", "false")
)
# The words after these say what must not be done, so without the first one they are not a reason.
NEGATIONS = frozenset(("not", "don't", "dont", "never", "stop", "cancel", "abort"))
COURTESIES = frozenset(("please", "pls", "thanks", "thx", "thank", "you"))
APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"  # as phones type it
_WORD = re.compile(rf"\w+(?:['{APOSTROPHE}]\w+)*")
_COURTESY = re.compile(rf"(?:{'|'.join(sorted(COURTESIES))}|[\s!-/:-@])*", re.IGNORECASE)
_SEPARATORS = " \t\r\n,.;:!-–—…"  # between a no and its reason


@dataclass(frozen=True)
class Words:
    """What an answer in words says; `reason` holds a person's words without the no that begins them."""

    kind: Literal["yes", "no", "unclear"]
    reason: str = ""
    goes_on: bool = False  # it begins with a yes, and then says more


def read_words(text: str) -> Words:
    """Read an answer in words. A yes stands alone, apart from courtesies; a no may be followed by a reason.

    >>> read_words("Yes, please!").kind
    'yes'
    >>> read_words("no, not there").reason
    'not there'
    >>> read_words("yes, but not now").kind
    'unclear'
    """
    text = fix_surrogates(text).strip()
    if not text:
        return Words("no")
    found = [match for match in _WORD.finditer(text) if _fold(match) not in COURTESIES]
    if not found:
        return Words("unclear")
    first, rest = _fold(found[0]), found[1:]
    if first in YES_WORDS:
        is_alone = not rest and "?" not in text
        return Words("yes") if is_alone else Words("unclear", goes_on=bool(rest))
    if first in NEGATIONS or (first == "do" and rest and _fold(rest[0]) == "not"):
        return Words("no", text)
    if first in NO_WORDS:
        reason = text[found[0].end() :].lstrip(_SEPARATORS)
        is_reason = rest or not _COURTESY.fullmatch(reason)
        return Words("no", reason if is_reason else "")
    return Words("unclear")


def read_plain_answer(answer: object) -> Words:
    """Read an answer that is not a decision: words, True or False, or a mapping with `approved` or words."""
    if isinstance(answer, Mapping):
        said = next((answer[key] for key in ("message", "reason", "text") if answer.get(key)), "")
        approved = answer.get("approved")
        if approved is True:
            return Words("yes")
        if approved is False:
            return Words("no", fix_surrogates(said).strip() if isinstance(said, str) else "")
        return read_plain_answer(said) if not answer or said else Words("unclear")
    if isinstance(answer, str):
        return read_words(answer)
    if isinstance(answer, bool):
        return Words("yes" if answer else "no")
    is_empty = answer is None or (isinstance(answer, Sequence) and not answer)
    return Words("no" if is_empty else "unclear")


def _fold(word: "re.Match[str]") -> str:
    return unicodedata.normalize("NFKC", word[0]).casefold().replace(APOSTROPHE, "'")
