"""Texts without keys."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

HIDDEN = "…"
NAMES_A_SECRET = re.compile(
    r"key|token|secret|pass|credential|auth|private|cookie|signature|(?:^|[_.-])(?:pat|sig|dsn)$|[_.-]pwd$",
    re.IGNORECASE,
)
"""Of a header, a parameter, a field, a variable: the one list of what names a secret."""
_BEGINS = r"sk-|ghp_|github_pat_|glpat-|xox[a-z]-|AKIA|eyJ[\w-]++\.eyJ"
IS_A_SECRET = re.compile(rf"^(?:{_BEGINS}|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY)")
"""What is a secret under whatever name; a signed token and a private key, too."""
# What looks like a secret by its place, whatever it is. Each part of a pattern ends where the next begins, so
# that no text is looked at twice.
_USER = re.compile(r"(?<=\w://)[^/@\s]++(?=@)")
_PARAMETER = re.compile(r"([?&#])([\w.-]++)=([^&#\s\"'<>]++)")
_FIELD = re.compile(r"(?<![\w.-])([\w.-]++)([ \t]{0,9}=[ \t]{0,9}+)([^&#;,\s\"'<>]++)")
_TELLING = re.compile(
    r"(?:api|access|account|secret|private)[_.-]?key$|passw(?:or)?d$|passphrase$", re.IGNORECASE
)
_SCHEME = re.compile(r"\b((?:bearer|basic)\s++)[\w.~+/-]{6,}+=*+", re.IGNORECASE)
# What is one by its form; a key is longer than a word that begins like it.
_FORM = re.compile(rf"(?<![\w-])(?:{_BEGINS})[\w./+=-]{{12,}}+")
_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL)


def without_secrets(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text without these secrets, what an address, a field or a header carries, keys and tokens."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = _FIELD.sub(_field, _PARAMETER.sub(_parameter, _USER.sub(HIDDEN, text)))
    return _FORM.sub(HIDDEN, _KEY.sub(HIDDEN, _SCHEME.sub(rf"\1{HIDDEN}", text)))


def hidden(value: Any, hide: Callable[[str], str] = without_secrets) -> Any:
    """Return plain JSON with each text as `hide` leaves it; what stands under a telling key goes whole."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if isinstance(part, str) and _TELLING.search(str(key)) else hidden(part, hide)
            for key, part in value.items()
        }
    return [hidden(part, hide) for part in value] if isinstance(value, list | tuple) else value


def is_secret(name: str, value: str) -> bool:
    """Tell whether a variable carries a secret: by its name, or anywhere in its value."""
    return bool(NAMES_A_SECRET.search(name) or IS_A_SECRET.search(value)) or without_secrets(value) != value


def _parameter(found: re.Match[str]) -> str:
    sign, name, _ = found.groups()
    return f"{sign}{name}={HIDDEN}" if NAMES_A_SECRET.search(f"_{name}") else found[0]


def _field(found: re.Match[str]) -> str:
    name, sign, _ = found.groups()
    return f"{name}{sign}{HIDDEN}" if _TELLING.search(name) else found[0]
