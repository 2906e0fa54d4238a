"""Redaction: text and JSON without secrets."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from wakeloop.text import secret_formats as formats
from wakeloop.text.secret_formats import SECRET_NAME

HIDDEN = "…"
DEEPEST = 100  # levels of JSON


def redact_text(text: str, secrets: Sequence[str] = ()) -> str:
    """Replace secrets in a string with `…`.

    What counts is certain: the given `secrets`, the user part of an address, `Authorization` and `Cookie`
    headers, private keys, and keys in the form of a well-known service (`KEY_FORMATS`). A secret without such
    a form is only found where it is given.

    >>> redact_text("GET https://me:hunter2@host with hunter3", ["hunter3"])
    'GET https://…@host with …'
    """
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = formats.PRIVATE_KEY.sub(HIDDEN, text)
    text = formats.USER_PART.sub(HIDDEN, text)
    text = formats.COOKIE.sub(rf"\1{HIDDEN}", text)
    text = formats.AUTHORIZATION.sub(rf"\1\2{HIDDEN}", text)
    text = formats.CREDENTIALS.sub(rf"\1{HIDDEN}", text)
    return formats.SERVICE_KEY.sub(HIDDEN, text)


def redact_json(value: Any, redact: Callable[[str], str] = redact_text, room: int = DEEPEST) -> Any:
    """Apply `redact` to every string in plain JSON, and hide the values of secret headers whole.

    What is more than `room` levels deep is hidden, too.

    >>> redact_json({"headers": {"Cookie": "a=b", "Accept": "*/*"}})
    {'headers': {'Cookie': '…', 'Accept': '*/*'}}
    """
    if isinstance(value, str):
        return redact(value)
    if not isinstance(value, list | tuple | Mapping):
        return value
    if not room:
        return HIDDEN
    if not isinstance(value, Mapping):
        return [redact_json(part, redact, room - 1) for part in value]
    redacted = {}
    for key, part in value.items():
        is_secret = str(key).lower() in formats.SECRET_HEADERS
        redacted[key] = HIDDEN if is_secret else redact_json(part, redact, room - 1)
    return redacted


def is_secret_variable(name: str, value: str) -> bool:
    """Tell whether an environment variable holds a secret, judging by its name or its value.

    >>> is_secret_variable("MY_TOKEN", "x"), is_secret_variable("HOME", "/home/me")
    (True, False)
    """
    if SECRET_NAME.search(name) or formats.SECRET_PAIR.search(value) or redact_text(value) != value:
        return True
    return any(secrets_in_address(value))


def secrets_in_address(address: str) -> Iterator[str]:
    """Yield user, password and the values of secret parameters of an address, as written and decoded.

    >>> list(secrets_in_address("https://host/x?api_key=abc&page=2"))
    ['abc']
    """
    if "://" not in address:
        return
    with suppress(ValueError):  # no address after all, such as a port that is not a number
        parts = urlsplit(address)
        user_part, at, _ = parts.netloc.rpartition("@")
        if at:
            user, _, password = user_part.partition(":")
            for part in (user, password):
                yield from (part, unquote(part))
            # clients send both as the header `Authorization: Basic …`
            yield b64encode(unquote(f"{user}:{password}").encode()).decode()
        for name, value in parse_qsl(parts.query) + parse_qsl(parts.fragment):
            if SECRET_NAME.search(name):
                yield value
