"""What clients of `langgraph dev` see: schemas, refused inputs, sessions in SDK dicts, A2A, MCP."""

from __future__ import annotations

import ast
import re
from typing import Any

import httpx
import pytest

from wakeloop import answer_of, session_of

pytest.importorskip("langgraph_api", reason="the extra `server` is not installed")
pytestmark = [pytest.mark.loopback, pytest.mark.timeout(180), pytest.mark.xdist_group("langgraph-dev")]


def says(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.fixture
def ids(client: Any) -> dict[str, str]:
    """The assistants' ids by the names of their graphs."""
    return {one["graph_id"]: one["assistant_id"] for one in client.assistants.search()}


# -- forms -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_studio_finds_forms_for_the_input_and_the_settings(client: Any, ids: dict[str, str]) -> None:
    schemas = client.assistants.get_schemas(ids["waiting"])
    fields = schemas["input_schema"]["properties"]
    assert [name for name, field in fields.items() if not field.get("description")] == []
    context = schemas["context_schema"]
    assert list(context["properties"]) == ["todo_settings"]
    wakes = context["$defs"]["TodoSettings"]["properties"]["max_wake_cycles"]
    assert (wakes["type"], wakes["description"][-17:]) == ("integer", "This agent's: 25.")


def test_an_assistants_settings_outrank_the_threads(client: Any, thread: str) -> None:
    quiet = {"max_wake_cycles": 0, "guard_retries": 0}
    own = {**says("leave"), "todo_settings": {"max_wake_cycles": 1, "guard_retries": 0}}
    assistant = client.assistants.create("waiting", context={"todo_settings": quiet})["assistant_id"]
    assert client.runs.wait(thread, assistant, input=own)["todo_session"]["reason"] == "disabled"
    ended = client.runs.wait(thread, "waiting", input=says("leave"))["todo_session"]
    assert (ended["reason"], ended["wakes"], ended["budget"]) == ("waiting", 1, 1)  # no call twice: rule 26


# -- sessions in the SDK's dicts -------------------------------------------------------------------------


def views(client: Any, thread: str) -> list[Any]:
    """Return the session of a thread, through each way that the SDK offers."""
    (found,) = client.threads.search(ids=[thread])
    return [session_of(one) for one in (client.threads.get_state(thread), client.threads.get(thread), found)]


def test_a_refused_input_can_be_read_in_the_answer_and_in_the_thread(client: Any, thread: str) -> None:
    client.runs.wait(thread, "waiting", input=says("plan"))
    before = views(client, thread)
    sentence = "Unknown setting 'max_wake_cycle'. Did you mean 'max_wake_cycles'?"
    with pytest.raises(Exception, match=rf"^InputError: {re.escape(sentence)}$"):
        client.runs.wait(thread, "waiting", input={**says("x"), "todo_settings": {"max_wake_cycle": 1}})
    assert before == [before[0]] * 3
    assert views(client, thread) == [{**before[0], "error": sentence}] * 3
    client.runs.wait(thread, "waiting", input=says("hello"))
    assert [session.get("error") for session in views(client, thread)] == [None] * 3


def test_a_question_is_seen_in_each_view(client: Any, thread: str) -> None:
    asked = client.runs.wait(thread, "main", input=says("ask"))
    parked = views(client, thread)
    assert parked == [parked[0]] * 3
    assert (parked[0]["state"], parked[0]["reason"], parked[0]["on"]) == ("waiting", "interrupted", "human")
    assert session_of(asked) == {"state": "waiting", "reason": "interrupted", "open": 0, "on": "human"}
    client.runs.wait(thread, "main", command={"resume": "this"})
    assert [session["reason"] for session in views(client, thread)] == ["answered"] * 3
    assert answer_of(client.threads.get_state(thread)) == "read: this"


# -- A2A and MCP -----------------------------------------------------------------------------------------


def rpc(address: str, method: str, **params: Any) -> Any:
    accepted = {"Accept": "application/json, text/event-stream"}
    asked = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
    reply = httpx.post(address, headers=accepted, json=asked, follow_redirects=True, timeout=60)
    assert reply.status_code == 200
    return reply.json()["result"]


@pytest.mark.slow
def test_a2a_has_a_card_answers_and_asks(url: str, client: Any, ids: dict[str, str]) -> None:
    card = httpx.get(f"{url}/.well-known/agent-card.json", params={"assistant_id": ids["main"]}).json()
    assert (card["name"], card["url"]) == ("main", f"{url}/a2a/{ids['main']}")

    def send(text: str, **more: Any) -> Any:
        message = {
            "role": "user",
            "parts": [{"kind": "text", "text": text}],
            "messageId": f"id-{text}",
            **more,
        }
        return rpc(card["url"], "message/send", message=message)

    done = send("leave")
    assert done["status"]["state"] == "completed"  # the end of a run; the session's own state is in its state
    assert session_of(client.threads.get_state(done["contextId"]))["reason"] == "stalled"
    seen = [m["role"] for m in done["history"] if not m["messageId"].startswith("do-not-render-")]
    assert seen == ["user", *["agent"] * 8]
    assert len(done["history"]) == len(seen) + 6  # five nudges and a correction
    asks = send("ask")
    assert asks["status"]["state"] == "input-required"
    assert asks["artifacts"][0]["parts"][0]["data"]["value"] == "which?"
    assert session_of(client.threads.get_state(asks["contextId"]))["reason"] == "interrupted"
    told = send("this", contextId=asks["contextId"], taskId=asks["id"])
    assert told["status"]["state"] == "completed"
    assert answer_of(client.threads.get_state(asks["contextId"])) == "read: this"


def test_mcp_offers_each_assistant_as_a_tool(url: str) -> None:
    tools = {tool["name"]: tool for tool in rpc(f"{url}/mcp/", "tools/list")["tools"]}
    assert tools.keys() >= {"main", "waiting"}
    assert tools["main"]["inputSchema"]["properties"]["todos"]["description"]
    told = rpc(f"{url}/mcp/", "tools/call", name="main", arguments=says("plan"))
    values = ast.literal_eval(told["content"][0]["text"])
    assert (values["todo_session"]["reason"], values["todos"][0]["status"]) == ("settled", "completed")
