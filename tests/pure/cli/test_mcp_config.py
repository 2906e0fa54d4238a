"""The file of MCP servers: what it may hold, which blanks are filled in, and refusals."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import ToolException
from mcp import types as mcp

from wakeloop.cli.failures import USAGE, CommandError
from wakeloop.cli.mcp_config import McpServer, ServerEntry, read_servers
from wakeloop.cli.mcp_servers import McpConnection
from wakeloop.cli.mcp_tools import MAX_RESULT, McpTool


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".mcp.json"


def written(path: Path, **servers: Any) -> Path:
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_both_kinds_of_server_and_their_variables(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "/srv")
    monkeypatch.setenv("MY_TOKEN", "tok-1234567")
    monkeypatch.setenv("EMPTY", "")
    written(
        path,
        local={
            "type": "stdio",
            "command": "${WHERE}/run",
            "args": ["--in=${WHERE}", "$WHERE", "${NOT_SET:-a}${EMPTY:-b}"],
            "env": {"API_KEY": "plain-key-1", "N": "${WHERE}"},
            "cwd": "sub",
        },
        far={"url": "https://me:pass-word@host/mcp", "headers": {"Authorization": "Bearer ${MY_TOKEN}"}},
        off={"command": "${NOBODY}", "disabled": True},
    )
    local, far = read_servers(path)
    assert (local.name, local.command, local.cwd, local.url) == ("local", "/srv/run", "sub", "")
    assert local.args == ("--in=/srv", "$WHERE", "ab")
    assert local.env == {"API_KEY": "plain-key-1", "N": "/srv"}
    assert local.secrets == ("plain-key-1",)
    assert far.headers == {"Authorization": "Bearer tok-1234567"}
    assert {"tok-1234567", "pass-word"} < set(far.secrets)
    told = repr([local, far])
    assert [secret for server in (local, far) for secret in server.secrets if secret in told] == []


def test_a_byte_order_mark_and_keys_of_other_programs_are_ignored(path: Path) -> None:
    text = '{"globalShortcut": "", "mcpServers": {"a": {"command": "b"}}}'
    path.write_bytes(codecs.BOM_UTF8 + text.encode())
    assert read_servers(path) == [McpServer("a", command="b")]
    path.write_text('{"mcpServers": {}}')
    assert read_servers(path) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "{}, line 1 is not valid JSON: Expecting property name enclosed in double quotes."),
        ('{"mcpServers": {\n"a": 1,}}', "{}, line 2 is not valid JSON: "),
        ("[" * 100_000, "The file '{}' for --mcp cannot be read: it is nested too deeply."),
        ("[]", "{} must contain a JSON object."),
        ('{"servers": {}}', "{} must contain servers, as in "),
        ('{"mcpServers": []}', "{} must contain servers, as in "),
        ('{"mcpServers": {"one": "npx one"}}', "{} must contain servers, as in "),
    ],
)
def test_a_file_of_another_form_is_refused(path: Path, text: str, says: str) -> None:
    path.write_text(text)
    with pytest.raises(CommandError) as refused:
        read_servers(path)
    assert str(refused.value).startswith(says.format(path))
    assert refused.value.code == USAGE


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, " needs a command or a url, and not both."),
        ({"command": ""}, " needs a command or a url, and not both."),
        ({"type": "http"}, " needs a command or a url, and not both."),
        ({"command": "x", "url": "http://x"}, " needs a command or a url, and not both."),
        ({"comand": "x"}, " has an unknown key 'comand'. Did you mean 'command'?"),
        (
            {"command": "x", "oauth": {}},
            f" has an unknown key 'oauth'. Available: {', '.join(ServerEntry.model_fields)}.",
        ),
        ({"command": ["x"]}, ": command must be a valid string."),
        ({"command": "x", "args": "y"}, ": args must be a valid list."),
        ({"command": "x", "args": [1]}, ": args.0 must be a valid string."),
        ({"command": "x", "env": {"PORT": 1}}, ": env.PORT must be a valid string."),
        ({"command": "x", "env": ["A"]}, ": env must be a valid dictionary."),
        ({"command": "x", "disabled": "no"}, ": disabled must be a valid boolean."),
        (
            {"type": "sse", "url": "http://x"},
            ": type must be 'stdio', 'http', 'streamable-http', 'streamable_http' or 'streamableHttp'.",
        ),
        *(
            ({"url": url}, ": url must be an address such as https://HOST/PATH.")
            for url in ("ftp://x", "http://[::1", "http://x:port", "https://", "http://x:99999")
        ),
        ({"command": "${NOBODY_SET_IT}"}, " needs the environment variable NOBODY_SET_IT, which is not set."),
        (
            {"command": "x", "env": {"KEY": "${input:key}"}},
            ": ${input:key} is not a variable: write ${NAME} or ${NAME:-default}.",
        ),
    ],
)
def test_an_invalid_server_is_named(path: Path, given: Any, says: str) -> None:
    with pytest.raises(CommandError) as refused:
        read_servers(written(path, one=given))
    assert (str(refused.value), refused.value.code) == (f"{path}: the server 'one'{says}", USAGE)


@pytest.mark.parametrize("failed", [False, True])
def test_a_secret_at_the_cut_of_a_long_result_stays_hidden(failed: bool) -> None:
    """At each position around the cut: half a secret is as bad as all of it."""
    server = McpConnection(McpServer("one", secrets=("0123456789abcdef",)), ".")
    for before in range(MAX_RESULT // 2 - 16, MAX_RESULT // 2 + 1):
        text = mcp.TextContent(type="text", text="x" * before + "0123456789abcdef" + "x" * MAX_RESULT)

        def wait(work: Any, text: Any = text) -> mcp.CallToolResult:
            work.close()
            return mcp.CallToolResult(content=[text], isError=failed)

        made = McpTool(
            name="a",
            description="b",
            args_schema={},
            remote="a",
            approval_question="",
            server=server,
            wait=wait,
        )
        try:
            said = made._run()
        except ToolException as error:
            said = str(error)
        assert "0" not in said.partition("characters left out")[0].rpartition("[")[0]
