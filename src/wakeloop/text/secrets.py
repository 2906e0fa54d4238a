"""Texts without keys."""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

HIDDEN = "…"
LONG_WORD = 20  # characters: no word of a sentence has as many
NAMES_A_SECRET = re.compile(
    r"key|token|secret|pass|credential|auth|private|cookie|signature|(?:^|[_.-])(?:pat|sig|dsn)$|[_.-]pwd$",
    re.IGNORECASE,
)
"""Of a header, a parameter, a field, a variable: the one list of what names a secret."""
_BEGINS = (
    r"sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|A[KS]IA|AIza|eyJ[\w-]++\.eyJ"
    r"|(?:hf_|npm_|gsk_|xai-)(?=[a-zA-Z]*+\d)"
)
IS_A_SECRET = re.compile(rf"^(?:{_BEGINS}|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY)")
"""What is a secret under whatever name; a signed token and a private key, too."""
# What looks like a secret by its place, whatever it is. Each part of a pattern ends where the next begins, so
# that no text is looked at twice.
_USER = re.compile(r"(?<=\w://)[^/@\s]++(?=@)")
_PARAMETER = re.compile(r"([?&#])([\w.-]++)=([^&#\s\"'<>]++)")
_FIELD = re.compile(r"(?<![\w.-])([\w.-]++)([ \t]{0,9}=(?!=)[ \t]{0,9}+)([^&#;,\s\"'<>]++)")
_TELLING = re.compile(
    r"(?:api|access|account|secret|private)[_.-]?key$|passw(?:or)?d$|passphrase$"
    r"|(?:access|auth|refresh|client)[_.-]?(?:token|secret)$|authorization$|cookie$",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""(?<![\w.-])([\w.-]++)((?:\\?["'])?[ \t]{0,9}[:=][ \t]{0,9}\\?(["']))([^"'\\\s]++)(?=\\?\3)"""
)
_LINE = re.compile(r"(?<![\w.-])([\w.-]++)(:[ \t]{1,9}+)(?=[a-zA-Z]*+\d)([\w.~+/=-]{8,}+)")
_CODE = re.compile(r"None|null|[Tt]rue|[Ff]alse|[A-Za-z_][\w.]*+(?:\[|\().*")  # `os.environ[` and the like
_SCHEME = re.compile(
    r"""\b((authorization["']?[ \t]{0,9}[:=][ \t]{0,9}["']?)?(?:bearer|basic)\s++)([\w.~+/-]{6,}+=*+)""",
    re.IGNORECASE,
)
# What is one by its form; a key is longer than a word that begins like it.
_FORM = re.compile(rf"(?<![\w-])(?:{_BEGINS})[\w./+=-]{{12,}}+")
_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL)


def without_secrets(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text without these secrets, what an address, a field or a header carries, keys and tokens."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = _SCHEME.sub(_credentials, _KEY.sub(HIDDEN, _USER.sub(HIDDEN, text)))
    text = _FIELD.sub(_field, _PARAMETER.sub(_parameter, text))
    return _FORM.sub(HIDDEN, _LINE.sub(_field, _QUOTED.sub(_field, text)))


def hidden(value: Any, hide: Callable[[str], str] = without_secrets) -> Any:
    """Return plain JSON with each text as `hide` leaves it; what stands under a telling key goes whole."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {
            key: hidden(part, _gone)
            if isinstance(part, str | list | tuple) and _TELLING.search(str(key))
            else hidden(part, hide)
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
    name, sign, *_, value = found.groups()
    return f"{name}{sign}{HIDDEN}" if _TELLING.search(name) and not _CODE.fullmatch(value) else found[0]


def _credentials(found: re.Match[str]) -> str:
    """Behind the name of a scheme a word is none, unless a header says so: "basic knowledge"."""
    head, header, value = found.groups()
    word = len(value) < LONG_WORD and not any(sign.isdigit() or sign == "=" for sign in value)
    return found[0] if word and not header and not _is_a_pair(value) else f"{head}{HIDDEN}"


def _is_a_pair(value: str) -> bool:
    """Whether a name and a password are written so."""
    try:
        text = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    return ":" in text and text.isprintable()


def _gone(_: str) -> str:
    return HIDDEN
