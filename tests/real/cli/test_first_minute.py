"""The first minute: what is there, what answers, and a first line before anything slow."""

from __future__ import annotations

import io
import json
import os
import pty
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from chat_server import Reply, Server
from processes import Shell, wakeloop

from wakeloop.checks.models import is_local_address
from wakeloop.cli import discovery, model_trial
from wakeloop.cli.discovery import KEY_PROVIDERS
from wakeloop.cli.store import DatabaseFile

pytestmark = pytest.mark.loopback
CALLED = Reply(calls=[("ready", {"ok": True})])


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without keys and servers; its value is the place of its configuration."""
    for name in KEY_PROVIDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr(discovery, "SERVERS", {"Ollama": free_port()})
    monkeypatch.setenv("WAKELOOP_CONFIG", str(tmp_path / "conf"))
    monkeypatch.setenv("WAKELOOP_DB", str(tmp_path / "threads.sqlite"))
    return tmp_path / "conf" / "config.yaml"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def served(monkeypatch: pytest.MonkeyPatch, serve: Any, *replies: Reply) -> Server:
    """A server on this machine at a usual port."""
    server: Server = serve(*replies)
    monkeypatch.setattr(discovery, "SERVERS", {"Ollama": int(server.url.split(":")[2].split("/")[0])})
    return server


def test_alone_it_says_what_is_there_and_how_to_continue(here: Path) -> None:
    [port] = discovery.SERVERS.values()
    told = (
        "keys: none\n"
        f"server: none on this machine; looked for Ollama ({port})\n"
        f"config: {here} (not found; run wakeloop init at a terminal to create it)\n"
        "To start: set OPENAI_API_KEY, start a server such as Ollama, or set OPENAI_BASE_URL to a server's "
        "address, and try again.\n"
        "Without a model: wakeloop demo\n"
        "All commands: wakeloop --help\n"
    )
    assert wakeloop() == wakeloop("init") == (0, told, "")
    assert not here.exists()


def test_an_invalid_file_is_fixed_first(here: Path) -> None:
    here.parent.mkdir()
    here.write_text("model openai:m\n")
    code, out, err = wakeloop("init")
    assert (code, err) == (0, "")
    assert out.endswith(
        f"config: {here}, line 1: expected a mapping of keys to values.\n"
        "To start: correct that, and try again.\n"
    )


def test_an_address_where_nothing_answers_is_named_first(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    at = f"http://127.0.0.1:{free_port()}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", f"{at}/")
    [port] = discovery.SERVERS.values()
    silent = f"server: none at {at} (OPENAI_BASE_URL) that lists its models"
    nothing = [silent, f"server: none on this machine; looked for Ollama ({port})"]
    advice = f"To start: start the server at {at} or correct OPENAI_BASE_URL, and try again."
    assert wakeloop() == wakeloop("init")
    lines = wakeloop("init")[1].splitlines()
    assert (lines[1:3], lines[4]) == (nothing, advice)
    assert wakeloop("doctor")[1].splitlines()[4:6] == nothing
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://localhost:{port}/v1")  # one of those that are asked anyway
    assert wakeloop("init")[1].splitlines()[1:3] == [
        line.replace(at, f"http://127.0.0.1:{port}/v1") for line in nothing
    ]
    monkeypatch.setenv("OPENAI_BASE_URL", f"{at}?api_key=hunter22")
    other = served(monkeypatch, serve)
    assert wakeloop("init")[1].splitlines()[1:3] == [silent, f"server: Ollama at {other.url}: loopback:1b"]


def test_a_key_is_named_and_never_shown(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    monkeypatch.setenv("GROQ_API_KEY", " ")
    code, out, err = wakeloop("init")
    assert (code, out.splitlines()[0], err) == (0, "keys: OPENAI_API_KEY", "")
    assert out.splitlines()[3] == (
        'To start: wakeloop run "Say what is in this folder" --model openai:gpt-5-mini'
    )
    assert "secret" not in out


def test_the_users_own_address_is_asked_first_and_alone_gets_the_key(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    own, other = serve(), served(monkeypatch, serve)
    monkeypatch.setenv("OPENAI_BASE_URL", own.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    code, out, _ = wakeloop("init")
    assert (code, "secret" in out) == (0, False)
    assert out.splitlines()[1:3] == [
        f"server: OPENAI_BASE_URL at {own.url}: loopback:1b",
        f"server: Ollama at {other.url}: loopback:1b",
    ]
    assert f"--model openai:loopback:1b --base-url {own.url}\n" in out
    assert (own.keys, other.keys) == (["Bearer sk-loopback-secret"], [None])
    monkeypatch.setenv("OPENAI_BASE_URL", own.url.replace("//", "//user:hunter22@"))
    _, out, _ = wakeloop("init")
    assert out.splitlines()[1] == f"server: OPENAI_BASE_URL at {own.url}: loopback:1b"
    assert "--model openai:loopback:1b\n" in out  # the address, with its password, stays in the environment
    assert (own.keys[1:], "hunter22" in out) == (["Basic dXNlcjpodW50ZXIyMg=="], False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:port/v1")
    assert wakeloop("init")[0] == 0
    monkeypatch.setenv("OPENAI_BASE_URL", other.url.replace("127.0.0.1", "localhost"))
    assert "OPENAI_BASE_URL" not in wakeloop("init")[1]
    here.parent.mkdir()
    here.write_text(f"base_url: {own.url}")
    assert wakeloop("init")[1].splitlines()[1] == f"server: config.yaml at {own.url}: loopback:1b"
    assert own.keys[2:] == ["Bearer sk-loopback-secret"]
    here.write_text(f"base_url: http://127.0.0.1:{free_port()}/v1\nmodell: x")  # an invalid file is not asked
    assert wakeloop("init")[1].count("config.yaml") == 1


@pytest.mark.parametrize(
    "told",
    ["[]", "{}", '{"data": 1}', '{"data": [1, {"id": 2}, {"id": "\\u001b[31m"}]}', "<html>", "[" * 100_000],
)
def test_an_invalid_list_of_models_is_no_server_or_has_no_model(told: str) -> None:
    try:
        found = discovery.parse_model_list(json.loads(told))
    except (ValueError, RecursionError):
        found = None
    assert not found


def test_a_strange_servers_names_are_a_word_of_the_shell_and_no_page_of_them(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = ["it's $(touch ran); touch ran", *(f"m{number}" for number in range(1, 31))]
    strange = discovery.ModelServer("Ollama", "http://127.0.0.1:1/v1", models)
    monkeypatch.setattr(discovery, "query_server", lambda *_: strange)
    _, out, _ = wakeloop("init")
    assert out.splitlines()[1].endswith(", m18, m19 and 11 more")
    command = out.splitlines()[3].removeprefix("To start: ")
    assert shlex.split(command)[4:6] == [f"openai:{models[0]}", "--base-url"]


def test_an_endless_server_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "TOTAL_TIMEOUT", 0.3)
    stop = Event()

    def drip(asked: socket.socket) -> None:
        answering, _ = asked.accept()
        with answering, suppress(OSError):
            answering.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not stop.wait(0.05):
                answering.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as server:
        dripping = Thread(target=drip, args=(server,))
        dripping.start()
        began = time.monotonic()
        try:
            assert discovery.query_server("Ollama", f"http://127.0.0.1:{server.getsockname()[1]}/v1") is None
            assert time.monotonic() - began < 5
        finally:
            stop.set()
            dripping.join()


# -- at a terminal ----------------------------------------------------------------------------------------


class Typed(io.StringIO):
    """A person's typing, at what looks like a terminal."""

    def isatty(self) -> bool:
        return True


def start_init(monkeypatch: pytest.MonkeyPatch, *lines: str) -> int:
    from wakeloop.cli.discovery import run_init

    monkeypatch.setattr(sys, "stdin", Typed("".join(f"{line}\n" for line in lines)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    return run_init()


def test_it_asks_and_writes_what_was_chosen(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = served(monkeypatch, serve)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    assert start_init(monkeypatch, "3", "1") == 0
    assert here.read_text() == f'model: "openai:loopback:1b"\nbase_url: "{server.url}"\n'
    out = capsys.readouterr().out
    assert out.splitlines()[2:5] == [
        "  1 loopback:1b (Ollama)",
        "  2 openai, using OPENAI_API_KEY",
        "Which one? [1-2 or a name, Enter for 1] '3' is not one of them.",
    ]
    # nothing after an address: terminals make a link of it and would include a full stop
    rows = (
        out.partition("'3' is not one of them.\n")[2].partition("\nTry: ")[0].split()
    )  # a long path is broken after it
    assert " ".join(rows).endswith(f" Wrote {here}: openai:loopback:1b, {server.url}")
    assert "secret" not in out
    assert start_init(monkeypatch, "Yes", "2", "") == 0
    assert here.read_text() == 'model: "openai:gpt-5-mini"\n'
    assert start_init(monkeypatch, "") == 0  # it is not rewritten without a yes
    assert here.read_text() == 'model: "openai:gpt-5-mini"\n'
    assert [path.name for path in here.parent.iterdir()] == ["config.yaml"]
    assert wakeloop("config")[1].splitlines()[1].split()[:3] == ["model", '"openai:gpt-5-mini"', "global"]


MANY = [
    "text-embedding-3",
    "whisper-1",
    *(f"odd-{n}" for n in range(193)),
    "vendor/Qwen3-8B",
    "llama3.2",
    "gpt-5",
]
TAKEN = [
    ("1", "openai:gpt-5"),
    ("12", "openai:odd-8"),
    ("13", "groq:mine"),
    ("odd-192", "openai:odd-192"),
    ("openai:whisper-1", "openai:whisper-1"),
    ("vendor/Qwen3-8B", "openai:vendor/Qwen3-8B"),
]


@pytest.mark.parametrize(("typed", "model"), TAKEN)
def test_of_many_models_the_usual_ones_are_shown_and_any_is_accepted_by_name(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, model: str
) -> None:
    server = discovery.ModelServer("Ollama", "http://127.0.0.1:1/v1", MANY)
    monkeypatch.setattr(discovery, "query_server", lambda *_: server)
    monkeypatch.setenv("GROQ_API_KEY", "x")
    assert start_init(monkeypatch, "odd-193", typed, "mine") == 0
    shown = ["gpt-5", "vendor/Qwen3-8B", "llama3.2", *(f"odd-{number}" for number in range(9))]
    assert capsys.readouterr().out.splitlines()[2:17] == [
        *(f"  {number} {name} (Ollama)" for number, name in enumerate(shown, 1)),
        "  13 groq, using GROQ_API_KEY",
        "  … and 186 more: type a name",
        "Which one? [1-13 or a name, Enter for 1] 'odd-193' is not one of them.",
    ]
    assert here.read_text().splitlines()[0] == f'model: "{model}"'


def test_an_input_that_ends_writes_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wakeloop.cli.failures import CommandError

    monkeypatch.setenv("GROQ_API_KEY", "x")
    with pytest.raises(CommandError, match=r"^The input ended before an answer; nothing was written\.$"):
        start_init(monkeypatch, "")
    assert not here.exists()


def test_a_single_model_is_taken_by_enter(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start_init(monkeypatch) == 0
    assert not here.exists()
    server = served(monkeypatch, serve)
    assert start_init(monkeypatch, "") == 0
    assert here.read_text() == f'model: "openai:loopback:1b"\nbase_url: "{server.url}"\n'


# -- doctor -----------------------------------------------------------------------------------------------


GOOD = [
    "tools: called as asked",
    "result: accepted, with the call before it",
    "stream: the same works",
]


@pytest.mark.parametrize(
    ("reply", "code", "told"),
    [
        (
            Reply("I am ready."),
            1,
            "tools: not called. It answered 'I am ready.'; the todo list needs tool calls.",
        ),
        (
            Reply(status=400),
            1,
            "tools: failed. The server at HERE rejected the request (400): the server says no.",
        ),
    ],
    ids=["talks", "refuses"],
)
def test_the_doctor_stops_asking_if_the_first_answer_is_wrong(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any, reply: Reply, code: int, told: str
) -> None:
    server = served(monkeypatch, serve, reply)
    got, out, err = wakeloop("doctor")
    lines = out.splitlines()
    assert (got, err) == (code, "")
    assert lines[0].startswith("versions: python 3.")
    assert lines[1:] == [
        f"config: {here} (not found; wakeloop init creates it)",
        f"threads: {os.environ['WAKELOOP_DB']} (not found; the first run creates it)",
        "keys: none",
        f"server: Ollama at {server.url}: loopback:1b",
        f"model: openai:loopback:1b at {server.url}",
        told.replace("HERE", server.url.removesuffix("/v1")),
    ]
    assert len(server.requests) == 1


def test_the_doctor_tries_what_a_run_does(here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any) -> None:
    server = served(monkeypatch, serve, CALLED, Reply("Done."), CALLED, Reply("Done."))
    code, out, err = wakeloop("doctor")
    assert (code, out.splitlines()[-3:], err) == (0, GOOD, "")
    assert [bool(asked.get("stream")) for asked in server.requests] == [False, False, True, True]
    for first, second in (server.requests[:2], server.requests[2:]):
        assert len(first["messages"]) == 1
        assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool"]
        assert first["tools"] == second["tools"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "option"),
    [("config.yaml", []), ("agents/quick.yaml", ["--agent", "quick"])],
    ids=["config", "agent"],
)
def test_a_file_limits_how_long_a_run_waits_for_an_answer(
    here: Path, serve: Any, file: str, option: list[str]
) -> None:
    server = serve(replace(CALLED, delay=3))
    path = here.parent / file
    path.parent.mkdir(parents=True)
    path.write_text(
        f"model: openai:m\nbase_url: {server.url}\nmodel_options: {{timeout: 0.3, max_retries: 1}}\n"
    )
    code, _, err = wakeloop("run", "go", *option)
    at = server.url.removesuffix("/v1")
    assert (code, err.splitlines()[0]) == (1, f"wakeloop: The server at {at} did not answer in time.")
    assert len(server.requests) == 2


@pytest.mark.slow
@pytest.mark.parametrize("silent", [1, 2, 3, 4])
def test_the_doctor_waits_a_minute_for_each_answer(
    here: Path, monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    """The server lists its models, but never answers one of the requests."""
    assert model_trial.ANSWER_TIMEOUT == 60
    monkeypatch.setattr(model_trial, "ANSWER_TIMEOUT", 0.5)
    over = Event()

    def play(number: int, asked: dict[str, Any]) -> Reply:
        if number == silent:
            over.wait(60)
        return CALLED if len(asked["messages"]) == 1 else Reply("Done.")

    server = Server(play)
    monkeypatch.setattr(discovery, "SERVERS", {"Ollama": int(server.url.split(":")[2].split("/")[0])})
    try:
        code, out, err = wakeloop("doctor")
    finally:
        over.set()
        server.close()
    late = "no answer within 0.5 s"
    told = {
        1: [f"tools: {late}"],
        2: [GOOD[0], f"result: {late}", GOOD[2]],
        3: [*GOOD[:2], f"stream: {late}"],
        4: [*GOOD[:2], f"stream: {late}"],
    }
    assert (code, out.splitlines()[6:], err) == (1, told[silent], "")


def refuses(number: int, streamed: bool) -> Any:
    """A server that refuses such a request, whole or streamed."""

    def play(_: int, asked: dict[str, Any]) -> Reply:
        sent = len(asked["messages"])
        if (sent, bool(asked.get("stream"))) == (number, streamed):
            return Reply(status=400)
        return CALLED if sent == 1 else Reply("Done.")

    return play


def loses_the_end(_: int, asked: dict[str, Any]) -> Reply:
    """A server whose streams have no finish reason."""
    if len(asked["messages"]) > 1:
        return Reply("Done.")
    return Reply(calls=CALLED.calls, finish="" if asked.get("stream") else None)


def streams_nothing(_: int, asked: dict[str, Any]) -> Reply:
    """A server that streams nothing at all."""
    reply = Reply("Done.") if len(asked["messages"]) > 1 else CALLED
    return replace(reply, empty=bool(asked.get("stream")))


NO = "failed. The server at HERE rejected the request (400): the server says no."
CUT = "not called. The reply was cut off, or a stream has no finish reason (see the setting finish_reason)."
WRONG = {
    "the history": (refuses(3, streamed=False), 1, f"result: {NO}", GOOD[2]),
    "streams": (refuses(1, streamed=True), 1, GOOD[1], f"stream: {NO}"),
    "a streamed history": (refuses(3, streamed=True), 1, GOOD[1], f"stream: {NO}"),
    "no finish reason": (loses_the_end, 1, GOOD[1], f"stream: {CUT}"),
    "no stream": (
        streams_nothing,
        0,
        GOOD[1],
        "stream: none. A run asks again without one, which costs a request.",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("script", "code", "result", "stream"), WRONG.values(), ids=WRONG)
def test_the_doctor_names_what_the_server_cannot_do(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any, script: Any, code: int, result: str, stream: str
) -> None:
    server = Server(script)
    monkeypatch.setattr(discovery, "SERVERS", {"Ollama": int(server.url.split(":")[2].split("/")[0])})
    got, out, err = wakeloop("doctor")
    if script is loses_the_end:
        here.parent.mkdir()
        here.write_text("finish_reason: optional\n")
        assert wakeloop("doctor")[0] == 0
    server.close()
    told = [line.replace("HERE", server.url.removesuffix("/v1")) for line in (GOOD[0], result, stream)]
    assert (got, out.splitlines()[-3:], err) == (code, told, "")


def wants_thoughts(name: str, think: Callable[[str], Any]) -> Any:
    """A server that refuses a history without its model's thoughts."""

    def play(number: int, asked: dict[str, Any]) -> Reply:
        for message in asked["messages"]:
            if message["role"] == "assistant" and name not in message:
                return Reply(status=400, words=f"{name} is missing in an assistant message")
        reply = Reply("Done.") if asked["messages"][-1]["role"] == "tool" else CALLED
        thought = think(f"Thought {number}.")
        return replace(reply, more={name: thought}, pieces=[{name: piece} for piece in cut(thought)])

    return play


def cut(thought: Any) -> list[Any]:
    """Return a thought in the pieces of a stream:

    OpenRouter gives the index 0 to the pieces of all its parts.
    """
    if isinstance(thought, str):
        return [thought[:4], thought[4:]]
    summary, hidden = thought
    words = summary["summary"]
    pieces = [{**summary, "summary": words[:4], "signature": None}, {**summary, "summary": words[4:]}]
    return [[{**piece, "index": 0}] for piece in (*pieces, hidden)]


def in_details(thought: str) -> list[dict[str, Any]]:
    """Return a thought in OpenRouter's parts."""
    said, hidden = {"type": "reasoning.summary", "summary": thought}, {"type": "reasoning.encrypted"}
    return [{**said, "format": "x-v1", "signature": "S"}, {**hidden, "data": "?", "format": "x-v1"}]


@pytest.mark.parametrize(
    ("name", "think"),
    [("reasoning_content", str), ("reasoning", str), ("reasoning_details", in_details)],
    ids=["content", "reasoning", "details"],
)
def test_c76_thoughts_are_sent_back_as_they_came(
    here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, think: Callable[[str], Any]
) -> None:
    server = Server(wants_thoughts(name, think))
    monkeypatch.setattr(discovery, "SERVERS", {"Ollama": int(server.url.split(":")[2].split("/")[0])})
    code, out, _ = wakeloop("doctor")
    assert (code, out.splitlines()[-3:]) == (0, GOOD)
    (tmp_path / "own.py").write_text(
        "from langchain_core.tools import tool\n\n@tool\n"
        "def ready(ok: bool) -> str:\n    'Tell that you are ready.'\n    return 'Good.'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    options = ["--model", "m", "--base-url", server.url, "--tools", "own:ready", "--thread", "t"]
    for extra in ([], ["--json"]):
        assert wakeloop("run", "go", *options, *extra)[0] == 0
    sent = [m.get(name) for m in server.requests[-1]["messages"] if m["role"] == "assistant"]
    server.close()
    assert sent == [think(f"Thought {number}.") for number in (5, 6, 7)]
    assert {request.get("stream", False) for request in server.requests[:4]} == {False, True}


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (
            ["--model", "m"],
            "wakeloop: The model has no API key: set OPENAI_API_KEY (any value works",
        ),
        (["--model", "groq:m"], "wakeloop: The model 'groq:m' "),
    ],
    ids=["no key", "no package"],
)
def test_a_setting_that_the_doctor_rejects_is_exit_code_2_as_in_a_run(
    here: Path, option: list[str], told: str
) -> None:
    code, _, err = wakeloop("doctor", *option)
    assert (code, wakeloop("run", "x", *option)[0]) == (2, 2)
    assert err.startswith(told)


NOTHING = (
    "The server at HERE has nothing at /chat/completions (404). "
    "Check --base-url: most servers want it to end in /v1."
)
A_PAGE = (
    "The model's reply could not be read (an HTML page came instead), so nothing of it was stored: "
    "try again. If it happens again, check the model's address and any proxy in front of its server."
)
UNKNOWN = (
    "The server at HERE has no such model or address (404): the server says no. Check --model and --base-url."
)
ITSELF = "openai:loopback:1b"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "path", "told"),
    [("m", "", NOTHING), ("m", "/page", A_PAGE), ("m", "/v1", UNKNOWN), (ITSELF, "/v1", UNKNOWN)],
    ids=["no /v1", "a page", "another model", "the model itself"],
)
def test_the_doctor_names_what_exists_instead(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any, model: str, path: str, told: str
) -> None:
    server = serve(Reply(status=404))
    at = server.url.removesuffix("/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    code, out, err = wakeloop(
        "doctor", "--model", model, "--base-url", at.replace("//", "//user:hunter2@") + path
    )
    more = [f"address: a server answers at {at}/v1: try --base-url {at}/v1"]
    if path == "/v1":
        more = ["models there: loopback:1b"] if model == "m" else []
    assert (code, err) == (1, "")
    asked = f"model: {model} at {at}{path}"  # no user and password
    assert out.splitlines()[5:] == [asked, f"tools: failed. {told.replace('HERE', at)}", *more]


def test_the_doctor_reports_a_database(here: Path, tmp_path: Path) -> None:
    code, _, err = wakeloop("doctor", "--db", str(tmp_path))
    told = f"wakeloop: The database {str(tmp_path)!r} is not a file. Name another file with --db.\n"
    assert (code, err) == (2, told)


def test_at_a_terminal_the_doctor_says_what_it_waits_for(
    here: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    """Each finding is shown before the next check begins."""
    served(monkeypatch, serve, CALLED)
    monkeypatch.setattr(discovery, "at_a_terminal", lambda: True)
    code, _, err = wakeloop("doctor")
    assert (code, err.splitlines()) == (
        0,
        [
            "Looking for servers on this machine …",
            "Trying the tools …",
            "Trying the result …",
            "Trying the stream …",
        ],
    )
    order: list[str] = []
    found = discovery.query_server

    def asked(*given: Any) -> Any:
        order.append("asked")
        return found(*given)

    monkeypatch.setattr(discovery, "query_server", asked)
    monkeypatch.setattr(discovery, "show_progress", order.append)
    assert discovery.run_doctor(DatabaseFile.of(None), {}, order.append) == 0
    assert [line.partition(":")[0].partition(" ")[0] for line in order] == [
        *("versions", "config", "threads", "Looking", "keys", "asked", "server", "model", "Trying", "tools"),
        *("Trying", "result", "Trying", "stream"),
    ]


def test_the_doctor_without_a_model(here: Path) -> None:
    code, out, err = wakeloop("doctor")
    assert (code, out.splitlines()[-1], err) == (2, "model: none; wakeloop init finds one", "")
    here.parent.mkdir()
    here.write_text("modell: x\n")
    assert wakeloop("doctor")[0] == 2


# -- keys, and the first line -----------------------------------------------------------------------------


def test_a_server_on_this_machine_needs_no_key(shell: Shell, serve: Any) -> None:
    server = serve(Reply("Here I am."))
    del shell.env["OPENAI_API_KEY"]
    done = shell("run", "x", "--model", "m", "--base-url", server.url)
    assert done.returncode == 0, done.stderr
    assert "Here I am." in done.stdout


@pytest.mark.parametrize("url", ["http://10.0.0.1/v1", "http://localhost.example/v1", "x", "http://[::1"])
def test_one_elsewhere_does(url: str) -> None:
    assert not is_local_address(url)


@pytest.mark.parametrize("url", ["http://localhost:1/v1", "http://127.0.0.2:1/v1", "http://[::1]:1/v1"])
def test_which_addresses_are_this_machine(url: str) -> None:
    assert is_local_address(url)


def first_line(shell: Shell, *args: str, by: str = "launch.announce_start") -> tuple[str, str]:
    """Return what a terminal shows first, and what had been imported until then."""
    module, name = by.rsplit(".", 1)
    code = (
        "import sys\n"
        f"import wakeloop.cli.{module} as start\n"
        f"before = start.{name}\n"
        "def begun(*given):\n"
        "    before(*given)\n"
        "    slow = {'langgraph', 'langchain_core', 'openai', 'pydantic_settings', 'rich'}\n"
        "    print(sorted(slow & set(sys.modules)), flush=True)\n"
        "    raise SystemExit(0)\n"
        f"start.{name} = begun\n"
        "from wakeloop.cli.commands.app import main\n"
        "main()\n"
    )
    ours, theirs = pty.openpty()
    env = {key: value for key, value in shell.env.items() if not key.startswith("COVERAGE_")}
    command = [sys.executable, "-c", code, *args]
    with subprocess.Popen(command, env=env, cwd=shell.folder, stderr=theirs, stdout=subprocess.PIPE) as ran:
        out, _ = ran.communicate(timeout=60)
        os.close(theirs)
        told = os.read(ours, 1000).decode()
        os.close(ours)
    return told, out.decode()


@pytest.mark.slow
@pytest.mark.parametrize("command", [["run", "x"], ["chat"]], ids=lambda one: one[0])
def test_the_first_line_comes_before_anything_slow(shell: Shell, command: list[str]) -> None:
    told, imported = first_line(shell, *command, "--model", "m", "--thread", "mine")
    assert (told, imported) == ("Starting m on thread mine …\r\n", "[]\n")


@pytest.mark.parametrize(("option", "word"), [("--estimate", "Estimating"), ("--seeds=1", "Starting")])
def test_the_same_in_the_bench(shell: Shell, option: str, word: str) -> None:
    told, imported = first_line(shell, "bench", option, by="commands.bench_commands.write_text")
    assert (told, imported) == (f"{word} the study quick …\r\n", "[]\n")


def test_an_interrupt_before_the_run_is_reported(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        """Stands in for a module that is being imported."""

        @property
        def run_thread(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "wakeloop.cli.run_thread", Slow())  # type: ignore[arg-type]
    told = wakeloop("run", "x", "--model", "m")
    assert told == (130, "", "Stopped before the run started; nothing is stored.\n")


def test_the_package_is_the_command(shell: Shell) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "wakeloop", "--version"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("wakeloop ")
