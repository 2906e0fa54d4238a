"""Cases C33 to C43, C45 to C47: a thread after a fault has the figures of one without it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from forms import Anthropic, Bedrock, Chat, Form, Responses, Said
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from rig import Rig
from shared_tools import City, look

from wakeloop import ReplyError, preset
from wakeloop.testing import calls

pytestmark = pytest.mark.slow

APART = ("tail", "shown", "injected", "spent")  # ids of messages, and the cost of the fault itself
THREAD: Any = {"messages": [HumanMessage("go")]}


@tool("look")
def look_in_blocks(place: str) -> list[dict[str, str]]:
    """Look at a place."""
    return [{"type": "text", "text": f"seen {place}"}]


def texts(state: dict[str, Any]) -> dict[str, Any]:
    """The hook of docs/models.md."""
    sent = [
        m.model_copy(update={"content": str(m.text)}) if m.type == "tool" else m for m in state["messages"]
    ]
    return {"llm_input_messages": sent}


def write(key: str, *items: str) -> Any:
    return calls(("todo_write", {"items": list(items)}, key))


def close(key: str, number: int) -> Any:
    return calls(("todo_update", {"id": number, "status": "done"}, key))


def whole_list(key: str, status: str, name: str = "a") -> Any:
    return calls(("write_todos", {"todos": [{"content": name, "status": status}]}, key))


def looks(key: str | None = "k0", args: str = '{"place": "x"}', sign: str = "", name: str = "look") -> Said:
    return Said("", ((name, args, key),), sign)


PLAN, CLOSED = write("p1", "a"), close("p2", 1)
LATER = (write("l1", "b", "c"), looks("l2"), close("l3", 2), "Wait.", close("l4", 3), "Bye.")
LISTED = (whole_list("l1", "in_progress", "b"), looks("l2"), whole_list("l3", "completed", "b"), "Bye.")
LESSON = (
    calls(("todo", {"items": [{"id": "1", "text": "b", "status": "in_progress"}]}, "l1")),
    looks("l2"),
    calls(("todo", {"items": [{"id": "1", "text": "b", "status": "completed"}]}, "l3")),
    "Bye.",
)


@dataclass(frozen=True)
class Fault:
    """A first run with the fault, and one without; `more` are the messages that the fault adds.

    Then the same second run follows on both, with `later` replies.
    """

    bad: Sequence[Any]
    sound: Sequence[Any]
    more: int = 0
    form: Form | None = None
    options: dict[str, Any] = field(default_factory=dict)
    later: Sequence[Any] = LATER
    given: Any = field(default_factory=lambda: THREAD)
    given_sound: Any = field(default_factory=lambda: THREAD)
    ending: str = "settled"
    without: dict[str, Any] = field(default_factory=dict)  # options of the sound one, where they differ
    raises: str = ""
    refused: int = 0  # refused writes of the list: its number counts them, too


class Thinking(Anthropic):
    """A format cannot be forced there."""

    more: ClassVar = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}


class Loading(Chat):
    """Answers an error with status 200."""

    def whole(self, said: Said) -> dict[str, Any]:
        return {"object": "error", "message": said.text} if said.text == "loading" else super().whole(said)


def history(*replies: Any) -> dict[str, Any]:
    return {"messages": [HumanMessage("q"), *replies, HumanMessage("go")]}


def made(name: str, key: str = "1") -> list[Any]:
    call = {"name": name, "args": {}, "id": key}
    return [AIMessage("", tool_calls=[call]), ToolMessage("r", tool_call_id=key, name=name), AIMessage("so")]


NAMES = ("functions.todo_write", "web search", "n" * 70)
UNNAMED = Said("", tuple((name, "{}", f"n{i}") for i, name in enumerate(NAMES)))
TWICE = Said("", (("look", '{"place": "1"}', "one"), ("look", '{"place": "2"}', "one")))
ONCE = Said("", (("look", '{"place": "1"}', "k00000001"), ("look", '{"place": "2"}', "k00000002")))
LEGACY = {"function_call": {"name": "look", "arguments": "{}"}}
SOUND = [PLAN, CLOSED, "Done."]
STRICT: dict[str, Any] = {"settings": preset("cubepi-strict")}
IN_FORM = Said("", (("City", '{"city": "Bern"}', "f1"),))
OPENED = whole_list("w1", "in_progress")
FORMS: tuple[Form, ...] = (Chat(), Responses(), Anthropic(), Bedrock())

FAULTS = {
    **{f"c33 {f.name}": Fault([PLAN, UNNAMED, CLOSED, "Done."], SOUND, 4, f) for f in FORMS},
    "c33 a history": Fault(
        SOUND, SOUND, 0, Chat(), given=history(*made("web search")), given_sound=history(*made("web_search"))
    ),
    **{
        f"c34 {f.name}": Fault([PLAN, TWICE, CLOSED, "Done."], [PLAN, ONCE, CLOSED, "Done."], 0, f)
        for f in FORMS
    },
    **{
        f"c35 {f.name}": Fault(
            [PLAN, looks(None), CLOSED, "Done."], [PLAN, looks("k00000001"), CLOSED, "Done."], 0, f
        )
        for f in FORMS
    },
    **{
        f"c36 half a reply {f.name}": Fault([PLAN, Said("Half", sign="cut"), CLOSED, "Done."], SOUND, 2, f)
        for f in (FORMS[0], FORMS[3])
    },
    **{
        f"c36 a call {f.name}": Fault([PLAN, looks(sign="cut"), CLOSED, "Done."], SOUND, 2, f)
        for f in FORMS[1:3]
    },
    **{f"c37 {f.name}": Fault([PLAN, looks(args='["a"]'), CLOSED, "Done."], SOUND, 0, f) for f in FORMS[:2]},
    "c38": Fault(
        [PLAN, CLOSED, "Done.", "It is Bern.", IN_FORM],
        [PLAN, CLOSED, "Done.", IN_FORM],
        2,
        Thinking(),
        {"response_format": City},
        (*LATER, IN_FORM),
    ),
    **{
        f"c39 {f.name}": Fault(
            [OPENED, "no", "no", "no", Said("Why.", (("look", '{"place": "x"}', "away"),))],
            [OPENED, "no", "no", "no", "Why."],
            0,
            f,
            STRICT,
            LISTED,
            ending="guard_blocked",
        )
        for f in (FORMS[0], FORMS[3])
    },
    **{
        f"c40 {f.name}": Fault(
            [PLAN, CLOSED, Said("No.", sign="refused")], [PLAN, CLOSED, "No."], 0, f, ending="refused"
        )
        for f in FORMS[:2]
    },
    "c41": Fault(
        SOUND,
        SOUND,
        0,
        Chat(),
        given={**THREAD, "todo_goal": "ship\0 it"},
        given_sound={**THREAD, "todo_goal": "ship it"},
    ),
    "c42 write_todos": Fault(
        [whole_list("w0", "finished"), OPENED, whole_list("w2", "completed"), "Done."],
        [OPENED, whole_list("w2", "completed"), "Done."],
        2,
        Chat(),
        {"settings": preset("cubepi")},
        LISTED,
        refused=1,
    ),
    "c42 checklist": Fault(
        [calls(("todo", {"items": [{"id": "1", "text": "b", "status": "finished"}]}, "w0")), "Done."],
        ["Done."],
        2,
        Chat(),
        {"settings": preset("lesson")},
        LESSON,
        refused=1,
        ending="answered",  # the refused write was the only one
    ),
    "c43": Fault([PLAN, looks(sign="none"), CLOSED, "Done."], [PLAN, looks(), CLOSED, "Done."], 0, Chat()),
    "c45": Fault(
        [PLAN, looks(), CLOSED, "Done."],
        [PLAN, looks(), CLOSED, "Done."],
        0,
        Chat(),
        {"tools": [look_in_blocks], "pre_model_hook": texts},
        [reply for reply in LATER if not isinstance(reply, Said)],
        without={"tools": [look]},
    ),
    "c46": Fault([PLAN, "loading", CLOSED, "Done."], SOUND, 0, Loading(), raises="loading"),
    "c47": Fault(
        SOUND,
        SOUND,
        0,
        Chat(),
        given=history(AIMessage("so", additional_kwargs=LEGACY)),
        given_sound=history(AIMessage("so")),
    ),
}


def play(rig: Rig, fault: Fault, replies: Sequence[Any], given: Any, **more: Any) -> dict[str, Any]:
    """Run a thread to its end, then once more; return its state after the first, and the second run's
    figures.
    """
    if fault.form is not None:
        rig.speaks(fault.form)
    rig.build(*replies, **{"tools": [look], **fault.options, **more})
    if fault.raises and replies is fault.bad:
        with pytest.raises(ReplyError, match=fault.raises):
            rig.run(given)
        given = None
    rig.run(given)
    rig.model.assert_done()
    stood = {"session": standing(rig), "todos": rig.todos, "messages": len(rig.messages)}
    old, history = written(rig), len(rig.messages)
    rig.then(*fault.later)
    rig.run("And now something else.")
    rig.model.assert_done()
    rig.followed = True
    rig.check()
    notes = {key: value for key, value in rig.state["todo_ledger"].items() if key not in APART}
    return {
        "stood": stood,
        "written": [new - before for new, before in zip(written(rig), old, strict=True)],
        "sizes": [sum(map(size, asked)) for asked in rig.model.requests],
        "session": standing(rig),
        "list": rig.todos,
        "notes": notes,
        "messages": [(m.type, str(m.text)) for m in rig.messages[history:]],
    }


def standing(rig: Rig) -> dict[str, Any]:
    """Return the session without the spending."""
    return {key: value for key, value in rig.session.items() if key not in APART}


def size(message: Any) -> int:
    """Return the number of characters of a message as it is sent, without its ids."""
    made = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return len(str(message.text)) + len(str(made))


def written(rig: Rig) -> tuple[int, int, int]:
    """Return checkpoints, writes, and the bytes of those without counters."""
    with closing(sqlite3.connect(rig.path)) as connection:
        (told,) = connection.execute(
            "SELECT (SELECT count(*) FROM checkpoints), count(*), "
            "sum(length(value) * (channel NOT IN ('todo_ledger', 'todo_session'))) FROM writes"
        ).fetchall()
    return told  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore::UserWarning")  # of thinking, where a format cannot be forced
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_figures_are_those_of_the_thread_without_the_fault(fault: Fault, tmp_path: Path) -> None:
    told = []
    for replies, given, more in (
        (fault.bad, fault.given, {}),
        (fault.sound, fault.given_sound, fault.without),
    ):
        rig = Rig("invoke", "sqlite", tmp_path / f"{len(told)}.db")
        rig.grows = False
        try:
            told.append(play(rig, fault, replies, given, **more))
        finally:
            rig.shut()
    after, sound = told
    for session in (after["stood"]["session"], after["session"]):
        session["list"] -= fault.refused
    after["notes"]["writes"] -= fault.refused
    assert after["stood"].pop("messages") == sound["stood"].pop("messages") + fault.more
    assert after["stood"]["session"].pop("reason") == fault.ending
    sound["stood"]["session"].pop("reason")
    grown = {new - old for new, old in zip(after.pop("sizes"), sound.pop("sizes"), strict=True)}
    assert len(grown) == 1  # the fault's messages are sent along, and nothing is added to them
    assert (grown == {0}) is (fault.more == 0)
    assert after == sound
