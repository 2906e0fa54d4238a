"""Sessions with real MCP servers: over stdio and HTTP, results as text, crashes, endings."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import anyio
import mcp
import pytest
from langchain_core.tools import ToolException, tool
from loopback import Loopback
from processes import is_gone

from wakeloop.cli import mcp_servers, mcp_tools
from wakeloop.cli.agent import TOOL_CLASH_FIX, merge_tools
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.external_tools import ExternalTools
from wakeloop.cli.failures import FAILED, USAGE, CommandError
from wakeloop.cli.mcp_config import McpServer

pytestmark = pytest.mark.loopback

TOKEN = "tok-1234567"
PROGRAM = [sys.executable, str(Path(__file__).with_name("tool_server.py"))]
LOCAL = {"command": PROGRAM[0], "args": PROGRAM[1:], "env": {"THE_TOKEN": "${MY_TOKEN}"}}


class Held:
    """A file of servers in a folder, and the tools made from it."""

    def __init__(self, folder: Path) -> None:
        self.outside, self.folder = ExternalTools(), folder
        self.tools: dict[str, Any] = {}

    def start(self, **servers: Any) -> list[str]:
        path = self.folder / "servers.json"
        path.write_text(json.dumps({"mcpServers": servers}))
        groups = self.outside.tool_groups(AgentSpec(mcp=str(path), root=str(self.folder)), ask=False)
        self.tools = {one.name: one for _, tools in groups for one in tools}
        return [owner for owner, _ in groups]

    def __call__(self, name: str, /, **arguments: Any) -> str:
        """Return the result of a call, or the words of its error."""
        try:
            result: str = self.tools[name].invoke(arguments)
        except ToolException as error:
            return f"error: {error}"
        return result


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    monkeypatch.setenv("NOT_ITS_OWN", "x")
    found = Held(tmp_path)
    with found.outside:
        yield found


@pytest.mark.slow
def test_over_stdio_one_session_serves_all_calls(held: Held) -> None:
    assert held.start(local=LOCAL) == ["the MCP server 'local'"]
    first = held("pid")
    assert held("add", a=1, b=2) == "3"
    assert held("echo", config="these are", run_manager="the model's") == "these are the model's"
    assert held("dotted_name_one") == "dotted"
    assert held("blocks").splitlines() == [
        "first",
        "[image, image/png, 4 bytes: not shown]",
        "[audio, audio/wav, 5 bytes: not shown]",
        "[resource file:///notes.bin, application/x-notes: not read]",
        "[resource file:///notes.bin: not read]",
        "inside",
        "[resource file:///notes.bin, application/x-notes, 5 bytes: not shown]",
    ]
    assert held("nothing") == "(no content)"
    assert held("shapes") == '{"ä": [1]}'
    assert held("long", count=100_007).split("\n") == ["a" * 50_000, "[7 characters left out]", "a" * 50_000]
    assert held("fail", words="no") == "error: Error executing tool fail: no"
    assert held("surroundings", name="") == str(held.folder)
    assert held("surroundings", name="NOT_ITS_OWN") == "not set"
    assert held("surroundings", name="THE_TOKEN") == "…"  # it has it, and it is not stored
    assert (
        held("fail", words="the token $THE_TOKEN is old")
        == "error: Error executing tool fail: the token … is old"
    )
    assert held("pid") == first
    held.outside.close()
    assert is_gone(int(first))


@pytest.mark.slow
def test_a_server_that_dies_in_a_call_is_restarted_by_the_next(held: Held) -> None:
    held.start(local=LOCAL)
    first = held("pid")
    assert held("die") == (
        "error: the MCP server 'local' ended during this call, which may have taken effect. The server's "
        "state is lost; the next call restarts it. Its last output: out of memory"
    )
    assert is_gone(int(first))
    second = held("pid")
    assert second != first
    os.kill(int(second), 9)  # nobody is calling it
    assert is_gone(int(second))
    assert held("pid").startswith("error: the MCP server 'local' ended")
    (held.folder / "servers.json").unlink()  # a restart uses what it was first started with
    assert held("pid").isdigit()


@pytest.mark.slow
def test_a_stop_ends_a_call_at_once_and_an_unanswered_one_ends_by_itself(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.start(local=LOCAL)
    with monkeypatch.context() as patched:
        patched.setattr(mcp_servers, "CALL_TIMEOUT", 0.5)
        assert held("slow", seconds=60) == "error: the MCP server 'local': it did not answer within 0.5 s"
    assert held("add", a=1, b=2) == "3"  # it is still the same session
    Timer(0.2, held.outside.stop.set).start()
    begun = time.monotonic()
    assert held("slow", seconds=60) == "error: The run is being stopped, so this call was cancelled."
    assert time.monotonic() - begun < 5


@pytest.fixture
def over_http(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], tuple[str, subprocess.Popen[bytes]]]]:
    """Start the server on a port, or the same one again after it has ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begun: list[subprocess.Popen[bytes]] = []

    def start() -> tuple[str, subprocess.Popen[bytes]]:
        begun.append(subprocess.Popen([*PROGRAM, str(port)]))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        return f"http://127.0.0.1:{port}/mcp", begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_over_http_and_a_restarted_server(held: Held, over_http) -> None:
    url, process = over_http()
    held.start(far={"type": "http", "url": url, "headers": {"X-Api-Key": "${MY_TOKEN}"}})
    assert held("add", a=1, b=2) == "3"
    assert held("header", name="x-api-key") == "…"
    assert held("fail", words=TOKEN) == "error: Error executing tool fail: …"
    assert held("pid") == str(process.pid)
    process.kill()
    process.wait()
    assert held("pid").startswith("error: the MCP server 'far' ")
    why = f"{url} cannot be reached: All connection attempts failed."
    assert held("pid") == f"error: The MCP server 'far' cannot be used: {why}"
    _, process = over_http()
    assert held("pid") == str(process.pid)
    process.kill()
    process.wait()
    _, process = over_http()  # nobody calls meanwhile: the new one does not know the session
    assert held("pid").startswith("error: the MCP server 'far' ended during this call")
    assert held("pid") == str(process.pid)


def sleeping(held: Held) -> dict[str, Any]:
    code = f"import os, time; open({str(held.folder / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    return {"command": sys.executable, "args": ["-c", code]}


def ending(held: Held) -> dict[str, Any]:
    words = "raise SystemExit('no licence for ' + __import__('os').environ['THE_TOKEN'])"
    return {**LOCAL, "args": ["-c", words]}


class Odd(BaseHTTPRequestHandler):
    """Answers everything with the same words, which are not of the protocol."""

    code, kind, said = 200, "text/html", b"<html>"

    def do_POST(self) -> None:
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(self.said)))
        if self.kind:
            self.send_header("Content-Type", self.kind)
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, *args: object) -> None:
        return


def odd(code: int, kind: str, said: bytes = b"", user: str = "") -> Callable[[Held], dict[str, Any]]:
    handler = type("Saying", (Odd,), {"code": code, "kind": kind, "said": said})
    return lambda _: {"url": f"http://{user}127.0.0.1:{Loopback(handler).server_port}/mcp"}


SILENT = odd(202, "")
WAITS = "" if hasattr(mcp, "MCPError") else ", and then nothing within 1 s"  # version 2 does not wait


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "says"),
    [
        (
            lambda held: {"command": "no-such-command"},
            "the command 'no-such-command' or the folder '.' does not exist.",
        ),
        (
            lambda held: {**LOCAL, "cwd": "nowhere"},
            f"the command {sys.executable!r} or the folder 'nowhere' does not exist.",
        ),
        (lambda held: {"command": str(held.folder)}, "'{folder}' cannot be started: Permission denied."),
        (ending, "it ended right after its start. Its last output: no licence for …"),
        (sleeping, "it did not answer within 1 s."),
        (odd(401, "", user=f"me:{TOKEN}@"), "http://127.0.0.1:{port}/mcp answered 401."),
        (odd(404, ""), "http://127.0.0.1:{port}/mcp answered 404."),
        (odd(500, "text/plain", b"no"), "http://127.0.0.1:{port}/mcp answered 500 with text/plain."),
        (
            odd(200, "text/html; charset=utf-8", b"<html>"),
            "http://127.0.0.1:{port}/mcp answered 200 with text/html, which is not MCP.",
        ),
        (
            odd(200, "application/json", b'{"ok": true}'),
            "http://127.0.0.1:{port}/mcp answered 200 with application/json, which is not MCP.",
        ),
        (
            odd(200, "application/json", b"<"),
            "http://127.0.0.1:{port}/mcp answered 200 with application/json, which is not MCP.",
        ),
        (SILENT, "http://127.0.0.1:{port}/mcp answered 202" + WAITS + "."),
    ],
    ids=[
        *("no command", "no folder", "no program", "ends", "sleeps", "refuses", "elsewhere"),
        *("fails", "a page", "other JSON", "no JSON", "silent"),
    ],
)
def test_a_server_that_does_not_start_is_one_sentence(
    held: Held, monkeypatch: pytest.MonkeyPatch, server: Callable[[Held], dict[str, Any]], says: str
) -> None:
    if server in (sleeping, SILENT):
        monkeypatch.setattr(mcp_servers, "START_TIMEOUT", 1.0)
    given = server(held)
    port = given.get("url", "").rpartition(":")[2].partition("/")[0]
    with pytest.raises(CommandError) as refused:
        held.start(one=given)
    told = says.format(folder=held.folder, port=port)
    assert (str(refused.value), refused.value.code) == (f"The MCP server 'one' cannot be used: {told}", USAGE)
    if server is sleeping:
        assert is_gone(int((held.folder / "pid").read_text()))


@pytest.mark.parametrize(
    "error",
    [anyio.BrokenResourceError(), anyio.ClosedResourceError(), BrokenPipeError(32, "Broken pipe")],
    ids=repr,
)
def test_a_server_that_ends_before_it_was_asked(error: Exception) -> None:
    """A write notices its end before a read does, and is reported in the same words."""
    local = McpServer("one", command="python")
    assert (
        mcp_servers.explain_failure(local, ExceptionGroup("", [error]), "")
        == "it ended right after its start."
    )


def bare(tool: dict[str, Any], answer: dict[str, Any] | str | None = None) -> dict[str, Any]:
    """Return a server with one given tool and answer."""
    program = str(Path(__file__).with_name("bare_server.py"))
    return {**LOCAL, "args": [program, json.dumps({**GO, **tool}), json.dumps(answer)]}


GO: dict[str, Any] = {"name": "go", "inputSchema": {"type": "object", "properties": {}}}
DOUBLED = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(28)} | {"d28": {}}
SLOW = {"type": "object", "properties": {"n": {"type": "string", "pattern": "^(a+)+$"}}}


@pytest.mark.parametrize(
    ("tool", "answer", "says"),
    [
        (
            {},
            {"result": {"content": "no"}},
            "its answer could not be read: content: Input should be a valid list",
        ),
        ({}, {"error": {"code": -32000, "message": f"busy with {TOKEN}"}}, "busy with …"),
    ],
    ids=["no result", "its own error"],
)
def test_an_invalid_answer_is_the_servers_fault_and_not_its_end(
    held: Held, tool: dict[str, Any], answer: dict[str, Any], says: str
) -> None:
    held.start(bare=bare(tool, answer))
    session = held.tools["go"].server.session
    assert held("go") == f"error: the MCP server 'bare': {says}"
    assert held.tools["go"].server.session is session


def as_line(text: str) -> str:
    """Return the answer with this text as JSON."""
    return '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": ' + text + "}]}}"


UNREADABLE = {
    "half an emoji": as_line('"\\ud83d"'),
    "5,000 levels": as_line("[" * 5_000 + "]" * 5_000),
    "an invalid number": as_line("NaN1"),
    "cut in the middle": as_line('"a')[:-9],
}
UNFIT = {  # JSON, but not an answer of the protocol
    "a result in words": '{"jsonrpc": "2.0", "id": ID, "result": "ok"}',
    "no result": '{"jsonrpc": "2.0", "id": ID}',
    "an error without words": '{"jsonrpc": "2.0", "id": ID, "error": {"code": 1}}',
    "a list of answers": '[{"jsonrpc": "2.0", "id": ID, "result": {"content": []}}]',
    "no version": '{"id": ID, "result": {"content": []}}',
}


@pytest.mark.parametrize("line", [*UNREADABLE.values(), *UNFIT.values()], ids=[*UNREADABLE, *UNFIT])
def test_c95_an_answer_that_cannot_be_parsed_ends_its_call_at_once(held: Held, line: str) -> None:
    held.start(bare=bare({}, line))
    session = held.tools["go"].server.session
    for _ in range(2):
        said = held("go")
        assert said.startswith("error: the MCP server 'bare': its answer could not be read: ")
        assert ("Invalid JSON" in said) == (line in UNREADABLE.values())
    assert held.tools["go"].server.session is session


class Until(BaseHTTPRequestHandler):
    """Speaks MCP until a tool is called, and then says something else."""

    code, kind, said = 200, "application/json", b""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = {"capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": "1"}}
        if asked["method"] == "initialize":
            self.answer(asked, {**server, "protocolVersion": asked["params"]["protocolVersion"]})
        elif asked["method"] == "tools/list":
            self.answer(asked, {"tools": [GO]})
        elif asked["method"] == "tools/call":
            self.say(self.code, self.kind, self.said)
        else:
            self.say(202, "application/json", b"")

    def answer(self, asked: dict[str, Any], result: dict[str, Any]) -> None:
        said = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result})
        self.say(200, "application/json", said.encode())

    def say(self, code: int, kind: str, said: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *args: object) -> None:
        return


@pytest.mark.skipif(not hasattr(mcp, "MCPError"), reason="version 1 has other words")
@pytest.mark.parametrize(
    ("code", "kind", "said", "says"),
    [
        (200, "application/json", b"{", "its answer could not be read: Invalid JSON: EOF while parsing"),
        (200, "application/json", b'{"ok": true}', "its answer could not be read: it is not MCP"),
        (200, "text/html", b"<html>", "its answer could not be read: Unexpected content type: text/html"),
        (200, "text/event-stream", b"data: {\n\n", "its answer could not be read: Invalid JSON: EOF"),
        (502, "text/html", b"<html>", "it answered 502 with text/html"),
    ],
)
def test_c95_an_http_answer_that_cannot_be_read(
    held: Held, code: int, kind: str, said: bytes, says: str
) -> None:
    handler = type("Saying", (Until,), {"code": code, "kind": kind, "said": said})
    held.start(far={"url": f"http://127.0.0.1:{Loopback(handler).server_port}/mcp"})
    told = held("go")
    assert told.startswith(f"error: the MCP server 'far': {says}")
    assert "\n" not in told


def test_c96_a_result_is_not_rejected_by_the_schema_that_announced_it(held: Held) -> None:
    slow = {"content": [], "structuredContent": {"n": "a" * 40 + "!"}}
    held.start(bare=bare({"outputSchema": SLOW}, {"result": slow}))
    assert json.loads(held("go")) == slow["structuredContent"]


def test_c95_an_invalid_byte_and_a_printed_line_spoil_no_answer(held: Held) -> None:
    held.start(bare=bare({}, "{a line that somebody printed}\n" + as_line('"caf\xe9"')))
    assert held("go") == "caf\ufffd"


NAMES = [
    # the tools of servers, and the names under which a model sees them
    ([["notes.add", "notes_add"]], [["notes_add_", "notes_add"]]),
    ([["notes/add", "notes.add"]], [["notes_add_", "notes_add_"]]),
    ([["notes.add"]], [["notes_add"]]),
    ([["create_issue"], ["create_issue", "close"]], [["create_issue"], ["create_issue_", "close"]]),
    ([["検索", "作成"]], [["tool_", "tool_"]]),
    ([["x" * 64, "x" * 64 + "y"]], [["x" * 64, "x" * 59 + "_"]]),
]


@pytest.mark.parametrize(("given", "names"), NAMES)
def test_c79_tools_whose_names_would_collide_get_a_stable_suffix(
    given: list[list[str]], names: list[list[str]]
) -> None:
    servers: list[Any] = []
    for server, tools in zip("ab", given, strict=False):
        remotes = [SimpleNamespace(name=name) for name in tools]
        servers.append(SimpleNamespace(server=SimpleNamespace(name=server), tools=remotes))
    chosen = mcp_tools.choose_tool_names(servers)
    flat = [name for one in chosen for name in one]
    assert len(set(flat)) == len(flat)
    assert max(map(len, flat)) <= 64
    bare_names = [[re.sub(r"_[0-9a-f]{4}$", "_", name) for name in one] for one in chosen]
    assert bare_names == names
    assert mcp_tools.choose_tool_names(servers[:1]) == chosen[:1]


def test_c79_names_in_another_script_never_collide() -> None:
    """Short suffixes of a hundred names occasionally collide."""
    for first in range(0x4E00, 0x4E00 + 4000, 100):
        tools = [SimpleNamespace(name=chr(first + number) * 3) for number in range(100)]
        server: Any = SimpleNamespace(server=SimpleNamespace(name="notes"), tools=tools)
        (names,) = mcp_tools.choose_tool_names([server])
        assert len(set(names)) == 100
    (real,) = mcp_tools.choose_tool_names([server])
    tools.append(SimpleNamespace(name=real[0]))  # a tool that really has another one's name
    assert len(set(mcp_tools.choose_tool_names([server])[0])) == 101


def test_c79_a_tool_listed_twice_counts_once(held: Held) -> None:
    held.start(bare=bare({"again": 2}, {"result": {"content": []}}))
    assert [*held.tools] == ["go"]


def test_c79_two_servers_with_one_tool_are_both_usable(held: Held) -> None:
    answers = [{"result": {"content": [{"type": "text", "text": text}]}} for text in ("one", "two")]
    held.start(first=bare({}, answers[0]), second=bare({}, answers[1]))
    plain, suffixed = held.tools
    assert (held(plain), held(suffixed)) == ("one", "two")
    assert (plain, suffixed[:3], len(suffixed)) == ("go", "go_", 7)


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ({"name": ""}, "it has a tool without a name."),
        (
            {"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}}},
            "the arguments of its tool 'go' cannot be read: \"Reference '#/$defs/no' not found.\".",
        ),
        (
            {
                "inputSchema": {
                    **GO["inputSchema"],
                    "properties": {"a": {"$ref": "#/$defs/d0"}},
                    "$defs": DOUBLED,
                }
            },
            "the arguments of its tool 'go' describe 1,879,048,191 values, more than 10,000.",
        ),
    ],
    ids=["no name", "no schema", "doubled"],
)
def test_c96_a_tool_that_cannot_be_shown_to_a_model_is_one_sentence(
    held: Held, tool: dict[str, Any], says: str
) -> None:
    with pytest.raises(CommandError) as refused:
        held.start(bare=bare(tool))
    assert str(refused.value) == f"The MCP server 'bare' cannot be used: {says}"
    assert refused.value.code == USAGE


def test_c96_a_list_of_tools_that_does_not_fit_the_protocol_is_one_sentence(held: Held) -> None:
    with pytest.raises(CommandError) as refused:
        held.start(bare=bare({"inputSchema": True}))
    said = "The MCP server 'bare' cannot be used: its answer could not be read: tools.0.inputSchema"
    assert str(refused.value).startswith(said)
    assert "errors.pydantic.dev" not in str(refused.value)


def test_if_one_of_several_servers_does_not_start_the_others_are_stopped(held: Held) -> None:
    begun = {**LOCAL, "env": {"PID": str(held.folder / "pid")}}
    with pytest.raises(CommandError, match="The MCP server 'bad' cannot be used: "):
        held.start(good=begun, bad={"command": "no-such-command"})
    assert is_gone(int((held.folder / "pid").read_text()))


@pytest.mark.slow
def test_a_server_that_does_not_end_by_itself_is_killed(held: Held) -> None:
    held.start(local={**LOCAL, "env": {"STUBBORN": "yes"}})
    stubborn = int(held("pid"))
    held.outside.close()
    assert is_gone(stubborn)


def test_without_the_extra_it_is_named(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wakeloop.cli.mcp_servers")
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(CommandError) as refused:
        held.start(local=LOCAL)
    assert (str(refused.value), refused.value.code) == (
        "MCP servers need the extra 'mcp'. Run: pip install 'wakeloop[mcp]'",
        FAILED,
    )


@tool
def read_file(path: str) -> str:
    """Read."""
    return path


SERVER_A, SERVER_B, TODO = "the MCP server 'a'", "the MCP server 'b'", "the todo tools"


@pytest.mark.parametrize(
    "owners",
    [
        (SERVER_A, SERVER_B),
        ("the built-in tools files", SERVER_B),
        (TODO, "mine:several"),
        ("the session tools", "mine:several"),
        ("mine:several", "other:tools"),
    ],
)
def test_two_tools_of_one_name_are_reported_with_their_owners(owners: tuple[str, str]) -> None:
    groups = [(owner, [read_file]) for owner in owners if owner != TODO]
    with pytest.raises(CommandError) as refused:
        merge_tools(groups, {"read_file"} if TODO in owners else {"todo_write"})
    assert refused.value.code == USAGE
    told = "Two tools are named 'read_file', one from {}, one from {}. {}"
    assert str(refused.value) == told.format(*owners, TOOL_CLASH_FIX)


def test_two_of_the_same_owner_are_reported_too() -> None:
    told = f"Two tools are named 'read_file', both from mine:several. {TOOL_CLASH_FIX}"
    with pytest.raises(CommandError, match=re.escape(told)):
        merge_tools([("mine:several", [read_file, read_file])], {"todo_write"})
