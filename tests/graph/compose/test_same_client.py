"""One client for LangChain's approvals and for this package's, and what the chat UIs' types demand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.human_in_the_loop import HITLRequest, ToolApprovalRequest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import TypeAdapter

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

CONFIG: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [("user", "go")]}
REPLY = [calls(("mail", {"to": "a"}, "c1"), ("look", {}, "c2"), ("mail", {"to": "b"}, "c3")), says("bye")]
ON: Any = {"mail": {"allowed_decisions": ["approve", "edit", "reject", "respond"], "description": "Mail it?"}}
APPROVE = {"type": "approve"}
EDIT = {"type": "edit", "edited_action": {"name": "mail", "args": {"to": "z"}}}
REJECT = {"type": "reject", "message": "No."}
RESPOND = {"type": "respond", "message": "He knows."}
DECISIONS = [APPROVE, EDIT, REJECT, RESPOND]


class Post:
    """Records what was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def tools(self) -> list[Any]:
        @tool
        def mail(to: str) -> str:
            """Send a mail."""
            self.sent.append(to)
            return f"sent to {to}"

        @tool
        def look() -> str:
            """Look."""
            return "seen"

        return [mail, look]


def langchains(post: Post, mode: Any) -> Any:
    approvals = HumanInTheLoopMiddleware(ON, interrupt_mode=mode)
    return create_agent(
        ScriptedModel([*REPLY]), post.tools(), middleware=[approvals], checkpointer=InMemorySaver()
    )


def this_packages(post: Post, mode: Any) -> Any:
    return create_todo_agent(
        ScriptedModel([*REPLY]),
        post.tools(),
        interrupt_on=ON,
        interrupt_mode=mode,
        checkpointer=InMemorySaver(),
    )


def answer_all(agent: Any, decide: Mapping[str, Any]) -> dict[str, Any]:
    """A client as in LangChain's documentation: it decides each call by its argument."""
    out: Any = agent.invoke(GO, CONFIG)
    asked = out["__interrupt__"]
    if asked[0].value.get("type") == "tool_approval":
        return agent.invoke(
            Command(resume={one.id: decide[one.value["args"]["to"]] for one in asked}), CONFIG
        )
    decisions = [decide[action["args"]["to"]] for action in asked[0].value["action_requests"]]
    return agent.invoke(Command(resume={"decisions": decisions}), CONFIG)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("first", DECISIONS, ids=lambda one: one["type"])
@pytest.mark.parametrize("second", DECISIONS, ids=lambda one: one["type"])
def test_the_same_client_has_the_same_effects(mode: str, first: Any, second: Any) -> None:
    seen = []
    for make in (langchains, this_packages):
        post = Post()
        out = answer_all(make(post, mode), {"a": first, "b": second})
        status = {m.tool_call_id: m.status for m in out["messages"] if m.type == "tool"}
        seen.append((sorted(post.sent), status))
    assert seen[0] == seen[1]


def find_asked(agent: Any) -> list[Any]:
    """Return the questions, in the order of the calls."""
    asked = [one.value for one in agent.invoke(GO, CONFIG)["__interrupt__"]]
    return sorted(asked, key=lambda value: value.get("tool_call_id", ""))


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_the_questions_are_langchains(mode: str) -> None:
    """Ours has one more key, `on`."""
    theirs, ours = (find_asked(make(Post(), mode)) for make in (langchains, this_packages))
    kind: Any = HITLRequest if mode == "batched" else ToolApprovalRequest
    for one in ours:
        assert one.pop("on") == "approval"
        TypeAdapter(kind).validate_python(one)
    assert ours == theirs


SOME: Any = [["approve"], ["approve", "reject"], ["approve", "edit", "reject", "respond"]]


@pytest.mark.parametrize("allowed", SOME)
def test_the_response_schema_takes_the_same_answers(allowed: list[str]) -> None:
    schemas = []
    for make in (langchains, this_packages):
        ON["mail"]["allowed_decisions"] = allowed
        [first, *_] = make(Post(), "per_call").invoke(GO, CONFIG)["__interrupt__"]
        schemas.append(first.response_schema)
    wrong: list[Any] = [{}, {"type": "accept"}, {"type": "edit"}, {"type": "respond"}, "yes"]
    for name, args in (("look", {}), ("mail", {"to": 5})):
        wrong.append({"type": "edit", "edited_action": {"name": name, "args": args}})
    for answer in [*DECISIONS, *wrong]:
        fits = [jsonschema.Draft202012Validator(schema).is_valid(answer) for schema in schemas]
        assert fits[0] == fits[1], answer
    ON["mail"]["allowed_decisions"] = ["approve", "edit", "reject", "respond"]


def fits_chat_ui(value: Any) -> bool:
    """Check like `isAgentInboxInterruptSchema` in src/lib/agent-inbox-interrupt.ts of Agent Chat UI."""
    actions, configs = value.get("action_requests"), value.get("review_configs")
    if not (isinstance(actions, list) and actions and isinstance(configs, list) and configs):
        return False
    for action in actions:
        if not (isinstance(action.get("name"), str) and isinstance(action.get("args"), dict)):
            return False
    for config in configs:
        if not (
            isinstance(config.get("action_name"), str) and isinstance(config.get("allowed_decisions"), list)
        ):
            return False
    return True


@pytest.mark.parametrize(
    ("decision", "sent"), [({"type": "approve"}, ["a", "b"]), ({"type": "reject"}, []), (EDIT, ["z", "z"])]
)
def test_chat_uis_render_and_answer_the_question(decision: Any, sent: list[str]) -> None:
    """Agent Chat UI sends `{"decisions": […]}`, one for each action (its types.ts: approve, reject, edit)."""
    post = Post()
    agent = this_packages(post, "batched")
    [asked] = agent.invoke(GO, CONFIG)["__interrupt__"]
    assert fits_chat_ui(asked.value)
    agent.invoke(Command(resume={"decisions": [decision] * len(asked.value["action_requests"])}), CONFIG)
    assert sorted(post.sent) == sent


PUBLISHED = json.loads((Path(__file__).parent / "hitl_types.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("place", "sent"), list(enumerate(("b", "z", "", ""))))
def test_the_published_types_of_the_ui_clients_fit(place: int, sent: str) -> None:
    """What the TypeScript client shows, and what it sends: both spellings of an edit."""
    post = Post()
    on: Any = {"mail": {"allowed_decisions": ["approve", "edit", "reject"]}}
    model = ScriptedModel([calls(("mail", {"to": "b"})), says("bye")])
    agent = create_todo_agent(model, post.tools(), interrupt_on=on, checkpointer=InMemorySaver())
    [asked] = agent.invoke(GO, CONFIG)["__interrupt__"]
    jsonschema.Draft202012Validator(PUBLISHED["request"]).validate(asked.value)
    agent.invoke(Command(resume={"decisions": [PUBLISHED["decisions"][place]]}), CONFIG)
    assert "".join(post.sent) == sent


def test_agent_inbox_reads_one_call() -> None:
    """Its `normalizeInterrupt` (contexts/utils.ts) reads only the first action."""
    agent = create_todo_agent(
        ScriptedModel([calls(("mail", {"to": "a"})), says("bye")]),
        Post().tools(),
        interrupt_on=ON,
        checkpointer=InMemorySaver(),
    )
    [asked] = agent.invoke(GO, CONFIG)["__interrupt__"]
    [action], [config] = asked.value["action_requests"], asked.value["review_configs"]
    shown = {"action": action["name"], "args": action["args"], "description": action["description"]}
    assert shown == {"action": "mail", "args": {"to": "a"}, "description": "Mail it?"}
    assert {"approve", "edit", "reject"} <= set(config["allowed_decisions"])
