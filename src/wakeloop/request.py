"""One request in the making: what the model is sent."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage

from wakeloop.channels import Messages, merge_messages
from wakeloop.dialects.base import Dialect
from wakeloop.marks import as_user, with_suffix
from wakeloop.prompts import fill
from wakeloop.settings import LoopSettings
from wakeloop.state import Ledger
from wakeloop.todos import Todo, count_open
from wakeloop.wire import Lines, is_legal, legal, system_prompt

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

    def say(self, name: str, **blanks: Any) -> str:
        """Return one of the package's texts, as these settings have it."""
        return fill(name, self.dialect.name, self.settings.prompts, **blanks)

    def seen_by_hook(self) -> dict[str, Any]:
        """Return the state that `pre_model_hook` is given."""
        return {key: value for key, value in self.state.items() if key not in UNSEEN}

    def hooked(self, result: Any) -> None:
        """Take over what the hook returned, and show the list again where its last showing is gone."""
        result = dict(result or {})
        if "llm_input_messages" in result:
            self.seen = Messages(merge_messages([], [result.pop("llm_input_messages")]))
            result.pop("messages", None)
        elif "messages" in result:
            given = result.pop("messages")
            self.writes += given if isinstance(given, list) else [given]
            self.kept = self.seen = merge_messages(self.messages, [given])
        self.update |= result
        if self.seen is not None and count_open(self.todos) and self.is_hidden(self.seen):
            self.seen = self.shown_again(self.seen)

    def is_hidden(self, seen: Sequence[AnyMessage]) -> bool:
        """Tell whether the last showing of the list is gone; without one, whether anything is."""
        there, shown = {m.id for m in seen}, self.ledger.get("shown")
        return shown not in there if shown else any(m.id not in there for m in self.messages)

    def shown_again(self, seen: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
        """Show the list once more at the tail: in the last tool result, or as a user message of its own."""
        listing = self.dialect.listing(self.todos, self.state["todo_goal"], self.settings)
        text = self.say("shown_again", list=listing)
        last = seen[-1] if seen else None
        stored = [m for m in self.kept if last is not None and m.id == last.id]
        if isinstance(last, ToolMessage) and stored and isinstance(stored[0], ToolMessage):
            new: AnyMessage = with_suffix(last, text)
            self.writes.append(with_suffix(stored[0], text))  # whole, whatever the hook has made of it
        else:
            new = as_user("nag", text)
            self.writes.append(new)
        self.ledger["shown"] = new.id or ""
        return merge_messages(seen, [[new]])

    def sent(self, prompt: SystemMessage | None, systems: Systems) -> list[AnyMessage]:
        """Return the messages of the request: the system prompt and a legal history.

        `prompt` is the caller's own; `systems` remembers system prompts that were put together before.
        """
        first: list[Any] = list(takewhile(lambda m: isinstance(m, SystemMessage), self.messages))
        head = [prompt, *first] if prompt is not None else first
        system = self.system(head, systems)
        wire = self.messages if self.seen is None else self.seen
        if not is_legal(wire):
            lines = Lines(self.say("unanswered"), self.say("broken_off"), self.say("empty_reply"))
            wire = legal(wire, head, lines)
        asked = wire and not isinstance(wire[-1], AIMessage)
        more = [] if asked else [as_user("activate", self.say("activate"))]
        return [*([system] if system else []), *wire, *more]

    def system(self, head: Sequence[SystemMessage], systems: Systems) -> SystemMessage | None:
        """Return the static system prompt, made once for the same head of a history."""
        instructions = self.dialect.instructions(self.settings)
        key = (instructions, *(str(m.content) for m in head))
        if key in systems:
            return systems[key]
        if len(systems) > REMEMBERED_PROMPTS:
            systems.clear()
        return systems.setdefault(key, system_prompt(head, instructions))
