"""One request in the making: what the model is sent."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from wakeloop.channels.conversation import Messages, merge_messages
from wakeloop.dialects.base import Dialect
from wakeloop.errors import SettingsError
from wakeloop.loop.idle_rounds import describe_repeats, needs_idle_reminder, note_pairs
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.nudge import find_unseen_lines
from wakeloop.model.legality import is_legal
from wakeloop.model.usage import count_characters
from wakeloop.model.wire_order import RepairTexts, join_system_prompt, make_legal
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten
from wakeloop.text.marks import append_to_result, make_user_message, new_id
from wakeloop.todos.items import Todo, count_open, select_for_nudge

REMEMBERED_PROMPTS = 64
UNSEEN = ("todo_ledger", "remaining_steps")  # what a hook is not given

Systems = dict[Any, SystemMessage | None]


class Request:
    """What goes to the model, from the state and what `pre_model_hook` makes of it.

    `writes` are messages that are stored beside the reply, `update` the hook's other channels.
    """

    def __init__(
        self, state: Any, todos: Sequence[Todo], ledger: Ledger, settings: LoopSettings, dialect: Dialect
    ):
        self.state, self.todos, self.ledger = state, todos, ledger
        self.settings, self.dialect = settings, dialect
        self.messages: list[AnyMessage] = state["messages"]
        self.seen: Sequence[AnyMessage] | None = None
        self.kept: Sequence[AnyMessage] = self.messages
        self.writes: list[BaseMessage] = []
        self.update: dict[str, Any] = {}
        self.summaries = frozenset(ledger.get("summaries", ()))

    def fill_prompt(self, name: str, **blanks: Any) -> str:
        """Return one of the package's texts, as these settings have it."""
        return fill_prompt(name, self.dialect.prompt_folder, self.settings.prompts, **blanks)

    def hook_state(self) -> dict[str, Any]:
        """Return the state that `pre_model_hook` is given."""
        return {key: value for key, value in self.state.items() if key not in UNSEEN}

    def apply_hook_result(self, result: Any, channels: frozenset[str]) -> None:
        """Take over what the hook returned; the system messages that it wrote are no part of the prompt.

        Raises `SettingsError` for a key that is no channel: LangGraph would drop it in silence.
        """
        if not isinstance(result, Mapping | None):
            raise SettingsError(
                f"pre_model_hook returned {shorten(repr(result))}: what the model is to see goes into a "
                "mapping, under llm_input_messages or messages."
            )
        result = dict(result or {})
        if lost := sorted(map(str, result.keys() - channels - {"llm_input_messages"})):
            raise SettingsError(
                f"pre_model_hook returned {shorten(repr(lost[0]))}, which is no channel of the thread: "
                "what the model is to see goes under llm_input_messages or messages, anything else needs a "
                "key of state_schema."
            )
        if "llm_input_messages" in result:
            self.seen = Messages(merge_messages([], [result.pop("llm_input_messages")]))
            result.pop("messages", None)
        elif "messages" in result:
            given = result.pop("messages")
            given = [_give_id(message) for message in (given if isinstance(given, list) else [given])]
            if any(isinstance(message, RemoveMessage) for message in given):
                note_pairs(self.messages, self.ledger, self.settings, self.dialect.tool_names)
            self.writes += given
            self.kept = self.seen = merge_messages(self.messages, [given])
            own = {m.id for m in self.messages} - self.summaries
            new = [m.id or "" for m in self.seen if isinstance(m, SystemMessage) and m.id not in own]
            if new or self.summaries:
                self.ledger["summaries"] = new
        self.update |= result

    def add_reminder(self, idle: int) -> None:
        """Tell of idle rounds where that is due: behind the last result, and stored beside the reply."""
        if needs_idle_reminder(idle, self.ledger, self.settings):
            text = self.fill_prompt("repeating", **describe_repeats(self.messages, idle))
            last = next(m for m in reversed(self.messages) if isinstance(m, ToolMessage))
            self.writes.append(append_to_result(last, text))
            self.messages = self.kept = merge_messages(self.messages, [self.writes])
            self.state = {**self.state, "messages": self.messages}

    def is_list_hidden(self, seen: Sequence[AnyMessage]) -> bool:
        """Tell whether the last showing of the list is gone, or what was added behind it.

        Without such a showing, whether anything is.
        """
        there, shown = {m.id for m in seen}, self.ledger.get("shown")
        if not shown:
            return any(m.id not in there for m in self.messages)
        if shown not in there or self.dialect.replaces:
            return shown not in there
        listed, _ = select_for_nudge(self.todos, self.settings.nudge_items)
        lost = find_unseen_lines(self.dialect, seen, listed, shown)
        return bool(lost) and lost != find_unseen_lines(self.dialect, self.messages, listed, shown)

    def show_list_again(self, seen: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
        """Show the list once more at the tail: in the last tool result, or as a user message of its own."""
        listing = self.dialect.render_list(self.todos, self.state["todo_goal"], self.settings)
        text = self.fill_prompt("shown_again", list=listing)
        last = seen[-1] if seen else None
        stored = [m for m in self.kept if last is not None and m.id == last.id]
        if isinstance(last, ToolMessage) and stored and isinstance(stored[0], ToolMessage):
            new: AnyMessage = append_to_result(last, text)
            self.writes.append(append_to_result(stored[0], text))  # whole, whatever the hook has made of it
        else:
            new = make_user_message("nag", text)
            self.writes.append(new)
        self.ledger["shown"] = new.id or ""
        return merge_messages(seen, [[new]])

    def build_messages(self, prompt: SystemMessage | None, systems: Systems) -> list[AnyMessage]:
        """Return the messages of the request: the system prompt and a legal history.

        `prompt` is the caller's own; `systems` remembers system prompts that were put together before.
        """
        first: list[Any] = list(takewhile(lambda m: isinstance(m, SystemMessage), self.messages))
        if self.summaries:
            first = [m for m in first if m.id not in self.summaries]
        head = [prompt, *first] if prompt is not None else first
        system = self.cached_system_prompt(head, systems)
        wire = self.put_in_order(self.messages if self.seen is None else self.seen, head)
        if self.seen is not None and count_open(self.todos) and self.is_list_hidden(wire):
            wire = self.put_in_order(self.show_list_again(wire), head)
        asked = wire and not isinstance(wire[-1], AIMessage)
        more = [] if asked else [make_user_message("activate", self.fill_prompt("activate"))]
        return [*([system] if system else []), *wire, *more]

    def count_characters(self) -> int:
        """Count roughly what is sent: the history as the model sees it, and the instructions."""
        seen = self.messages if self.seen is None else self.seen
        seen = seen if isinstance(seen, Messages) else Messages(seen)
        return len(self.dialect.instructions(self.settings)) + seen.total_size(count_characters)

    def put_in_order(self, wire: Sequence[AnyMessage], head: Sequence[SystemMessage]) -> Sequence[AnyMessage]:
        """Return the messages in an order that every server takes, as they are where they have it."""
        if is_legal(wire):
            return wire
        lines = RepairTexts(
            self.fill_prompt("unanswered"),
            self.fill_prompt("run_interrupted"),
            self.fill_prompt("empty_reply"),
        )
        return make_legal(wire, head, lines)

    def cached_system_prompt(self, head: Sequence[SystemMessage], systems: Systems) -> SystemMessage | None:
        """Return the static system prompt, made once for the same head of a history."""
        instructions = self.dialect.instructions(self.settings)
        key = (instructions, *(str(m.content) for m in head))
        if key in systems:
            return systems[key]
        if len(systems) > REMEMBERED_PROMPTS:
            systems.clear()
        return systems.setdefault(key, join_system_prompt(head, instructions))


def _give_id(message: Any) -> Any:
    """Give a message an id where it has none: LangGraph would mint another one than was noted."""
    nameless = isinstance(message, BaseMessage) and message.id is None
    return message.model_copy(update={"id": new_id()}) if nameless else message
