"""Chat UIs over the agent: AG-UI's own package, and what the Agent Chat UI and Agent Inbox look for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from wakeloop import create_todo_agent, session_of
from wakeloop.cli.show import first_request
from wakeloop.loop.approval import KINDS
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.sessions import session_tools
from wakeloop.testing import ScriptedModel, calls
from wakeloop.text.marks import is_user_message

# the package asks LangGraph for a schema by its older name
pytestmark = pytest.mark.filterwarnings("ignore:.*get_config_jsonschema.*")
HIDDEN = "do-not-render-"
APPROVE: Any = {
    "action_requests": [{"name": "send", "args": {"to": "ada"}, "description": "Send it?"}],
    "review_configs": [{"action_name": "send", "allowed_decisions": ["approve", "edit", "reject"]}],
}
PLAN, DONE = calls(("todo_write", {"items": ["a"]})), calls(("todo_update", {"id": 1, "status": "done"}))


def send() -> str:
    """Send it, once a person approves."""
    return str(interrupt(APPROVE)["decisions"][0]["type"])


def name() -> str:
    """Ask in plain words."""
    return str(interrupt("Which name?"))


LAID = pytest.mark.parametrize("laid", [False, True], ids=["graph", "create_agent"])


class Chat:
    """An AG-UI client: it keeps messages and state, and sends both back with each message."""

    def __init__(self, *replies: Any, laid: bool = False, **options: Any) -> None:
        self.model = ScriptedModel(*replies)
        options = {"tools": [send, name], **options}
        if laid:
            layer = WakeLoopMiddleware(settings={"preset": "wakeloop", **options.pop("settings", {})})
            options["middleware"] = [layer]
        make: Any = create_agent if laid else create_todo_agent
        self.graph = make(self.model, name="clerk", checkpointer=InMemorySaver(), **options)
        self.agent = LangGraphAgent(name="clerk", graph=self.graph)
        self.messages: list[Any] = []
        self.states: list[dict[str, Any]] = []
        self.events: list[Any] = []

    async def says(self, text: str, state: Any = None, resume: Any = None) -> None:
        """Send a message, with the newest state or another."""
        if resume is None:
            self.messages = [
                *self.messages,
                UserMessage(id=f"u{len(self.messages)}", role="user", content=text),
            ]
        given = RunAgentInput(
            thread_id="t",
            run_id=f"r{len(self.events)}",
            state=state if state is not None else (self.states[-1] if self.states else {}),
            messages=self.messages,
            tools=[],
            context=[],
            forwarded_props={},
            resume=resume,
        )
        self.events = [event async for event in self.agent.clone().run(given)]
        self.states += [dict(e.snapshot) for e in self.events if e.type.value == "STATE_SNAPSHOT"]
        self.messages = next(e.messages for e in self.events[::-1] if e.type.value == "MESSAGES_SNAPSHOT")

    @property
    def shown(self) -> list[str]:
        """Return what people see: a UI leaves out hidden messages, and shows results in their calls."""
        told = [m for m in self.messages if m.role in ("user", "assistant") and m.content]
        return [f"{m.name or m.role}: {m.content}" for m in told if not m.id.startswith(HIDDEN)]

    @property
    def session(self) -> Any:
        return session_of(self.snapshot)

    @property
    def snapshot(self) -> Any:
        return self.graph.get_state({"configurable": {"thread_id": "t"}})

    @property
    def statuses(self) -> list[str]:
        return [todo["status"] for todo in self.snapshot.values["todos"]]


def todo(status: str) -> dict[str, Any]:
    """Return the one item."""
    return {"id": 1, "content": "a", "status": status}


def is_for_an_inbox(asked: Any) -> bool:
    """Return whether the Agent Chat UI would draw buttons for an interrupt."""
    value = asked.value
    if not isinstance(value, Mapping):
        return False
    requests, configs = value.get("action_requests"), value.get("review_configs")
    return bool(
        isinstance(requests, list)
        and requests
        and isinstance(configs, list)
        and configs
        and all(isinstance(r["name"], str) and isinstance(r["args"], dict) for r in requests)
        and all(
            isinstance(c["action_name"], str) and isinstance(c["allowed_decisions"], list) for c in configs
        )
    )


# -- what people see -------------------------------------------------------------------------------------


@LAID
async def test_a_nudge_is_in_the_snapshot_and_nobody_sees_it(laid: bool) -> None:
    chat = Chat(PLAN, "I stop.", DONE, "All done.", laid=laid)
    await chat.says("go")
    chat.model.assert_done()
    hidden = [m for m in chat.messages if m.id.startswith(HIDDEN)]
    assert [(m.role, m.content[:12]) for m in hidden] == [("user", "(automatic) ")]
    assert not hasattr(hidden[0], "additional_kwargs")  # only the id gets through
    assert chat.shown == ["user: go", "clerk: I stop.", "clerk: All done."]
    streamed = [e.message_id for e in chat.events if e.type.value == "TEXT_MESSAGE_START"]
    assert [m.id for m in chat.messages if m.role == "assistant" and m.content] == streamed


async def test_a_history_that_comes_back_without_its_marks_is_recognised_by_its_ids() -> None:
    """If the agent keeps nothing, the client's messages are all there is."""
    first = Chat(PLAN, "I stop.", DONE, "All done.")
    await first.says("go")
    other = Chat("Hello.")
    other.messages = first.messages
    await other.says("thanks", state={})
    told = [m.text for m in other.snapshot.values["messages"] if m.type == "human"]
    assert len(told) == 3
    users = [m.text for m in other.snapshot.values["messages"] if is_user_message(m)]
    assert (users, first_request(other.snapshot.values["messages"])) == (["go", "thanks"], "go")


# -- state that comes back -------------------------------------------------------------------------------


async def test_no_state_that_comes_back_reopens_a_list() -> None:
    """Every state that the client was shown during a run, even when a snapshot holds a write, not a list."""
    chat = Chat(PLAN, "I stop.", DONE, "All done.", *["You are welcome."] * 12)
    await chat.says("go")
    states = chat.states[:]
    assert [isinstance(state.get("todos"), list) for state in states] == [False] * 10 + [True]
    shown = [{"put": [todo(status)], "own": True} for status in ("pending", "completed")]
    assert [state["todos"] for state in states[2:10]] == [shown[0]] * 5 + [shown[1]] * 3
    for number, state in enumerate(states, 1):
        await chat.says("thanks", state=state)
        assert (chat.statuses, len(chat.model.requests)) == (["completed"], 4 + number)
        assert (chat.session["reason"], chat.session["list"]) == ("answered", 2)


async def test_each_state_of_an_agent_with_the_middleware_has_the_list() -> None:
    chat = Chat(PLAN, "I stop.", DONE, "All done.", laid=True)
    await chat.says("go")
    lists = [state["todos"] for state in chat.states if "todos" in state]
    assert all(isinstance(todos, list) for todos in lists)
    assert [todo("pending")] in lists
    assert lists[-1] == [todo("completed")]


async def test_a_list_that_a_person_has_changed_in_the_newest_state_replaces() -> None:
    chat = Chat(PLAN, DONE, "Done.", calls(("todo_update", {"id": 2, "status": "done"})), "Done, too.")
    await chat.says("go")
    state = chat.states[-1]
    more = [*state["todos"], {"content": "b", "status": "pending"}]
    await chat.says("and b", state={**state, "todos": more})
    chat.model.assert_done()
    assert (chat.statuses, chat.session["reason"]) == (["completed"] * 2, "settled")


# -- what people are asked -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "answer", "told"),
    [("send", {"decisions": [{"type": "approve"}]}, "approve"), ("name", "Ada", "Ada")],
    ids=["for an inbox", "in plain words"],
)
async def test_a_question_reaches_the_client_and_its_answer_the_tool(
    tool: str, answer: Any, told: str
) -> None:
    chat = Chat(calls((tool, {})), "Sent.")
    await chat.says("go")
    (asked,) = chat.snapshot.interrupts
    assert is_for_an_inbox(asked) == (tool == "send")
    (event,) = [e for e in chat.events if e.type.value == "CUSTOM"]
    value = event.value if tool == "name" else json.loads(event.value)
    assert (event.name, value) == ("on_interrupt", asked.value)
    assert (chat.session["state"], chat.session["reason"]) == ("waiting", "interrupted")
    await chat.says("", resume=[ResumeEntry(interrupt_id=asked.id, status="resolved", payload=answer)])
    chat.model.assert_done()
    assert [m.content for m in chat.messages if m.role == "tool"] == [told]
    assert chat.shown == ["user: go", "clerk: Sent."]


def nobody() -> Any:
    """A missing host: asking a person needs none."""
    raise AssertionError


def work(path: str) -> str:
    """Work at a path."""
    return f"worked at {path}"


ASKS: Any = {
    "plan": ({"settings": {"approve_plan": "first"}}, PLAN, ["approve", "edit", "reject"]),
    "call": ({"interrupt_on": {"work": True}}, calls(("work", {"path": "x"})), [*KINDS]),
    "question": ({}, calls(("ask_user", {"question": "Where?"})), ["respond"]),
}


@pytest.mark.parametrize(
    ("kind", "laid", "answer", "told"),
    [
        ("plan", False, {"type": "approve"}, "Stored 1 item"),
        ("plan", True, {"type": "approve"}, "Stored 1 item"),
        ("call", False, {"type": "reject", "message": "Not x."}, 'They said: "Not x."'),
        ("question", False, {"type": "respond", "message": "Here."}, "Here."),
        ("question", True, {"type": "respond", "message": "Here."}, "Here."),
    ],
)
async def test_the_packages_questions_reach_the_client(kind: str, laid: bool, answer: Any, told: str) -> None:
    options, reply, decisions = ASKS[kind]
    rest = [DONE, "Done."] if kind == "plan" else ["Done."]
    chat = Chat(reply, *rest, laid=laid, tools=[work, *session_tools(nobody, ["ask_user"])], **options)
    await chat.says("go")
    (asked,) = chat.snapshot.interrupts
    assert is_for_an_inbox(asked)
    assert asked.value["review_configs"][0]["allowed_decisions"] == decisions
    (event,) = [e for e in chat.events if e.type.value == "CUSTOM" and e.name == "on_interrupt"]
    assert json.loads(event.value) == asked.value
    given = {"decisions": [answer]}
    await chat.says("", resume=[ResumeEntry(interrupt_id=asked.id, status="resolved", payload=given)])
    chat.model.assert_done()
    assert told in next(m.content for m in chat.messages if m.role == "tool")
    assert chat.shown == ["user: go", "clerk: Done."]
    assert chat.session["reason"] == ("settled" if kind == "plan" else "answered")


async def test_a_message_in_place_of_an_answer_as_the_agent_chat_ui_sends_it() -> None:
    """It answers open calls itself, with hidden ids, and sends words as blocks."""
    chat = Chat(calls(("name", {}, "c1")), "As you like.")
    await chat.says("go")
    handled = {"content": "Successfully handled tool call.", "name": "name", "tool_call_id": "c1"}
    given = [
        {"type": "tool", "id": f"{HIDDEN}1", **handled},
        {"type": "human", "id": "h", "content": [{"type": "text", "text": "Never mind."}]},
    ]
    out = await chat.graph.ainvoke({"messages": given}, {"configurable": {"thread_id": "t"}})
    chat.model.assert_done()
    assert [(m.type, m.text) for m in chat.model.requests[1][-3:]] == [
        ("tool", "Successfully handled tool call."),
        ("ai", "[interrupted]"),
        ("human", "Never mind."),
    ]
    assert [m.text for m in out["messages"] if not m.id.startswith(HIDDEN)] == [
        "go",
        "",
        "Never mind.",
        "As you like.",
    ]
