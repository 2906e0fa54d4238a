"""Whatever comes, in whatever order: the promises hold after every run."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from agents import budget, change, look
from clocks import timeless
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from wakeloop import create_todo_agent, preset, session_of, update_todos
from wakeloop.dialects import get_dialect
from wakeloop.errors import EditError, InputError
from wakeloop.loop.overrides import apply_overrides
from wakeloop.loop.turn import choose_state
from wakeloop.presets import PRESETS
from wakeloop.settings import LoopSettings
from wakeloop.testing import ScriptedModel, calls, malformed_call, prompt_faults, says, wire_faults
from wakeloop.todos.changes import changed_ids, diff_lists
from wakeloop.todos.items import STATUSES, count_open, is_open

CONFIG: Any = {"configurable": {"thread_id": "1"}}
ENDINGS = {
    "waiting",
    "blocked",
    "settled",
    "answered",
    "disabled",
    "step_limit",
    "wake_budget",
    "repeated_reply",
    "stalled",
    "guard_blocked",
    "truncated",
    "empty_reply",
    "malformed_calls",
}  # fmt: skip - of the 15 all but a drain and a parent's


# -- tools: values, exceptions, updates, interrupts ------------------------------------------------------


def boom() -> str:
    """Fail."""
    raise ValueError("broken")


def ask() -> str:
    """Ask a person."""
    return f"told {interrupt('?')}"


def _update(call_id: str, **channels: Any) -> Command[Any]:
    return Command(update={**channels, "messages": [ToolMessage("put", tool_call_id=call_id)]})


@tool
def put(items: list[str], key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Replace the list."""
    return _update(key, todos=[{"content": item} for item in items])


@tool
def wait(for_peer: bool, key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Wait for a peer, or stop waiting."""
    return _update(key, waiting_on=[{"id": "p", "on": "peer"}] if for_peer else {"drop": ["p"]})


@tool
def owe(a_reply: bool, key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Owe a peer a reply, or stop owing it."""
    return _update(key, owed_replies=["p"] if a_reply else {"drop": ["p"]})


TOOLS = [look, boom, ask, put, wait, owe]

# -- replies ---------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(["a", "b", "c", " "])
WORDS = st.sampled_from(["pending", "in_progress", "completed", "completed", "cancelled", "nonsense"])


def rows(text: str, *more: str) -> Any:
    """A whole list, as a model writes it: also as JSON, and as something else."""
    row = {text: TEXTS, "status": WORDS, **{key: st.sampled_from(["1", "2", "3"]) for key in more}}
    lists = st.lists(st.fixed_dictionaries(row), max_size=3)
    return st.one_of(lists, lists, lists.map(json.dumps), st.sampled_from(["no JSON", None, [1]]))


def made(name: str, **args: Any) -> Any:
    return st.tuples(st.just(name), st.fixed_dictionaries(args))


OWN = {
    "parley": st.one_of(
        made("todo_write", items=st.lists(TEXTS, max_size=3)),
        st.builds(
            change,
            st.sampled_from([1, 2, 3, "1", "x", 9]),
            st.sampled_from(["done", "done", "blocked", "cancelled", "open", "in_progress", "nonsense"]),
            st.sampled_from(["", "why"]),
        ),
        made("todo_list"),
    ),
    "loki": st.one_of(
        made("todo__init", goal=TEXTS),
        made("todo__add", task=TEXTS),
        made("todo__add", task=TEXTS),
        made("todo__done", id=st.sampled_from([1, 2, "1", "x", 9, None, True])),
        made("todo__list"),
        made("todo__clear"),
    ),
    "checklist": made("todo", items=rows("text", "id")),
    "write_todos": made("write_todos", todos=rows("content")),
}
OTHERS = st.one_of(
    made("look", path=st.sampled_from(["x", "y", "z"])),
    made("look", wrong=st.just(1)),
    made("boom"),
    made("ask"),
    made("put", items=st.lists(TEXTS, max_size=2)),
    made("wait", for_peer=st.booleans()),
    made("owe", a_reply=st.booleans()),
    made("nobody"),
)
IDS = st.sampled_from([None, "same", "same", "other"])
TOLD = st.sampled_from([*["stop"] * 9, "length"])
BROKEN = st.sampled_from(["todo_write", "todo", "look", None]).map(
    lambda name: malformed_call(name, '{"items": [')
)


def replies_of(dialect: str) -> Any:
    call = st.one_of(OWN[dialect], OWN[dialect], OTHERS)
    named = st.one_of(call, st.builds(lambda pair, key: (*pair, key), call, IDS))
    one = st.one_of(named, named, named, named, BROKEN)
    text = st.builds(says, st.sampled_from(["", "a", "b", " "]), finish_reason=TOLD)
    some = st.lists(one, min_size=1, max_size=3)
    rounds = st.builds(
        lambda m, t, why: calls(*m, text=t, finish_reason=why), some, TEXTS | st.just(""), TOLD
    )
    return st.lists(st.one_of(rounds, rounds, text), max_size=8)


REPLIES = {name: replies_of(name) for name in OWN}

# -- settings and inputs ---------------------------------------------------------------------------------

NAMES = {"parley": "todo_write", "loki": "todo__add", "checklist": "todo", "write_todos": "write_todos"}
FIELDS: dict[str, Any] = {
    "dialect": st.sampled_from(sorted(OWN)),
    "auto_continue": st.sampled_from([True, True, True, False]),
    "max_wake_cycles": st.integers(0, 4),
    "earn_wakes": st.sampled_from([0, 2]),
    "max_idle_wakes": st.integers(0, 3),
    "stop_on_repeat": st.booleans(),
    "continuation_prompt": st.sampled_from([None, "Go on."]),
    "inject_todo_instructions": st.booleans(),
    "max_items": st.sampled_from([None, 2, 4]),
    "in_progress": st.sampled_from(["any", "at_most_one", "exactly_one"]),
    "statuses": st.sampled_from([None, ("done", "blocked")]),
    "nag_after": st.integers(0, 2),
    "nag_every": st.integers(0, 2),
    "nag_when": st.sampled_from(["open", "always"]),
    "nudge_items": st.integers(1, 3),
    "guard_retries": st.integers(0, 2),
    "guard_rearms": st.booleans(),
    "on_guard_exhausted": st.sampled_from(["proceed", "block"]),
    "reply_retries": st.integers(0, 2),
    "retries_fall": st.booleans(),
    "tool_description": st.sampled_from([None, "Plan."]),
    "prompts": st.sampled_from([{}, {"nag": "Mind the list.", "cut_reply": "On."}]),
}
VARIED = st.one_of(
    st.fixed_dictionaries({}, optional=FIELDS),
    st.fixed_dictionaries(
        {}, optional={k: v for k, v in FIELDS.items() if k in ("guard_retries", "nag_after")}
    ),
)
OVERRIDES = st.sampled_from(
    [
        None,
        None,
        {},
        {"max_wake_cycles": 2},
        {"max_wake_cycles": 0, "guard_retries": 2, "on_guard_exhausted": "block"},
        {"auto_continue": False},
        {"auto_continue": True},
        {"inject_todo_instructions": False},
        {"nag_after": 1, "nag_every": 1, "nag_when": "always"},
    ]
)
LISTS = st.one_of(
    st.none(),
    st.none(),
    st.lists(
        st.fixed_dictionaries(
            {"content": st.sampled_from(["a", "b", "n"])}, optional={"status": st.sampled_from(STATUSES)}
        ),
        max_size=3,
    ),
    st.just([{"id": "s", "content": "named"}, {"content": "unnamed", "status": "in_progress"}]),
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["human", "peer_message", "peer_reply", "subagent_done", "cron", "kick"])},
        optional={"text": st.just("hear"), "id": st.sampled_from(["e1", "e2"]), "sender": st.just("s")},
    ),
    min_size=1,
    max_size=2,
)
BAD: list[dict[str, Any]] = [
    {"todos": "no list"},
    {"todos": [{"content": " "}]},
    {"todos": [{"id": 1, "content": "a"}, {"id": "1", "content": "b"}]},
    {"todo_settings": {"unknown": 1}},
    {"todo_settings": {"max_items": 3}},
    {"todo_settings": {"max_wake_cycles": -1}},
    {"todo_inbox": [{"kind": 1}]},
]
LIMITS = st.sampled_from([400, 400, *range(8, 30)])


class Replies(Iterator[AIMessage]):
    """What a model says: the queued replies, and then the same text forever."""

    def __init__(self) -> None:
        self.coming: list[AIMessage] = []

    def __next__(self) -> AIMessage:
        return self.coming.pop(0) if self.coming else says("that is all")


# -- the machine -----------------------------------------------------------------------------------------


def refuse_some(todo: Any, state: Any) -> str | None:
    return "no proof" if todo["content"] == "a" and len(state["messages"]) % 2 else None


class AnyRun(RuleBasedStateMachine):
    """One thread of an agent, and everything that may happen to it."""

    agent: Any = None

    @initialize(
        base=st.sampled_from(sorted(PRESETS)),
        varied=VARIED,
        saver=st.sampled_from(["none", "memory", "memory", "sqlite"]),
        verify=st.sampled_from(["none", "none", "sometimes"]),
        door=st.sampled_from(["sync", "sync", "async"]),
    )
    def begin(self, base: str, varied: dict[str, Any], saver: str, verify: str, door: str) -> None:
        self.base: LoopSettings = preset(base).model_copy(update=varied)
        self.database = sqlite3.connect(":memory:", check_same_thread=False) if saver == "sqlite" else None
        self.door = "sync" if saver == "sqlite" else door
        savers = {"memory": InMemorySaver, "sqlite": lambda: SqliteSaver(self.database)}
        self.saver = savers[saver]() if saver in savers else None
        self.replies = Replies()
        self.model = ScriptedModel(self.replies)
        self.agent = create_todo_agent(
            self.model,
            TOOLS,
            "You work.",
            settings=self.base,
            verify=None if verify == "none" else refuse_some,
            checkpointer=self.saver,
        )
        self.prefixes: list[list[Any]] = [[]]  # the requests, each of which must extend the one before
        self.words: Any = None  # what the system prompt depends on
        self.turns, self.most, self.budget = 0, 0, self.base.max_wake_cycles
        self.seen: list[Any] = []  # the list as a run at an interrupt has streamed it
        self.settings = self.base
        self.kept: list[Any] = []  # and as it was before the superstep that asks, whose work new input drops
        self.asks = False  # whether the last run has ended at an interrupt (without a saver, for good)

    def teardown(self) -> None:
        if self.agent is not None and self.database is not None:
            self.database.close()

    # -- events ------------------------------------------------------------------------------------------

    def replying(self, data: Any) -> None:
        self.replies.coming = data.draw(REPLIES[self.base.dialect])

    @rule(data=st.data(), todos=LISTS, overrides=OVERRIDES, goal=st.sampled_from([None, "g"]), limit=LIMITS)
    def a_message(self, data: Any, todos: Any, overrides: Any, goal: Any, limit: int) -> None:
        self.replying(data)
        more = {"todos": todos, "todo_settings": overrides, "todo_goal": goal}
        given = {"messages": [("user", "go")], **{k: v for k, v in more.items() if v is not None}}
        self.run(given, limit)

    @rule(data=st.data(), events=EVENTS, limit=LIMITS)
    def events(self, data: Any, events: list[Any], limit: int) -> None:
        self.replying(data)
        self.run({"todo_inbox": events}, limit)

    @rule(data=st.data(), limit=LIMITS)
    def an_empty_kick(self, data: Any, limit: int) -> None:
        self.replying(data)
        self.run({}, limit)

    @rule(bad=st.sampled_from(BAD))
    def a_bad_input(self, bad: dict[str, Any]) -> None:
        before, parked, asked = self.stands(), self.parked, len(self.model.requests)
        with pytest.raises(InputError) as raised:
            self.invoke({"messages": [("user", "no")], **bad}, 400)
        assert len(self.model.requests) == asked
        after = self.stands()
        before["session"].pop("error", None)  # of an earlier one
        assert after["session"].pop("error", "") == (str(raised.value) if self.saver is not None else "")
        if parked:  # new input ends it, whether it is valid or not
            before |= {"session": after["session"], "todos": self.kept}
        assert after == before

    @precondition(lambda self: self.agent is not None and self.saver is not None and self.parked)
    @rule(data=st.data(), limit=LIMITS)
    def an_answer(self, data: Any, limit: int) -> None:
        self.replying(data)
        waits = self.agent.get_state(CONFIG).interrupts
        self.run(Command(resume={one.id: "yes" for one in waits}), limit, resumes=True)

    @precondition(lambda self: self.agent is not None and self.saver is not None)
    @rule(
        edit=st.sampled_from(
            [
                {"add": ["by hand"]},
                {"done": [1]},
                {"block": {1: "why"}},
                {"reopen": [1]},
                {"remove": [1]},
                {"clear": True},
                {"goal": "another", "edit": {1: "reworded"}},
            ]
        )
    )
    def an_edit_by_hand(self, edit: dict[str, Any]) -> None:
        before = self.stands()
        try:
            todos = update_todos(self.agent, CONFIG, **edit)
        except EditError:
            assert self.stands() == before
            return
        after = self.stands()
        assert after["todos"] == todos
        gone = {t["id"] for t in before["todos"]} - {t["id"] for t in todos}
        assert gone == (
            {t["id"] for t in before["todos"]} if "clear" in edit else set(edit.get("remove", ()))
        )
        assert after["session"]["open"] == count_open(todos)

    @precondition(lambda self: self.agent is not None and self.saver is not None)
    @rule(data=st.data(), limit=LIMITS)
    def a_fork(self, data: Any, limit: int) -> None:
        ended = [s for s in self.agent.get_state_history(CONFIG) if not s.next and s.values.get("messages")]
        if not ended:
            return
        at = data.draw(st.sampled_from(ended))
        self.replying(data)
        self.prefixes.append([])
        self.run({"messages": [("user", "else")]}, limit, at=at)

    # -- a run, and its promises -------------------------------------------------------------------------

    @property
    def parked(self) -> bool:
        return self.saver is not None and bool(self.agent.get_state(CONFIG).interrupts)

    def stands(self) -> dict[str, Any]:
        """List, goal, settings and session, as a thread reads."""
        if self.saver is None:
            return {"todos": [], "session": {"open": 0}}
        snapshot = self.agent.get_state(CONFIG)
        values = snapshot.values
        return {
            "todos": list(values.get("todos") or ()),
            "goal": str(values.get("todo_goal") or ""),
            "settings": dict(values.get("todo_settings") or {}),
            "session": session_of(snapshot),
        }

    def without_results(self) -> list[Any]:
        """Return the list without the work of the superstep that asks, as a checkpoint is read."""
        if self.saver is None:
            return []
        at = self.agent.get_state(CONFIG).config
        return list(self.agent.get_state(at).values["todos"])

    def invoke(self, given: Any, limit: int, at: Any = None) -> tuple[list[Any], dict[str, Any]]:
        """Run once, and return the events and the last values."""
        config = {**(CONFIG if at is None else at.config), "recursion_limit": limit}
        modes: Any = ["custom", "values"]
        if self.door == "sync":
            out = list(self.agent.stream(given, config, stream_mode=modes))
        else:

            async def collect() -> list[Any]:
                return [one async for one in self.agent.astream(given, config, stream_mode=modes)]

            out = asyncio.run(collect())
        values = [payload for mode, payload in out if mode == "values"]
        self.asks = any("__interrupt__" in payload for payload in values)
        return [payload for mode, payload in out if mode == "custom"], values[-1]

    def run(self, given: Any, limit: int, *, resumes: bool = False, at: Any = None) -> None:
        if self.saver is None:
            self.prefixes.append([])
        old = self.stands() if at is None else {"todos": list(at.values["todos"])}
        before = old["todos"] if at or not self.parked else self.seen if resumes else self.kept
        since = len(self.model.requests)
        events, output = self.invoke(given, limit, at)
        asked = self.model.requests[since:]
        if not resumes:
            self.opened(given, events, output)
        self.bounded(asked, events, limit + 2 * resumes)
        self.listed(before, given, events, output)
        self.worded(asked)
        if self.asks:
            shown = [event["todos"] for event in events if event["type"] == "todos"]
            self.seen, self.kept = shown[-1] if shown else before, self.without_results()
        else:
            self.ended(output, events)

    def opened(self, given: Any, events: list[Any], output: dict[str, Any]) -> None:
        """See which settings are in force, and whether this was a new activation."""
        ledger = self.agent.get_state(CONFIG).values["todo_ledger"] if self.saver else {}
        overrides = ledger.get("settings") if self.saver else given.get("todo_settings")
        self.settings = apply_overrides(self.base, overrides)
        sources = next(event["sources"] for event in events if event["type"] == "activated")
        bound = 1 + self.settings.max_wake_cycles + self.settings.guard_retries
        bound += self.settings.on_guard_exhausted == "block"
        if sources == ["subagent_done"] and self.saver:  # it continues, unless nothing was there yet
            self.most = max(self.most, bound)
        else:
            self.turns, self.most, self.budget = 0, bound, self.settings.max_wake_cycles

    def bounded(self, asked: list[Any], events: list[Any], limit: int) -> None:
        """Check turns per activation and requests per run; a resume spends nothing on `activate`."""
        before = 0
        for request in asked:
            kind = request[-1].additional_kwargs.get("wakeloop", {}).get("kind", request[-1].type)
            self.turns += kind in ("human", "event", "wake", "guard", "activate") and len(request) != before
            before = len(request)
        wakes, earned = self.settings.max_wake_cycles, self.settings.earn_wakes
        told = [self.budget, *(event["budget"] for event in events if "budget" in event)]
        assert told == sorted(told)
        self.budget = told[-1]
        assert wakes <= self.budget <= wakes + bool(wakes) * earned
        assert self.turns <= self.most + self.budget - wakes
        explained = sum(event["type"] == "guard" and event["action"] == "explain" for event in events)
        assert explained <= 1
        assert len(asked) - explained <= (limit - 3) // 2
        assert len(asked) <= (limit - 2) // 2

    def listed(self, before: list[Any], given: Any, events: list[Any], output: dict[str, Any]) -> None:
        """Check that items change or go only by an event that names them, and none without an operation."""
        made = [c for m in output["messages"] if isinstance(m, AIMessage) for c in m.tool_calls]
        names = {call["name"] for call in made}
        dialect = get_dialect(self.base.dialect)
        may_go = (
            (isinstance(given, dict) and "todos" in given)
            or "put" in names
            or (dialect.replaces and names & dialect.writes)
            or names & {"todo__init", "todo__clear"}
        )
        was = before
        results = [str(m.text) for m in output["messages"] if isinstance(m, ToolMessage)]
        for event in (e for e in events if e["type"] == "todos"):
            now = event["todos"]
            assert set(changed_ids(diff_lists(was, now))) <= set(event["changed"])
            gone = [item for item in was if item["id"] not in {t["id"] for t in now}]
            assert not gone or may_go
            if dialect.replaces and "put" not in names and not isinstance(given, dict):
                for item in filter(is_open, gone):
                    assert any("dropped" in text and item["content"] in text for text in results)
            was = now
        if not self.asks:
            assert output["todos"] == was

    def worded(self, asked: list[Any]) -> None:
        """Check that requests grow; a new prompt begins when its words were switched."""
        active = get_dialect(self.base.dialect).is_active(self.settings)
        words = (active and self.settings.inject_todo_instructions, self.settings.prompts)
        if words != self.words and asked:
            self.prefixes.append([])
        self.words = words if asked else self.words
        self.prefixes[-1] += asked
        assert prompt_faults(self.prefixes[-1]) == []
        assert wire_faults(asked) == []

    def ended(self, output: dict[str, Any], events: list[Any]) -> None:
        """Check that the session matches the list, every ending has a reason, and the counters are right."""
        session, todos = output["todo_session"], output["todos"]
        assert session["reason"] in ENDINGS
        assert session["state"] == choose_state(session["reason"], count_open(todos))
        assert session["open"] == count_open(todos)
        wakes, earned = self.settings.max_wake_cycles, self.settings.earn_wakes
        assert self.budget <= session["budget"] <= wakes + bool(wakes) * earned
        assert 0 <= session["wakes"] <= session["budget"]
        assert timeless(events[-1:]) == [{"type": "parked", "session": session}]
        assert ("on" in session) is (session["state"] == "waiting")
        if self.saver is not None:
            assert session_of(self.agent.get_state(CONFIG)) == session

    @invariant()
    def stored(self) -> None:
        """Check that a thread keeps plain JSON: no negative number, no id twice, every call answered once."""
        if self.agent is None or self.saver is None:
            return
        values = dict(self.agent.get_state(CONFIG).values)
        messages = values.pop("messages", [])
        assert json.loads(json.dumps(values)) == values
        ledger = values.get("todo_ledger") or {}
        assert all(value >= 0 for value in ledger.values() if isinstance(value, int))
        assert all(spent >= 0 for spent in (ledger.get("todo_guard_retries") or {}).values())
        # what a tool has written is numbered afterwards
        todos = [] if self.parked else values.get("todos", [])
        for ids in ([str(t["id"]) for t in todos], [m.id for m in messages]):
            assert len(set(ids)) == len(ids)
        keys = [c["id"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
        answers = [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]
        assert len(set(keys)) == len(keys)
        if not self.agent.get_state(CONFIG).next:
            assert sorted(keys) == sorted(answers)


TestAnyRun = AnyRun.TestCase
TestAnyRun.settings = budget(25, stateful_step_count=8)
