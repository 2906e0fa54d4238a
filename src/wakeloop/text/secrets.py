"""Texts without keys."""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wakeloop.text import secret_formats as forms

HIDDEN = "…"
LONG_WORD = 20  # characters: no word of a sentence has as many
SHORT, SHORTEST = 8, 4  # characters of what looks like a secret, and of one that is called so
LONG_CALL = 200  # characters before an argument in which its call begins
NAMES_A_SECRET = re.compile(
    r"key|token|secret|pass|credential|auth|private|cookie|signature|(?:^|[_.-])(?:pat|sig|dsn)$|[_.-]pwd$",
    re.IGNORECASE,
)
"""Of a header, a parameter, a field, a variable: the one list of what names a secret."""
IS_A_SECRET = re.compile(rf"^(?:{forms.BEGINS}|-----BEGIN (?:[A-Z0-9]+ ){{0,3}}PRIVATE KEY)")
"""What is a secret under whatever name; a signed token and a private key, too."""


def redact_text(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text without these secrets, what an address, a field or a header carries, keys and tokens."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = forms.USER.sub(HIDDEN, forms.BLOCK.sub(HIDDEN, text))
    text = forms.SCHEME.sub(
        _credentials, forms.AUTHORIZATION.sub(_authorization, forms.COOKIES.sub(_cookies, text))
    )
    text = forms.FIELD.sub(_field, forms.PARAMETER.sub(_parameter, forms.OPTION.sub(_option, text)))
    return forms.FORM.sub(HIDDEN, forms.LINE.sub(_line, forms.QUOTED.sub(_quoted, text)))


def redact_json(value: Any, hide: Callable[[str], str] = redact_text) -> Any:
    """Return plain JSON with each text as `hide` leaves it; what stands under a telling key goes whole."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {key: _under(str(key), part, hide) for key, part in value.items()}
    if isinstance(value, list | tuple):
        before = ["", *value]  # what follows an option is its own
        return [
            HIDDEN
            if isinstance(part, str) and _is_option(last) and forms.STANDS_FOR_ONE.fullmatch(part) is None
            else redact_json(part, hide)
            for last, part in zip(before, value, strict=False)
        ]
    return (
        HIDDEN if hide is _gone and isinstance(value, int | float) and not isinstance(value, bool) else value
    )


def is_secret_variable(name: str, value: str) -> bool:
    """Tell whether a variable carries a secret: by its name, or anywhere in its value."""
    return bool(NAMES_A_SECRET.search(name) or IS_A_SECRET.search(value)) or redact_text(value) != value


def _under(key: str, value: Any, hide: Callable[[str], str]) -> Any:
    """A value under its key."""
    if isinstance(value, str | int | float) and _counts(key, str(value)):
        return value
    if forms.TELLING.search(key) or (forms.HOLDS.search(key) and not isinstance(value, str)):
        return redact_json(value, _gone)
    if isinstance(value, str) and forms.MAY_TELL.search(key) and _is_random(value):
        return HIDDEN
    return redact_json(value, hide)


def _is_option(word: Any) -> bool:
    return isinstance(word, str) and word.startswith("-") and "=" not in word and _tells(word)


def _tells(name: str) -> bool:
    return bool(forms.TELLING.search(name) or forms.MAY_TELL.search(name))


def _is_none(value: str, name: str | None = None) -> bool:
    """Whether what stands in the place of a secret is a word for one, or code.

    With a name, where a value and no code is likely, few are: in capitals, or the name once more.
    """
    words = forms.STANDS_FOR_ONE if name is None else forms.SAYS_NONE
    if words.fullmatch(value) or forms.CODE.fullmatch(value):
        return True
    if forms.CALLED_SO.fullmatch(value):
        return name is None or value.isupper() or value.rstrip("`.:)]}") == name.lstrip("-")
    return name is None and bool(forms.DOTTED.fullmatch(value))


def _counts(name: str, value: str) -> bool:
    return bool(forms.COUNTS.fullmatch(name) and _is_number(value))


def _is_number(value: str) -> bool:
    return bool(forms.NUMBER.fullmatch(value) or forms.MEASURE.fullmatch(value))


def _is_random(value: str) -> bool:
    """Whether a value looks like no word and no number."""
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= SHORT and mixed and " " not in value and not _is_none(value)


def _parameter(found: re.Match[str]) -> str:
    sign, name, _ = found.groups()
    return f"{sign}{name}={HIDDEN}" if NAMES_A_SECRET.search(f"_{name}") else found[0]


def _option(found: re.Match[str]) -> str:
    """A list of words in a program has names behind an option, too: `option("--token", "token")`."""
    name, sign, value = found.groups()
    code = _is_none(value, name if "=" in sign else None) or ("," in sign and forms.NAME.fullmatch(value))
    return f"{name}{sign}{HIDDEN}" if _tells(name) and not (code or _counts(name, value)) else found[0]


def _field(found: re.Match[str]) -> str:
    """`password=x` is a secret, `login(password=x)` and `password = x` are code unless `x` is no name."""
    name, sign, value = found.groups()
    line = found.string[max(found.start() - LONG_CALL, 0) : found.start()].rpartition("\n")[2]
    called = "(" in line and line.rstrip(" ")[-1:] in ("(", ",")
    called = called or (line.isspace() and found.string.startswith(",", found.end()))  # a row of a long one
    plain = forms.NUMBER.fullmatch(value) or (not name.isupper() and forms.NAME.fullmatch(value))
    likely = called or " " in sign
    code = _is_none(value, None if likely else name) or (likely and plain) or _counts(name, value)
    sure = forms.TELLING.search(name) or (name.isupper() and forms.MAY_TELL.search(name))
    hide = (sure and not code) or (forms.MAY_TELL.search(name) and _is_random(value))
    return f"{name}{sign}{HIDDEN}" if hide else found[0]


def _quoted(found: re.Match[str]) -> str:
    name, sign, _, value = found.groups()
    none = _is_none(value, name) or _counts(name, value)
    hide = (forms.TELLING.search(name) and not none) or (forms.MAY_TELL.search(name) and _is_random(value))
    return f"{name}{sign}{HIDDEN}" if hide else found[0]


def _line(found: re.Match[str]) -> str:
    """Behind a colon stands prose as well: only what is no word is a secret."""
    name, sign, value = found.groups()
    word = value.rstrip(".:!?)]}")
    number = any(map(str.isdigit, word)) and len(word) >= SHORTEST and not _is_number(word)
    odd = number or (not forms.SIGNS.isdisjoint(word) and any(map(str.isalpha, word)))
    sure = forms.TELLING.search(name) and name != "PASS"  # a test has passed
    hide = not _is_none(value) and ((sure and odd) or (forms.MAY_TELL.search(name) and _is_random(word)))
    return f"{name}{sign}{HIDDEN}" if hide else found[0]


def _cookies(found: re.Match[str]) -> str:
    return f"{found[1]}{HIDDEN}"


def _authorization(found: re.Match[str]) -> str:
    """What a header carries, to its end: a scheme and more, or one word that is none of a sentence."""
    head, scheme, value = found.groups()
    first = value.split(maxsplit=1)[0]
    hide = not _is_none(first) if scheme else _is_random(first)
    return f"{head}{scheme or ''}{HIDDEN}" if hide else found[0]


def _credentials(found: re.Match[str]) -> str:
    """Behind the name of a scheme a word is none: "basic knowledge"."""
    head, value = found.groups()
    word = len(value) < LONG_WORD and not any(sign.isdigit() or sign == "=" for sign in value)
    return found[0] if word and not _is_a_pair(value) else f"{head}{HIDDEN}"


def _is_a_pair(value: str) -> bool:
    """Whether a name and a password are written so."""
    try:
        text = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    return ":" in text and text.isprintable()


def _gone(_: str) -> str:
    return HIDDEN
