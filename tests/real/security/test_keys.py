"""Keys stay out of checkpoints, events, exceptions and reports."""

import asyncio
import json
import logging
import sqlite3
import traceback
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from loopback import Loopback
from openai import APIError, APIStatusError
from pydantic import SecretStr
from tracing import OPENINFERENCE, OTEL, LangSmith, instrumented

from wakeloop import ModelSetupError, VerifyError, WakeloopError, create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import format_error
from wakeloop.config.levels import Level
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.model.chat_models import create_model, create_openai_model
from wakeloop.model.redaction import collect_secrets, redact_error
from wakeloop.server import EnvironmentModel
from wakeloop.testing import ScriptedModel, calls, says

KEY = "sk-proj-0123456789abcdef"
HEADER = "header-9876543210"
PASSWORD = "pass%40word-555"
PLAIN = "pass@word-555"
BASIC = b64encode(f"me:{PLAIN}".encode()).decode()
ALL = (KEY, HEADER, PASSWORD, PLAIN, BASIC)
THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def echo(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that answers with all the headers it got, and with the test's status."""
    status: int = request.param

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            return

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            told = " ".join([*self.headers.values(), KEY, HEADER, PASSWORD, PLAIN, BASIC, self.path])
            body = json.dumps({"error": {"message": f"Refused: {told}", "param": told, "code": [told]}})
            data = body.encode() if status >= 400 else f"{{ broken {told}".encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = Loopback(Handler)
    yield f"http://me:{PASSWORD}@127.0.0.1:{server.server_port}/v1"
    server.close()


def model(url: str, **more: Any) -> ChatOpenAI:
    """A model that carries every kind of key."""
    headers = {"X-Api-Key": HEADER, "Authorization": f"Bearer {KEY}"}
    return ChatOpenAI(
        model="m", api_key=SecretStr(KEY), base_url=url, default_headers=headers, max_retries=0, **more
    )


def with_middleware(model: Any, checkpointer: Any) -> Any:
    """Return an agent of `create_agent` with the middleware."""
    return create_agent(model, middleware=[WakeLoopMiddleware()], checkpointer=checkpointer)


def run(door: str, path: Path, url: str, make: Any = create_todo_agent, **more: Any) -> Exception:
    """Call the agent through one door over SQLite, and return the error that reached the caller."""
    given: Any = {"messages": [("user", "go")]}
    if door in ("invoke", "stream"):
        with SqliteSaver.from_conn_string(str(path)) as saver:
            agent = make(model(url, **more), checkpointer=saver)
            with pytest.raises(Exception) as raised:  # noqa: PT011 - which one is the test's
                agent.invoke(given, THREAD) if door == "invoke" else list(agent.stream(given, THREAD))
            return raised.value

    async def run_async() -> Exception:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            agent = make(model(url, **more), checkpointer=saver)
            with pytest.raises(Exception) as raised:  # noqa: PT011, PT012
                if door == "ainvoke":
                    await agent.ainvoke(given, THREAD)
                else:
                    [part async for part in agent.astream(given, THREAD)]
            return raised.value

    return asyncio.run(run_async())


def database_bytes(path: Path) -> bytes:
    """Return every byte that SQLite stores, including the files next to the database."""
    with sqlite3.connect(path) as connection:
        rows = [
            row for table in ("checkpoints", "writes") for row in connection.execute(f"SELECT * FROM {table}")
        ]
    connection.close()
    files = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    return files + repr(rows).encode()


def secrets_in(text: str) -> list[str]:
    """Return the secrets in a string."""
    return [secret for secret in ALL if secret in text]


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.covering("door", "echo")
@pytest.mark.parametrize("door", ["invoke", "stream", "ainvoke", "astream"])
@pytest.mark.parametrize("echo", [400, 401, 404, 429, 500], indirect=True)
def test_a_server_that_echoes_keys_gets_none_into_a_checkpoint_or_an_exception(
    echo: str, door: str, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    status = request.node.callspec.params["echo"]
    error = run(door, tmp_path / "db", echo)
    assert isinstance(error, APIStatusError)
    assert (error.status_code, error.response.status_code) == (status, status)
    assert "Refused: " in str(error)
    whole = "".join(traceback.format_exception(error))
    assert secrets_in("".join([str(error), repr(error), error.message, json.dumps(error.body), whole])) == []
    assert secrets_in(format_error(error)) == []
    kept = database_bytes(tmp_path / "db")
    assert b"__error__" in kept
    assert [secret for secret in ALL if secret.encode() in kept] == []
    lines = [one.getMessage() for one in caplog.records if not one.name.startswith("httpx")]  # see the docs
    assert secrets_in(" ".join(lines)) == []


@pytest.mark.loopback
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("echo", [200], indirect=True)
def test_a_reply_that_is_not_json_reveals_no_key(echo: str, streaming: bool, tmp_path: Path) -> None:
    error = run("invoke", tmp_path / "db", echo, streaming=streaming)
    assert secrets_in("".join(traceback.format_exception(error)) + repr(error)) == []
    assert [secret for secret in ALL if secret.encode() in database_bytes(tmp_path / "db")] == []


def test_what_a_model_carries_is_found() -> None:
    found = collect_secrets(model(f"http://me:{PASSWORD}@h/v1?api_key={HEADER}x").bind_tools([]))
    assert {KEY, HEADER, PASSWORD, PLAIN, BASIC, f"{HEADER}x", f"Bearer {KEY}"} == set(found)
    assert found == sorted(found, key=len, reverse=True)
    assert collect_secrets(ScriptedModel([])) == []
    assert collect_secrets(ChatOpenAI(model="m", api_key=SecretStr("short"))) == []
    assert PLAIN in collect_secrets({"api_key": f"{PLAIN}\r"})  # an error shows its end as two characters


@pytest.mark.parametrize(
    ("given", "sent"), [(f"{KEY}\r\n", KEY), ("schlüssel", None), ("sk-1\nsk-2", None), (" \n", None)]
)
def test_a_key_that_no_header_accepts(monkeypatch: pytest.MonkeyPatch, given: str, sent: str | None) -> None:
    """The line break at the end of a file is removed."""
    monkeypatch.setenv("OPENAI_API_KEY", given)
    if sent is None:
        with pytest.raises(ModelSetupError, match="OPENAI_API_KEY has a character that no key has"):
            create_model("m")
    else:
        assert create_model("m").openai_api_key.get_secret_value() == sent


def test_the_servers_model_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:m")
    by_environment = EnvironmentModel().bind_tools([])
    assert collect_secrets(by_environment) == []
    assert by_environment._real is not None
    assert collect_secrets(by_environment) == [KEY]
    assert KEY not in repr(by_environment)


class OfItsOwnError(Exception):
    """An error whose words cannot be changed."""

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return f"bad {KEY}"


def test_words_that_cannot_be_changed_are_replaced_by_another_error() -> None:
    new = redact_error(OfItsOwnError(), [KEY])
    assert isinstance(new, WakeloopError)
    assert str(new) == "OfItsOwnError: bad …"
    error = ValueError(f"of {KEY}")
    error.__cause__ = OfItsOwnError()
    kept = redact_error(error, [KEY])
    assert kept is error
    assert secrets_in("".join(traceback.format_exception(kept))) == []
    assert str(kept) == "of …"


def test_an_innocent_error_is_left_as_it_is() -> None:
    cause = KeyError("a", 5)
    error = OSError(2, "No such file", "x")
    error.__cause__ = cause
    assert redact_error(error, [KEY]) is error
    assert (error.args, error.__cause__, cause.args) == ((2, "No such file"), cause, ("a", 5))


def test_errors_in_a_cycle_and_in_groups_are_all_checked() -> None:
    first, second = ValueError(KEY), ValueError(f"{KEY}!")
    first.__context__, second.__context__ = second, first
    group = ExceptionGroup("all", [first])
    assert redact_error(group, [KEY]) is group
    assert (first.args, second.args) == (("…",), ("…!",))


class Carrier(ScriptedModel):
    """A scripted model with a key."""

    key: SecretStr = SecretStr(KEY)


def test_a_failing_tool_and_verifier_reveal_no_key() -> None:
    @tool
    def fetch() -> str:
        """Fetch."""
        raise ValueError(f"401 for http://me:{PASSWORD}@h/ with {KEY}")

    def verify(todo: Any, state: Any) -> str | None:
        raise ValueError(f"judge: {KEY}")

    write = calls(("todo_write", {"items": ["a"]}), ("fetch", {}))
    done = calls(("todo_update", {"id": 1, "status": "done"}))
    agent = create_todo_agent(Carrier([write, done]), [fetch], verify=verify, checkpointer=InMemorySaver())
    with pytest.raises(VerifyError, match="verify raised ValueError: judge: …") as raised:
        agent.invoke({"messages": [("user", "go")]}, THREAD)
    assert secrets_in("".join(traceback.format_exception(raised.value))) == []
    assert secrets_in(repr(agent.get_state(THREAD))) == []


def test_a_recipe_and_a_models_failure_keep_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"http://me:{PASSWORD}@h/v1?api_key={KEY}&v=2"
    level = Level("base", "--base-url", {"base_url": url})
    written = AgentSpec(model="m", base_url=url, levels=[level]).to_json()
    assert secrets_in(written) == []
    assert AgentSpec.from_json(written).base_url == "http://h/v1?v=2"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for make in (lambda: create_openai_model("m", base_url=[url]), lambda: create_model(f"nowhere:{KEY}")):
        with pytest.raises(ModelSetupError) as raised:
            make()
        whole = "".join(traceback.format_exception(raised.value))
        assert f"api_key={KEY}" not in whole
        assert PASSWORD not in whole


def test_an_error_of_the_api_without_a_status_is_cleaned_in_all_its_parts() -> None:
    import httpx

    error = APIError(f"m {KEY}", httpx.Request("POST", "http://h"), body={"a": [{"b": KEY}]})
    assert redact_error(error, [KEY]) is error
    assert (error.message, str(error), error.body) == ("m …", "m …", {"a": [{"b": "…"}]})


@pytest.mark.loopback
@pytest.mark.covering("door", "echo")
@pytest.mark.parametrize("door", ["invoke", "astream"])
@pytest.mark.parametrize("echo", [200, 401], indirect=True)
def test_no_tracer_sees_a_key_of_the_model(
    echo: str, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in its construction, nor in its requests, nor in the server's words."""
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only")
    more = {"extra_headers": {"X-Api-Key": HEADER, "Authorization": f"Bearer {KEY}"}}
    with instrumented(OPENINFERENCE) as ours, instrumented(OTEL) as theirs, LangSmith().listening() as server:
        run(door, tmp_path / "threads.db", echo, model_kwargs=more)
    for heard in (*(span.to_json() for span in (*ours.all, *theirs.all)), *server.sent):
        assert secrets_in(heard) == []
    assert [span.name for span in theirs.all] == ["invoke_agent wakeloop", "chat m"]
    assert [run["name"] for run in server.runs.values() if run.get("error")] == [
        "wakeloop",
        "call_model",
        "ChatOpenAI",
    ]


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.parametrize(
    ("echo", "door", "streaming", "requests"),
    [
        *((401, "invoke", False, 1), (401, "ainvoke", True, 1), (401, "stream", True, 1)),
        (200, "astream", True, 2),  # a body that is not a stream is asked for once more, whole
    ],
    indirect=["echo"],
)
@pytest.mark.parametrize("heard", [True, False])
def test_nor_does_one_under_create_agent(
    echo: str, door: str, streaming: bool, requests: int, heard: bool, tmp_path: Path
) -> None:
    """No checkpoint or exception has one either, whoever listens."""
    path = tmp_path / "threads.db"
    if heard:
        with (
            instrumented(OPENINFERENCE) as ours,
            instrumented(OTEL) as theirs,
            LangSmith().listening() as server,
        ):
            error = run(door, path, echo, with_middleware, streaming=streaming)
        for text in (*(span.to_json() for span in (*ours.all, *theirs.all)), *server.sent):
            assert secrets_in(text) == []
        failed = [run["name"] for run in server.runs.values() if run.get("error")]
        hook = f"WakeLoopMiddleware.{'a' if door[0] == 'a' else ''}wrap_model_call"
        assert failed == ["LangGraph", "model", hook, *["ChatOpenAI"] * requests]
    else:
        error = run(door, path, echo, with_middleware, streaming=streaming)
    assert secrets_in("".join(traceback.format_exception(error))) == []
    assert secrets_in(database_bytes(path).decode(errors="replace")) == []


@pytest.mark.loopback
@pytest.mark.parametrize("door", ["sync", "async"])
def test_no_tracer_sees_a_key_in_a_tools_exception(door: str) -> None:
    @tool
    def fetch() -> str:
        """Fetch."""
        raise RuntimeError(f"401 for {KEY}")

    scripted = Carrier([calls(("fetch", {})), says("No.")])
    with instrumented(OPENINFERENCE) as spans, LangSmith().listening() as server:
        agent = create_todo_agent(scripted, [fetch])
        given: Any = {"messages": [("user", "go")]}
        agent.invoke(given) if door == "sync" else asyncio.run(agent.ainvoke(given))
    assert [
        secrets_in(heard)
        for heard in (*(span.to_json() for span in spans.all), *server.sent)
        if secrets_in(heard)
    ] == []
    assert [run["name"] for run in server.runs.values() if run.get("error")] == ["fetch"]
