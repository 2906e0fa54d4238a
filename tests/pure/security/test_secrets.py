"""Redaction: certain secrets never leave, and everything else stays as it is."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from levels import examples

import wakeloop
from wakeloop.cli.failures import format_error, redact
from wakeloop.display import formatting, report_page
from wakeloop.model.redaction import redact_error
from wakeloop.sessions.host import describe_error
from wakeloop.text.secret_formats import KEY_FORMATS
from wakeloop.text.secrets import is_secret_variable, redact_json, redact_text
from wakeloop.tools.shell import without_secret_variables

ASCII = st.characters(codec="ascii")
KEYS = {
    key.service: st.from_regex(rf"(?!.*\n){key.pattern}", fullmatch=True, alphabet=ASCII)
    for key in KEY_FORMATS
}
NAMED = (  # the services whose keys have reached shell commands
    "SendGrid, Vault, Docker, PyPI, DigitalOcean, Slack webhooks, Telegram, Databricks, Shopify, NVIDIA, "
    "LangSmith, Linear, Atlassian, Replicate, Perplexity, Tavily"
)
SECRETS = st.from_regex(r"[a-z]{2}[0-9][A-Za-z0-9]{8,20}", fullmatch=True, alphabet=ASCII)
HEADS = "", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "
AROUND = [  # where a secret of no known form is certainly one
    "https://X@host/x",
    "https://me:X@host/x?page=2",
    "postgresql://me:a/X@host/db",
    "https://me:p@X@host",
    "Authorization: Bearer X",
    "authorization: token X",
    'Authorization: Digest username="X", response="X"',
    "Proxy-Authorization: Basic X==",
    "{'Authorization': 'X'}",
    '{"Authorization": "Bearer X", "n": 1}',
    '{\\"Authorization\\": \\"Bearer X\\"}',
    'curl -H "Cookie: a=X; b=X" https://h',
    "Set-Cookie: sid=X; Path=/",
    '{"Cookie": "a=X; b=X"}',
    "Bearer XXXX",
    *(f"-----BEGIN {head}PRIVATE KEY-----\nX\n-----END {head}PRIVATE KEY-----" for head in HEADS),
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 2\n\nX\n=X\n-----END PGP PRIVATE KEY BLOCK-----",
    '"-----BEGIN PRIVATE KEY-----\\n" +\n"X\\n" +\n"-----END PRIVATE KEY-----"',
    "-----BEGIN PRIVATE KEY----- X -----END PRIVATE KEY-----",
    # cut off: everything after it is part of the key
    "-----BEGIN PRIVATE KEY-----\nX\n  3 X",
    "-----BEGIN PRIVATE KEY-----\\nX",
    "> -----BEGIN PRIVATE KEY-----\n> X\n> X",
    "-----BEGIN PRIVATE KEY-----$\nX$",
]
DOORS: dict[str, Callable[[str], Any]] = {
    "a string": redact_text,
    "a string of the command line": redact,
    "JSON": lambda text: redact_json({"a": [text, {"b": (text,)}]}),
    "a call's line": lambda text: formatting.format_call("look", {"at": text}),
    "a result's line": formatting.format_first_line,
    "an item's line": lambda text: formatting.format_item(
        {"id": 1, "status": "blocked", "content": text, "reason": text}
    ),
    "an ending": lambda text: [
        formatting.format_ending({"state": "idle", "reason": reason, key: text})
        for reason, key in (("looping", "repeated"), ("failed", "error"), ("stalled", "missing"))
    ],
    "a page": lambda text: report_page.clean_text(text, str),
    "an error": lambda text: repr(redact_error(ValueError(text), [])),
    "an error with parts": lambda text: redact_error(ValueError({"body": [text]}), []).args,
    "an error inside an error": lambda text: redact_error(ExceptionGroup("a", [ValueError(text)]), []),
    "an error on the command line": lambda text: format_error(ValueError(text)),
    "an error of a session": lambda text: describe_error(ValueError(text)),
    "the environment of a command": lambda text: without_secret_variables({"INNOCENT": text}),
}
ORDINARY = [
    "PWD=/tmp/tmpk3j2x9 password=hunter2 --token abc api_key: x",  # without a form of its own: not promised
    "basic authentication, Basic knowledge of Python, the bearer certificate, basic python3",
    "Authorization: needed since v2; Authorization: see below. authorization = None",
    "cookie: a small text; cookie: str = None; Cookie: SimpleCookie[str]",
    "{'Authorization': f'Bearer {token}'} Authorization: Bearer $TOKEN 'Cookie: sid=${SID}'",
    "sk-learn, disk-usage-of-all-servers, risk-sk-0123456789abcdef, pypi-publish, pplx-70b-online",
    "hf_hub_download_file, npm_config_registry, xai-explainability, r8_ball, SG.x.y, dapiano, hvs.pdf",
    "tvly-dev, AKIA, eyJ, nvapi-, bot1234567:AA, https://hooks.slack.com/services/T/B",
    'if "-----BEGIN PRIVATE KEY-----" in text:\n    raise ConfigurationError(authentication)  # certificates',
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhki\n-----END CERTIFICATE-----",
    "https://unpkg.com/react@18 http://host:8080/x@v1 git@github.com:a/b.git me@example.org",
    "3f786850e387550fdb8836ed6dead88aec2a0f9c 123e4567-e89b-12d3-a456-426614174000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
]
SECRET_VARIABLES = {
    **dict.fromkeys(
        ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "github_token", "PGPASSWORD", "MYSQL_PWD"), "x"
    ),
    **dict.fromkeys(("MY_PAT", "DSN", "SENTRY_DSN", "SSH_AUTH_SOCK"), "x"),
    "PLAIN": "sk-0123456789abcdef",
    "A_URL": "https://host/x?api_key=abc",
    "B_URL": "https://host/x?a=1&access_token=abc",
    "C_URL": "https://0123456789abcdef@host/x",
    "D_URL": "https://host/cb#id_token=abc",
    "E_URL": "https://host/x?sig=abc",
    "F_URL": "https://u:p@host",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    "HEADER": "Authorization: Bearer abcdefgh",
    "CONNECTION": "Server=tcp:host,1433;User ID=me;Password=hunter2;",
    "STORAGE": "AccountName=me;AccountKey=aGVsbG8=;EndpointSuffix=core.windows.net",
    "CONFIGURED": '{"user": "me", "api_key": "abc"}',
    "JAVA_OPTS": "-Xmx1g -Djavax.net.ssl.keyStorePassword=changeit",
}
ORDINARY_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "PWD": "/home/x",
    "OLDPWD": "/",
    "DESIGN": "a",
    "LANG": "C.UTF-8",
    "HOME_URL": "https://host:8080/x?page=2&sort=name#top",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36:*.tar=01;31",
    "GIT_SSH_COMMAND": "ssh -o PubkeyAuthentication=no",
    "MAIL": "me@example.org",
    "OPENAI_BASE_URL": "http://localhost:1",
    "NO_PORT": "http://host:port/",
    "NOTES": "the token is in the vault; max_tokens=5 is a limit, monkey=1",
}


def leaving(text: str) -> dict[str, str]:
    """Return what is seen of a string at each exit."""
    return {door: str(look(text)) for door, look in DOORS.items()}


def test_c88_the_table_has_every_service_whose_keys_are_named() -> None:
    services = [key.service for key in KEY_FORMATS]
    assert set(NAMED.split(", ")) <= set(services)
    assert len(services) == len(set(services))
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| keys in the form of .*\| (.*) \|$", page, re.MULTILINE)
    assert sorted(row.replace("; ", ", ").split(", ")) == sorted(", ".join(services).split(", "))


@pytest.mark.parametrize("service", KEYS)
@examples(20)
@given(data=st.data())
def test_c88_a_services_key_never_leaves(service: str, data: st.DataObject) -> None:
    key = data.draw(KEYS[service])
    assert redact_text(f"use {key}, then '{key}'\n") == "use …, then '…'\n"
    assert [door for door, seen in leaving(f"a {key}\nb").items() if key in seen] == []


@given(SECRETS, st.sampled_from(["", "a ", "a: ", "(", "x\n"]), st.sampled_from(["", "\nb", "\n\n", "\n)"]))
def test_a_secret_in_a_certain_place_never_leaves(secret: str, before: str, after: str) -> None:
    for place in AROUND:
        text = before + place.replace("X", secret) + after
        assert [door for door, seen in leaving(text).items() if secret in seen] == [], place
        assert redact_text(redact_text(text)) == redact_text(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("GET https://u:p@h/x?page=2 failed", "GET https://…@h/x?page=2 failed"),
        ("Authorization: Basic dXNlcjpwYXNz\nleft", "Authorization: Basic …\nleft"),
        ("Bearer abcdefghij0123456789, left", "Bearer …, left"),
        ("basic aGk6eW91Cg==", "basic …"),
        ('curl -H "Cookie: a=b" https://h', 'curl -H "Cookie: …" https://h'),
        (
            '{\\"Authorization\\": \\"Bearer x\\", \\"n\\": 1}',
            '{\\"Authorization\\": \\"Bearer …\\", \\"n\\": 1}',
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nleft", "…\nleft"),
        *((text, text) for text in ORDINARY),
    ],
)
def test_the_words_around_a_secret_stay(text: str, left: str) -> None:
    assert redact_text(text) == left


def test_known_values_are_hidden_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact_text("hunter2, not hunter", ["hunter2"]) == "…, not hunter"
    monkeypatch.setenv("MY_KEY", "hunter2\r")
    assert redact(repr("hunter2\r")) == repr("…\r")


def test_the_values_of_secret_headers_are_hidden_whole() -> None:
    headers = {"Cookie": ["a", {"b": 1}], "authorization": 5, "Accept": "*", "n": None}
    assert redact_json({"headers": headers}) == {
        "headers": {"Cookie": "…", "authorization": "…", "Accept": "*", "n": None}
    }


def test_a_command_sees_no_variable_that_holds_a_secret() -> None:
    everything = {**ORDINARY_VARIABLES, **SECRET_VARIABLES}
    assert without_secret_variables(everything) == ORDINARY_VARIABLES
    assert [name for name, value in SECRET_VARIABLES.items() if not is_secret_variable(name, value)] == []


def test_source_code_stays_as_it_is() -> None:
    source = Path(wakeloop.__file__).parent
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(source.rglob("*.py"))}
    changed = [file.name for file, text in texts.items() if redact_text(text) != text]
    assert changed == ["secrets.py"]  # its example shows a password


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    [
        *("x://a:b", "cookie: a=", 'authorization: x="', "bearer ", "sk-", "1:", "eyJa.", "SG.a", "a!"),
        *("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----Ab-c: d ", "https://hooks.slack.com/"),
    ],
)
def test_redaction_takes_linear_time(piece: str) -> None:
    for head in ("", "authorization: ", "cookie: a=", "-----BEGIN PRIVATE KEY-----\n"):
        redact_text(head + piece * (300_000 // len(piece)))
