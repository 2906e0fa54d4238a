"""Opens an activation: input, repairs, counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime

from wakeloop.channels import Goal, Overrides
from wakeloop.dialects.base import Dialect
from wakeloop.errors import SettingsError, VerifyError
from wakeloop.events import todos_changed
from wakeloop.inline import Node
from wakeloop.marks import as_assistant, as_user, kind_of, mark, new_id, unmarked
from wakeloop.prompts import fill
from wakeloop.settings import LoopSettings, check_overrides, effective
from wakeloop.state import Ledger, TodoState, WakeEvent, ledger_of
from wakeloop.todos import Todo, count_open, is_open, next_number, number

PASSIVE = frozenset(("subagent_done", "cron", "kick"))
CARRIED = (  # what outlives an activation
    "todo_stale_iterations",
    "todo_guard_suppressed",
    "next_id",
    "refusals",
    "shown",
    "events",
    "tail",
)
REMEMBERED_EVENTS = 64


@dataclass(frozen=True, eq=False)
class Activate(Node):
    """Open an activation, or continue one for a subagent's result alone."""

    dialect: Dialect
    settings: LoopSettings
    asynchronous_verify: bool
    todo_tools: bool

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the update that the activation begins with."""
        if self.asynchronous_verify:
            raise VerifyError("This agent's verify is asynchronous: run it with ainvoke or astream.")
        return self.opened(state)

    async def acall(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the same update; an asynchronous verify is fine here."""
        return self.opened(state)

    def opened(self, state: TodoState) -> dict[str, Any]:
        """Refuse bad input, or reset what an activation resets and put its input in order."""
        runtime = get_runtime()
        old = ledger_of(state)
        todos = state["todos"]
        try:
            overrides = self.overrides(_asked_for(state["todo_settings"], runtime.context))
        except SettingsError as error:
            return _refused(state, old, str(error))
        if fault := getattr(todos, "fault", None):
            return _refused(state, old, f"The input is refused: {fault}.")

        update: dict[str, Any] = {}
        next_id = old.get("next_id", 1)
        before = getattr(todos, "before", None)  # of an input; another agent's list may lack ids, too
        if before is not None or any("id" not in todo for todo in todos):
            todos, next_id = number(todos, next_number(before or (), next_id))
            update["todos"] = {"all": todos}
            if todos != (before or []):  # a parent may pass on what the thread has already
                runtime.stream_writer(todos_changed(before or (), todos))
        settings = effective(self.settings, overrides)
        opening = Opening.of(state, old)
        ledger = self.counted(old, opening, todos, settings)
        ledger["next_id"] = next_id
        if overrides:
            ledger["settings"] = overrides
        messages, marked = self.put_in_order(state, old, opening, todos, settings)
        ledger["next"] = self.first_step(opening, ledger, todos)
        if messages and (opening.came_in or ledger["next"] == "call_model"):
            update["messages"] = messages
        ledger["injected"] = marked
        if opening.events or state.get("todo_inbox"):
            update["todo_inbox"] = []
            seen = [*ledger.get("events", ()), *(e["id"] for e in opening.events if e.get("id"))]
            ledger["events"] = seen[-REMEMBERED_EVENTS:]
        if state.get("todo_handoff"):
            update["todo_handoff"] = {"clear": True}
        if state.get("structured_response") is not None:
            update["structured_response"] = None
        counts = {"open": count_open(todos), "budget": settings.max_wake_cycles}
        runtime.stream_writer({"type": "activated", "sources": opening.sources, **counts})
        wakes = ledger.get("wake_cycles", 0)
        update["todo_session"] = {"state": "running", "reason": None, "wakes": wakes, **counts}
        update["todo_ledger"] = ledger
        return update

    def overrides(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Check what a thread overrides, also against what its model can do."""
        overrides = check_overrides(self.settings, asked)
        if not self.todo_tools and self.dialect.active(effective(self.settings, overrides)):
            raise SettingsError("This agent's model cannot call tools, so auto_continue stays off.")
        return overrides

    def counted(
        self, old: Ledger, opening: "Opening", todos: Sequence[Todo], settings: LoopSettings
    ) -> Ledger:
        """Return the counters to begin with: all anew, or one cycle more for a subagent's result."""
        if opening.continues:
            ledger = ledger_of({"todo_ledger": old})
            ledger.pop("refused", None)
            spent = ledger.get("wake_cycles", 0)
            ledger["wake_cycles"] = min(spent + 1, settings.max_wake_cycles)
            ledger["end"] = "wake_budget" if spent >= settings.max_wake_cycles else None
            ledger |= {
                "waking": True,
                "worked": False,
                "open_at_wake": [t["id"] for t in todos if is_open(t)],
            }
            return ledger
        ledger = ledger_of({"todo_ledger": {key: value for key, value in old.items() if key in CARRIED}})
        ledger |= {"wake_cycles": 0, "idle_wakes": 0, "todo_guard_retries": {}, "todo_guard_blocked": None}
        ledger.setdefault("todo_stale_iterations", 0)
        ledger.setdefault("todo_guard_suppressed", False)
        ledger["todo_finalization_correction"] = None
        ledger["peak"] = sum(not is_open(todo) for todo in todos)
        return ledger

    def first_step(self, opening: "Opening", ledger: Ledger, todos: Sequence[Todo]) -> str:
        """Ask the model, unless nothing asks for it."""
        if opening.continues and ledger.get("end"):
            return "finalization_guard"
        if opening.waiting and not opening.new_input and opening.passive:
            return "finalization_guard"
        idle = not (opening.came_in or count_open(todos))
        return "finalization_guard" if idle else "call_model"

    def put_in_order(
        self, state: TodoState, old: Ledger, opening: "Opening", todos: Sequence[Todo], settings: LoopSettings
    ) -> tuple[list[BaseMessage], list[str]]:
        """Return what makes the history legal: repairs where a run broke off, the input behind them.

        Also the ids of the graph's own among the user messages that wait for an answer.
        """
        messages = state["messages"]
        tail = list(takewhile(lambda m: m.type in ("human", "system"), reversed(messages)))[::-1]
        head = messages[: len(messages) - len(tail)]
        clean = [m if m.id in old.get("injected", ()) else unmarked(m) for m in tail]
        repairs = self.repairs(head, settings)
        given = head[_outside(state, old) :]
        writes: list[BaseMessage] = [new for m in given if (new := unmarked(m)) is not m]
        if repairs:
            writes += [*(RemoveMessage(m.id or "") for m in tail), *repairs, *clean]
        else:
            writes += [new for new, m in zip(clean, tail, strict=True) if new is not m]
        arrived = opening.messages()
        if not arrived and not any(isinstance(m, HumanMessage) for m in clean):
            text = (
                self.dialect.nudge(todos, state["todo_goal"], settings)
                if count_open(todos)
                else fill("activate", self.dialect.name, settings.prompts)
            )
            arrived = [as_user("activate", text)]
        return [*writes, *arrived], [m.id or "" for m in (*clean, *arrived) if kind_of(m)]

    def repairs(self, head: Sequence[AnyMessage], settings: LoopSettings) -> list[BaseMessage]:
        """Answer the calls that a broken run left open and close it with a line."""
        results_behind = takewhile(lambda m: isinstance(m, ToolMessage), reversed(head))
        answered = {m.tool_call_id for m in results_behind if isinstance(m, ToolMessage)}
        last = next((m for m in reversed(head) if not isinstance(m, ToolMessage)), None)
        calls = last.tool_calls if isinstance(last, AIMessage) else []
        results: list[BaseMessage] = []
        for call in calls:
            if call["id"] in answered:
                continue
            name = "unanswered_todo" if call["name"] in self.dialect.names else "unanswered"
            text = fill(name, self.dialect.name, settings.prompts)
            results.append(
                ToolMessage(
                    text,
                    id=new_id(),
                    name=call["name"],
                    tool_call_id=call["id"] or "",
                    status="error",
                    additional_kwargs=mark("repair"),
                )
            )
        if results or (head and isinstance(head[-1], ToolMessage)):
            results.append(as_assistant("repair", fill("broken_off", self.dialect.name, settings.prompts)))
        return results


@dataclass(frozen=True)
class Opening:
    """What an input brought."""

    new_input: bool
    events: tuple[WakeEvent, ...]
    waiting: bool
    known: bool

    @classmethod
    def of(cls, state: TodoState, old: Ledger) -> "Opening":
        """Read the input off the state; an event that was seen before is ignored."""
        messages = state["messages"]
        seen = set(old.get("events", ()))
        fresh: dict[str, WakeEvent] = {}
        for place, event in enumerate(state.get("todo_inbox") or ()):
            if event.get("id") not in seen:
                fresh.setdefault(event.get("id") or f"#{place}", event)
        return cls(
            new_input=bool(messages) and messages[-1].id != old.get("tail"),
            events=tuple(fresh.values()),
            waiting=bool(state.get("waiting_on")),
            known=bool(old),
        )

    @property
    def passive(self) -> bool:
        """Whether no person and no peer is among what came in."""
        return all(event.get("kind") in PASSIVE for event in self.events)

    @property
    def continues(self) -> bool:
        """Whether only subagents' results came in: they continue the activation."""
        kinds = {event.get("kind") for event in self.events}
        return self.known and not self.new_input and kinds == {"subagent_done"}

    @property
    def came_in(self) -> bool:
        """Whether anything came in that the model should see."""
        return self.new_input or bool(self.messages())

    @property
    def sources(self) -> list[str]:
        """What woke this activation, once each."""
        kinds = [*(["human"] if self.new_input else []), *(str(e.get("kind")) for e in self.events)]
        return list(dict.fromkeys(kinds)) or ["kick"]

    def messages(self) -> list[BaseMessage]:
        """Turn events into messages: a person's words as they are, the others as one marked message."""
        people = [e for e in self.events if e.get("kind") == "human" and e.get("text")]
        others = [e for e in self.events if e.get("kind") != "human" and e.get("text")]
        written: list[BaseMessage] = [HumanMessage(e["text"], id=_event_id(e)) for e in people]
        if others:
            text = "\n\n".join(f"[{_label(e)}] {e['text']}" for e in others)
            kinds = list(dict.fromkeys(str(e.get("kind")) for e in others))
            marked = mark("event", events=[str(e.get("id", "")) for e in others], kinds=kinds)
            written.append(HumanMessage(text, id=_event_id(others[0]), additional_kwargs=marked))
        return written


def _outside(state: TodoState, old: Ledger) -> int:
    """Return the place from which all messages came with this input, as far as that can be told.

    Not where a run broke off: behind its end stands what it wrote itself. Nor on a new thread: a history that
    a caller or a parent hands on may hold what the graph wrote there.
    """
    messages = state["messages"]
    if (state.get("todo_session") or {}).get("reason") is None:
        return len(messages)
    return next((i + 1 for i, m in enumerate(messages) if m.id == old.get("tail")), len(messages))


def _event_id(event: WakeEvent) -> str:
    return f"event-{event['id']}" if event.get("id") else new_id()


def _label(event: WakeEvent) -> str:
    sender = event.get("sender")
    return f"{event.get('kind')} from {sender}" if sender else str(event.get("kind"))


def _asked_for(channel: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Join a thread's settings and the context's, which rank alike; the context's are newer."""
    given = (
        context.get("todo_settings")
        if isinstance(context, Mapping)
        else getattr(context, "todo_settings", None)
    )
    if given is None:
        return dict(channel)
    if not isinstance(given, Mapping):
        raise SettingsError(
            f"The context's todo_settings must be a mapping of setting to value, not {given!r}."
        )
    return {**channel, **given}


def _refused(state: TodoState, old: Ledger, sentence: str) -> dict[str, Any]:
    """Put list, goal and settings back as they were; `call_model` raises the sentence."""
    update: dict[str, Any] = {"todo_ledger": {**old, "refused": sentence, "next": "call_model"}}
    before = getattr(state["todos"], "before", None)
    if before is not None:
        update["todos"] = {"all": before}
    if isinstance(state["todo_goal"], Goal):
        update["todo_goal"] = state["todo_goal"].before
    if isinstance(state["todo_settings"], Overrides):
        update["todo_settings"] = dict(state["todo_settings"].before or {})
    return update
