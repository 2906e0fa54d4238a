"""What a person sees is what runs: characters by property, secrets by one list, costs with the text."""

import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk

import wakeloop
from wakeloop.cli.discovery import KEY_PROVIDERS
from wakeloop.display.clean import clean
from wakeloop.display.screen import SHOWN, Screen
from wakeloop.display.words import call, item, question
from wakeloop.text.characters import INVISIBLE, escape_invisible, is_visible, to_one_line
from wakeloop.text.secrets import is_secret_variable, redact_json, redact_text
from wakeloop.tools.folder import quote_path
from wakeloop.tools.shell import without_secret_variables

JOINERS = "\u200c\u200d"
VISIBLE = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
# Default_Ignorable_Code_Point, DerivedCoreProperties.txt of Unicode 16
IGNORABLE = (
    "00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 "
    "FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


def ignorable() -> list[str]:
    spans = [span.partition("-") for span in IGNORABLE.split()]
    return [chr(n) for a, _, b in spans for n in range(int(a, 16), int(b or a, 16) + 1)]


def test_every_character_that_shows_as_nothing_is_spelled_out_where_it_is_approved() -> None:
    for sign in [*ignorable(), "\u2800", "\U0001d159", "\u2028", "\x07"]:
        assert not is_visible(sign), ascii(sign)
        assert escape_invisible(f"rm{sign}x") == f"rm{ascii(sign)[1:-1]}x"


def test_every_character_that_shows_as_nothing_is_taken_out_elsewhere_but_the_joiners() -> None:
    for sign in [*ignorable(), "\u2800"]:
        kept = sign if sign in JOINERS else ""
        assert clean(f"a{sign}b") == f"a{kept}b", ascii(sign)
        assert to_one_line(f"a{sign}b") == f"a{kept}b", ascii(sign)


def test_the_table_holds_what_unicodedata_tells_of() -> None:
    listed = set(ignorable()) | set(VISIBLE) | set("\ufff9\ufffa\ufffb")
    formats = {chr(n) for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) == "Cf"}
    hieroglyphs = {chr(n) for n in range(0x13430, 0x13440)}  # join signs, and show how
    assert formats - hieroglyphs <= listed
    assert re.compile(f"[{INVISIBLE}]").search("".join(VISIBLE)) is None


def test_letters_of_any_script_are_seen() -> None:
    for text in ("é", "漢字", "한국어", "हिन्दी", "ไทย", "العربية", "👍", "a b", "«»", "π≈3"):
        assert is_visible(text)
        assert escape_invisible(text) == text == clean(text)


def test_a_question_hides_nothing_in_its_keys() -> None:
    told = question({"question": "Run?", "command": "ls\u3164 -l", "no\u115fte\n": "x"})
    assert told == [
        "Run?",
        "  command: ls\\u3164 -l",
        "  | (1 character of this cannot be seen, spelled out as \\x.. or \\u....)",
        "  no\\u115fte\\n: x",
    ]


def test_a_path_shows_what_it_is() -> None:
    assert quote_path("a\u3164b") == "'a\\u3164b'"
    assert quote_path("é") == "'é'"


# -- secrets -----------------------------------------------------------------------------------------------

SECRET = {
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    "PEM2": "-----BEGIN PRIVATE KEY-----\nMIIE",
    "A_URL": "https://host/x?api_key=abc",
    "B_URL": "https://host/x?a=1&access_token=abc",
    "C_URL": "https://0123456789abcdef@host/x",
    "D_URL": "https://host/cb#id_token=abc",
    "E_URL": "https://host/x?sig=abc",
    "F_URL": "https://u:p@host",
    "CONNINFO": "host=db password=hunter2 user=x",
    "STORE": "Endpoint=sb://x/;SharedAccessKey=abc",
    "ARGS": "--api_key=abc",
    "HEADER": "Authorization: Bearer abcdefgh",
    "ANY": "sk-0123456789",
    "OPENAI_API_KEY": "x",
    "MY_PAT": "x",
    "DSN": "x",
}
PLAIN = {
    "PATH": "/usr/bin:/bin",
    "PWD": "/home/x",
    "OLDPWD": "/",
    "DESIGN": "a",
    "LANG": "C.UTF-8",
    "HOME_URL": "https://host:8080/x?page=2&sort=name#top",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36:*.tar=01;31",
    "GIT_SSH_COMMAND": "ssh -o PubkeyAuthentication=no",
    "MAIL": "me@example.org",
}


FIELDS = [
    '{"api_key": "X", "n": 5}',
    "{'password': 'X'}",
    '{\\"api_key\\": \\"X\\"}',
    "export API_KEY='X'",
    'SECRET_KEY = "X"',
    "x-api-key: X",
    "password: X",
    "client_secret=X",
    "Authorization: Bearer X",
    "Authorization: Token X",
    "{'Authorization': 'X'}",
    "run --api-key X now",
    "--token=X",
    '["--password", "X"]',
    "API key: X",
    "GITHUB_TOKEN=X",
    "export DB_PASS=X",
    "AWS_SECRET_ACCESS_KEY=X",
    "aws_secret_access_key = X",
    "Uid=sa;Pwd=X;",
    "secret: X",
]
ODD = [  # what looks like code, a path or a word, and is one
    *("access_token=ya29.a0AfH6SMBx9k3jd8sKq", "access_token: ya29.a0AfH6SMBx9k3jd8sKq"),
    *('"access_token": "ya29.a0AfH6SMBx9k3jd8sKq"', "AWS_SECRET_ACCESS_KEY=/Jalr9UtnFEMI/K7MDENG"),
    *("aws_secret_access_key = /Jalr9UtnFEMI/K7MDENG", "SENDGRID_API_KEY=SG.x.y", "DISCORD_BOT_TOKEN=a.b.c"),
    *("password=given", "DB_PASSWORD=changed", '"password": "yourpassword"', '"password": "it\'s1a"'),
    '"password": "a\\\\b1c2"',
    *("DB_PASSWORD=$ecret99word", "password=%Tgb6yhn", "password={k9aaaa", "password=*Hunter22"),
    *("password=hunter.two", "password=your-secret99", "password=mypassword", "client_secret=abc.def.ghi"),
    *("api_key=prod_key", "password=abc(9Fj2x)!", "DB_PASSWORD=secret", "--password=hunter.two"),
    *('"password": "mypassword"', "password=12345", "DB_PASS=1234", "password: $ecret99word"),
    *("access_token=./eMEPUCUgNZizTf", "password=/run/eMEPUCUgNZizTf"),
]
BLOCK = "PRIVATE KEY BLOCK-----"
HEAD = "-----BEGIN PRIVATE KEY-----"
CUT = [  # private keys without an end, or in other signs
    f"{HEAD}\n 2  MIIEvQIBADANBgkqhki\n 3  x",
    f"a.pem:1:{HEAD}\na.pem:2:MIIEvQIBADANBgkqhki\na.pem:3:x",
    f"> {HEAD}\n> MIIEvQIBADANBgkqhki\n> x",
    f'key = (\n"{HEAD}\\n"\n"MIIEvQIBADANBgkqhki\\n"\n"x"',
    f'["{HEAD}", "MIIEvQIBADANBgkqhki", "x"]',
    f"{HEAD}$\nMIIEvQIBADANBgkqhki$\nx$",
    f"{HEAD}\\nMIIEvQIBADAN",
    f"{HEAD}\nMIIEvQIBADAN",
    f"{HEAD}\nlQOYBFabcQRk",
]
ENDED = f'"{HEAD}\\n" +\n"MIIEx\\n" +\n"-----END PRIVATE KEY-----"'
LINES = [  # what goes to the end of a line, or of what quotes it
    ('"password":"a\\"X", "left": 1', '"password":"…", "left": 1'),
    ('curl -H "Cookie: a=X; b=X" https://h', 'curl -H "Cookie: …" https://h'),
    ("Set-Cookie: sid=X; Path=/\nleft", "Set-Cookie: …\nleft"),
    ("{'Cookie': 'a=X; b=X'}", "{'Cookie': '…'}"),
    ('Authorization: Digest username="X", response="X"\nleft', "Authorization: Digest …\nleft"),
    ("https://user:p@X@host/x", "https://…@host/x"),
    ("postgresql://user:a/X@host/x", "postgresql://…@host/x"),
    (
        f"-----BEGIN PGP {BLOCK}\nVersion: GnuPG v2\n\nlQOYBF\n=X\n-----END PGP {BLOCK}\nleft",
        "…\nleft",
    ),
    ("-----BEGIN ENCRYPTED PRIVATE KEY-----\n0123456789abcdefX\nX", "…"),
]
FORMS = [
    "ASIAIOSFODNN7EXAMPLE",
    "ghs_16C7e42F292c6912E7710c838347",
    "AIzaSyA-1234567890abcdefghij",
    "hf_abcdefghij1234567890",
    "sk_live_abcdefghij1234567890",
]
ORDINARY = [
    "PWD=/tmp/tmpk3j2x9",
    "basic authentication, Basic knowledge of Python, the bearer certificate",
    "if password == other: password=None",
    "api_key=os.environ['X']; private_key = load()",
    "def login(password: str, api_key: SecretStr = None)",
    "The password: see the note. Das Passwort: 12 Zeichen. 密码: 无",
    "token: 5, hf_hub_download_file, npm_config_registry",
    "token count: 300; the api key is missing; password: required; the api key: see the docs",
    "password: 8-20 characters; secret: none; cookie: a small text; Authorization: needed since v2",
    "use --token to authenticate; --api-key is required; --token TOKEN  the token to use",
    'parser.add_argument("--token", "token", required=True); option("--password", "-p")',
    "login(user=user, password=pw, access_token=tok); connect(password=pw)",
    "self.password = password; password = user_input; token = tokens[0]; next_token = 5; PER_TOKEN = 1_000",
    'if "-----BEGIN PRIVATE KEY-----" in text',
    'if "-----BEGIN PRIVATE KEY-----" in text:\n    raise ConfigurationError(authentication)  # certificates',
    "between `-----BEGIN PRIVATE KEY-----` and `-----END PRIVATE KEY-----` it stands",
    "re.search(r'-----BEGIN PRIVATE KEY-----([\\s\\S]*?)-----END PRIVATE KEY-----', text)",
    "pass=10 fail=2, tests pass=10; pass=100%; - pass: 3.5s; PASS=10; PASS: tests/test_a1.py",
    "secret=3; private_key: RSA-2048; access token: v2.1; --token 300",
    "PASSWORD=${DB_PASSWORD} PASSWORD=$DB_PASSWORD api_key={{ key }} password={password} password=%s",
    "private_key=/etc/ssl/key.pem private_key=~/.ssh/id_ed25519 private_key=./key",
    "api_key=settings.api_key password=getpass('x') --token=TOKEN",
    "password=password api_key=api_key",
    "key = secrets.token_hex(32).encode('x'); lambda pat: pat.group(1) + pat.group(2)",
    "private_key: ed25519.Ed25519PrivateKey, password=auth[1]) password = quote(options.pop('x'))",
    "-e PASSWORD={x['y']}",
    '"api_key": "OPENAI_API_KEY", password = "****"',
    '["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"]',
    "connect(\n    password=other_password,\n    access_token=cfg.token,\n)",
    'find("-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----")',
    "https://unpkg.com/react@18 http://host:8080/x@v1 git@github.com:a/b.git PWD=/home/x",
    "cookie: str = None; Cookie: SimpleCookie[str]; %s=%s",
    "3f786850e387550fdb8836ed6dead88aec2a0f9c 123e4567-e89b-12d3-a456-426614174000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
]


@pytest.mark.parametrize("name", SECRET)
def test_a_command_is_not_given_what_counts_as_a_secret(name: str) -> None:
    assert is_secret_variable(name, SECRET[name])
    assert without_secret_variables({**PLAIN, name: SECRET[name]}) == PLAIN


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("GET https://u:p@h/x?api_key=abc&page=2 failed", "GET https://…@h/x?api_key=…&page=2 failed"),
        ("https://tok@h", "https://…@h"),
        ("x?sig=abc&design=oak", "x?sig=…&design=oak"),
        ("host=db password = hunter2", "host=db password = …"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic …"),
        ("max_tokens=5, key=name, pass", "max_tokens=5, key=name, pass"),
        ("TOKEN=ghp_0123456789abcdef, then 'sk-proj-0123456789abc'", "TOKEN=…, then '…'"),
        (
            "sk-learn, disk-usage-of-all-servers, risk-sk-0123456789abcdef",
            "sk-learn, disk-usage-of-all-servers, risk-sk-0123456789abcdef",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nleft", "…\nleft"),
        *((secret.replace("X", "hunter22"), secret.replace("X", "…")) for secret in FIELDS),
        *((text.replace("X", "hunter22"), left) for text, left in LINES),
        *((form, "…") for form in FORMS),
        *((odd, re.sub(r"(?<=[=:])( ?\"?)[^=: \"]+", r"\1…", odd)) for odd in ODD),
        *((f"a {cut}", f"a {cut.partition(HEAD)[0]}…") for cut in CUT),
        (ENDED, '"…"'),
        (f'["{HEAD}", "MIIEx", "-----END PRIVATE KEY-----"]', '["…"]'),
        ("Basic dXNlcjpwYXNz", "Basic …"),
        *((text, text) for text in ORDINARY),
    ],
)
def test_a_text_is_left_without_its_secrets(text: str, left: str) -> None:
    assert redact_text(text) == left


def test_a_list_under_a_telling_name_goes_whole() -> None:
    told = {"password": ["a", ("b",)], "token": 5, "headers": {"Cookie": "a=b", "Accept": "*"}}
    left = {"password": ["…", ["…"]], "token": 5, "headers": {"Cookie": "…", "Accept": "*"}}
    assert redact_json(told) == left
    told = {"secret": {"a": ["b"], "n": 5, "on": True}, "credentials": {"user": "x"}, "token": "a word"}
    left = {"secret": {"a": ["…"], "n": "…", "on": True}, "credentials": {"user": "…"}, "token": "a word"}
    assert redact_json(told) == left
    counts = {"pass": 10, "fail": 2, "secret": 3, "-token": "300"}
    assert redact_json({**counts, "password": 12345}) == {**counts, "password": "…"}
    assert redact_json({"args": ["--token", "x1", "-n", "x1"], "github_token": "abcdefg1"}) == {
        "args": ["--token", "…", "-n", "x1"],
        "github_token": "…",
    }


ITEM: Any = {"id": 1, "status": "pending"}
PLACES = [*FIELDS, *(text for text, _ in LINES), "password = X", "{'client_secret': 'X'}"]
PROSE = st.text(st.sampled_from("ab \n.,;:()"), max_size=12)


@given(st.from_regex(r"[./$%{*]?[a-z]{2}[0-9][A-Za-z0-9./$%{*]{8,20}", fullmatch=True), PROSE, PROSE)
def test_what_is_hidden_is_hidden_wherever_it_stands_and_once(secret: str, before: str, after: str) -> None:
    for place in PLACES:
        one = secret.replace("/", "") if "@X@" in place else secret  # there a path begins
        text = f"{before} {place.replace('X', one)}\n{after}"
        for left in (redact_text(text), call("look", {"at": text}), item({**ITEM, "content": text})):
            assert one not in left, (place, left)
        assert redact_text(redact_text(text)) == redact_text(text)


WORDS = (
    "the",
    "a",
    "password",
    "token",
    "key",
    "api",
    "secret",
    "is",
    "of",
    "in",
    "5",
    "300",
    "cookie",
    "see",
)


@given(st.lists(st.sampled_from(WORDS)))
def test_words_about_secrets_are_none(words: list[str]) -> None:
    for text in (" ".join(words), ", ".join(words), "; ".join(words)):
        assert redact_text(text) == text


def test_source_code_is_left_whole() -> None:
    source = Path(wakeloop.__file__).parent
    changed = [
        (str(file.relative_to(source)), before.strip())
        for file in sorted(source.rglob("*.py"))
        for text in [file.read_text(encoding="utf-8")]
        for before, after in zip(text.splitlines(), redact_text(text).splitlines(), strict=True)
        if before != after
    ]
    assert changed == [("cli/discovery.py", f'"{key}": "{name}",') for key, name in KEY_PROVIDERS.items()]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "x://a:b",
            "--token ",
            "password: ",
            "password=",
            "f(password=a,",
            "cookie: a=",
            'authorization: x="',
        ),
        *(
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----Ab-c: d ",
            "api key: ",
            "a!",
            "1:",
            "key_a",
        ),
    ],
)
def test_what_looks_for_secrets_takes_no_time(piece: str) -> None:
    for head in ("", "password: ", "-----BEGIN PRIVATE KEY-----\n0123456789abcdef"):
        redact_text(head + piece * (300_000 // len(piece)))


# -- costs -------------------------------------------------------------------------------------------------


def test_a_reply_on_its_way_is_kept_in_bounds_and_cleaned_where_it_is_drawn() -> None:
    screen = Screen()
    for _ in range(2_000):
        screen.token(AIMessageChunk("0123456789\n"))
    assert len(screen.streamed) == SHOWN
    screen.token(AIMessageChunk("a\x1b]8;;http://x"))
    screen.token(AIMessageChunk("\x1b\\b"))
    assert clean(screen.streamed).endswith("\nab")


def test_a_part_of_an_escape_ends_where_the_next_begins() -> None:
    assert clean("a\x9d\x9d8;;x\x07b") == "ab"
    assert clean("\x9d" * 10 + "tail") == "tail"
    assert clean("a\x1b]8;;x\x1b\\b\x1b[31mc\x9b0md") == "abcd"
