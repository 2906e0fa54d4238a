"""Builds one request: system prompt, history, hook."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from time import monotonic
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
from wakeloop.loop.before_request import Notices, announce, place_notices
from wakeloop.loop.case import Costs
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.list_changes import describe_changes, render_every_item
from wakeloop.loop.nudge import find_unseen_lines
from wakeloop.loop.progress import describe_repeats, forget_cleared, needs_idle_reminder, note_pairs
from wakeloop.model.context_window import (
    EMPTIED,
    FULL,
    LARGEST_RESULT,
    Clearing,
    Estimate,
    find_visible,
    find_window,
)
from wakeloop.model.length_refusals import LengthRefusal
from wakeloop.model.usage import count_characters
from wakeloop.model.wire_order import join_system_prompt, make_legal
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.stream import ClearedEvent
from wakeloop.text.characters import shorten
from wakeloop.text.marks import append_to_result, kind_of, make_user_message, new_id, with_list_stamp
from wakeloop.todos.changes import stamp_of
from wakeloop.todos.items import Todo, count_open, select_for_nudge

REMEMBERED_PROMPTS = 64
REMEMBERED_CHANGES = 8
_HIDDEN_FROM_HOOK = ("todo_ledger", "remaining_steps")

Systems = dict[Any, SystemMessage | None]


@dataclass(frozen=True)
class RequestContext:
    """What a request needs besides the state. Without `costs` they are the graph's own."""

    dialect: Dialect
    settings: LoopSettings
    tools: Mapping[str, Any]
    prompt: SystemMessage | None
    systems: Systems  # system prompts that were joined before
    model_name: str
    window: int | None
    speaker: str | None = None  # the name that replies carry
    costs: Costs | None = None
    reviews_together: bool = False  # a person may decide calls together, which takes a superstep more
    clock: Callable[[], float] = monotonic


class Request:
    """What the model is sent, made of the state and what `pre_model_hook` returns.

    `seen` is the history as the hook changed it, or None. `kept` is the history as it will be stored.
    `writes` are messages to store next to the reply, `update` the hook's other channels. `cleared` is the
    event about what was cleared to make room, or None.
    """

    def __init__(
        self,
        state: Any,
        todos: Sequence[Todo],
        ledger: Ledger,
        settings: LoopSettings,
        context: RequestContext,
    ):
        self.state, self.todos, self.ledger = state, todos, ledger
        self.settings, self.context, self.dialect = settings, context, context.dialect
        self.clearing = Clearing(context.dialect, settings, context.tools)
        self.instructions = context.dialect.known_instructions(settings)
        self.prompt_size = 0
        self.cleared: ClearedEvent | None = None
        self.messages: list[AnyMessage] = state["messages"]
        self.seen: Sequence[AnyMessage] | None = None
        self.kept: Sequence[AnyMessage] = self.messages
        self.writes: list[BaseMessage] = []
        self.update: dict[str, Any] = {}
        self.summaries = frozenset(ledger.get("summaries", ()))

    def fill_prompt(self, name: str, **blanks: Any) -> str:
        """Return one of the package's prompts, with the overrides of these settings."""
        return fill_prompt(name, self.dialect.prompt_folder, self.settings.prompts, **blanks)

    def hook_state(self) -> dict[str, Any]:
        """Return the state that `pre_model_hook` gets."""
        return {key: value for key, value in self.state.items() if key not in _HIDDEN_FROM_HOOK}

    def apply_hook_result(self, result: Any, channels: frozenset[str]) -> None:
        """Take over what the hook returned. System messages that it wrote are not part of the prompt.

        Raises `SettingsError` for a key that is not a channel, which LangGraph would drop silently.
        """
        if not isinstance(result, Mapping | None):
            raise SettingsError(
                f"pre_model_hook must return a mapping, got {shorten(repr(result))}: put the messages of the "
                "request under llm_input_messages or messages."
            )
        result = dict(result or {})
        unknown = sorted(map(str, result.keys() - channels - {"llm_input_messages"}))
        if unknown:
            raise SettingsError(
                f"pre_model_hook returned {shorten(repr(unknown[0]))}, which is not a channel of the thread. "
                "Put the messages for the model under llm_input_messages or messages, and declare other keys "
                "in state_schema."
            )
        if "llm_input_messages" in result:
            self.seen = Messages(merge_messages([], [result.pop("llm_input_messages")]))
            result.pop("messages", None)
        elif "messages" in result:
            self._apply_hook_messages(result.pop("messages"))
        self.update |= result

    def _apply_hook_messages(self, messages: Any) -> None:
        """Store the messages of the hook, and note which system messages are its summaries."""
        if not isinstance(messages, list):
            messages = [messages]
        written = [_give_id(message) for message in messages]
        if any(isinstance(message, RemoveMessage) for message in written):
            # idle rounds are counted by calls and results that the hook may be about to remove
            note_pairs(self.messages, self.ledger, self.settings, self.dialect.tool_names)
        self.writes += written
        self.kept = self.seen = merge_messages(self.messages, [written])
        own = {message.id for message in self.messages} - self.summaries
        summaries = []
        for message in self.seen:
            if isinstance(message, SystemMessage) and message.id not in own:
                summaries.append(message.id or "")
        if summaries or self.summaries:
            self.ledger["summaries"] = summaries

    def say_changes(self, *, is_older: bool = False) -> None:
        """Say what others changed in the list, once: before each request that finds the model without it.

        If the changes are older than the graph's own last message, what that shows is not said again.
        """
        unseen = self.ledger.pop("unseen")
        last = self.messages[-1].id if self.messages else None
        is_own = bool(self.messages) and kind_of(self.messages[-1]) in ("wake", "guard", "activate", "event")
        is_shown = is_older and is_own and self.ledger.get("shown") == last
        shows_older = is_own and not is_older
        text, is_whole = describe_changes(
            unseen, self.dialect, self.settings, self.todos, self.state["todo_goal"], is_shown=is_shown
        )
        if not text:
            return
        injected = self.ledger.get("injected", ())
        if self.ledger.get("ruling") == "retry":
            sent = last not in injected
        else:  # a wake that got an empty reply, which is not stored, is the last of the run before
            sent = last in injected and last == self.ledger.get("tail")
        notices = Notices(changes=announce(text, self.settings, "changes"))
        filler = self.fill_prompt("continued")
        placed = place_notices(
            self.messages,
            notices,
            "nag",
            filler=filler,
            sent=sent,
            injected=injected,
            shows_older=shows_older,
        )
        placed[-1] = with_list_stamp(placed[-1], stamp_of(self.todos))
        self.store_writes(placed)
        said = placed[-1].id or ""
        if is_whole:
            self.ledger["shown"] = said
            self.ledger.pop("told", None)
        elif not is_shown:
            self.ledger["told"] = [*self.ledger.get("told", ()), said][-REMEMBERED_CHANGES:]

    def store_writes(self, writes: Sequence[BaseMessage]) -> None:
        """Write messages before the request is made."""
        self.writes += writes
        self.messages = self.kept = merge_messages(self.messages, [list(writes)])
        self.state = {**self.state, "messages": self.messages}

    def add_reminder(self, idle: int) -> None:
        """Append a reminder of idle rounds to the last result, if it is time for one, and store it."""
        if not needs_idle_reminder(idle, self.ledger, self.settings):
            return
        text = self.fill_prompt("repeating", **describe_repeats(self.messages, idle))
        last = next(message for message in reversed(self.messages) if isinstance(message, ToolMessage))
        self.store_writes([append_to_result(last, Notices(reminder=text).compose())])

    def is_list_hidden(self, seen: Sequence[AnyMessage]) -> bool:
        """Tell whether the model cannot see the list as last shown, or its later items.

        If the list was never shown, tell whether any message is missing.
        """
        present, shown = {message.id for message in seen}, self.ledger.get("shown")
        if not shown:
            return any(message.id not in present for message in self.messages)
        if any(said not in present for said in self.find_told(shown)):
            return True  # it would go by a list that others have changed since
        if shown not in present or self.dialect.replaces:
            return shown not in present
        listed, _ = select_for_nudge(self.todos, self.settings.nudge_items)
        unseen = find_unseen_lines(self.dialect, seen, listed, shown)
        return bool(unseen) and unseen != find_unseen_lines(self.dialect, self.messages, listed, shown)

    def find_told(self, shown: str) -> list[str]:
        """Return the ids of the messages that said changes after the list was last shown."""
        told = self.ledger.get("told", ())
        if not told:
            return []
        newest_first = takewhile(lambda message: message.id != shown, reversed(self.messages))
        later = {message.id for message in newest_first}
        return [said for said in told if said in later]

    def must_show_list(self, wire: Sequence[AnyMessage]) -> bool:
        """Tell whether the list has to be shown at the end, because a hook or rule 28 took it from sight."""
        left_out = "rounds" in self.ledger.get("cleared", {})
        if (self.seen is None and not left_out) or not count_open(self.todos):
            return False
        if self.seen is not None and self.is_list_hidden(wire):
            return True
        if not left_out or self.dialect.replaces:
            return False
        following, _ = select_for_nudge(self.todos, 1)
        return bool(find_unseen_lines(self.dialect, wire, following, self.ledger.get("shown", "")))

    def show_list_again(self, head: Sequence[SystemMessage], most: int = 0) -> None:
        """Show the list at the end once more: in the last tool result, or as a user message.

        Closed items are shown, too, if all have at most so many characters.
        """
        if self.seen is not None:  # a result that lost its call is not sent, and neither is a list in it
            self.seen = self.put_in_order(self.seen, head)
        text = render_every_item(self.dialect, self.settings, self.todos, self.state["todo_goal"], most)
        seen = self._history()
        last = seen[-1] if seen else None
        stored = None
        if isinstance(last, ToolMessage):
            stored = next((message for message in self.kept if message.id == last.id), None)
        new: AnyMessage = make_user_message("nag", text)
        kept = new
        if isinstance(last, ToolMessage) and isinstance(stored, ToolMessage):
            # the hook may have shortened the result: the history keeps all of it
            new, kept = append_to_result(last, text), append_to_result(stored, text)
        if self.seen is None:
            self.store_writes([kept])
        else:
            self.writes.append(kept)
            self.seen = merge_messages(seen, [[new]])
        self.ledger["shown"] = new.id or ""

    def build_messages(self) -> list[AnyMessage]:
        """Return the messages of the request: the system prompt and a legal history."""
        prompt = self.context.prompt
        head: list[SystemMessage] = [prompt] if prompt is not None else []
        for message in self.messages:
            if not isinstance(message, SystemMessage):
                break
            if message.id not in self.summaries:
                head.append(message)
        system = self.cached_system_prompt(head)
        self.prompt_size = 0 if system is None else count_characters(system)
        self.make_room(head)
        wire = self.put_in_order(self.clear_history(), head)
        if self.must_show_list(wire):
            self.show_list_again(head)
            wire = self.put_in_order(self.clear_history(), head)
        messages = [*wire]
        if system is not None:
            messages.insert(0, system)
        if not wire or isinstance(wire[-1], AIMessage):  # servers want something to answer
            text = announce(self.fill_prompt("activate"), self.settings, "activate")
            messages.append(make_user_message("activate", text))
        return messages

    def make_room(self, head: Sequence[SystemMessage]) -> None:
        """Clear more of the history where the request would nearly fill the model's window (rule 28)."""
        window = self.find_window()
        if window is None:
            return
        estimate, size = Estimate.read(self.ledger), self.count_sent()
        before = estimate.count_tokens(size)
        if before <= FULL * window:
            return
        most, full = (estimate.count_room(part * window) - self.prompt_size for part in (EMPTIED, FULL))
        largest = round(LARGEST_RESULT * window * estimate.per_token)
        old = self.ledger.get("cleared", {})
        kept = [self.ledger.get("shown", ""), *self.ledger.get("told", ())]
        new = self.clearing.plan(self._history(), {**old, "kept": kept}, most, full, largest)
        left = self.clearing.apply(self._history(), new)
        if self.prompt_size + sum(count_characters.of_all(left)) >= size:
            return  # all that is left is what never leaves
        self.ledger["cleared"] = new
        visible = find_visible(self.messages, self.ledger, "results", "rounds")
        forget_cleared(visible, self.ledger, self.settings, self.dialect.tool_names)
        if new.get("rounds") != old.get("rounds") and self.todos and self.dialect.is_active(self.settings):
            self.show_list_again(head, largest)
            self.ledger.pop("told", None)
            new["kept"] = []
        after = estimate.count_tokens(self.count_sent())
        self.cleared = {"type": "cleared", "before": before, "after": after, "window": window}

    def learn_window(self, refusal: LengthRefusal) -> None:
        """Note what a refusal for length says about the window, so that the next request is smaller."""
        estimate, size = Estimate.read(self.ledger), self.count_sent()
        guessed = estimate.count_tokens(size)
        named = [refusal.limit or guessed, refusal.asked, self.find_window()]
        window = min(filter(None, named), default=1)
        self.ledger["window"] = [self.context.model_name, window]
        estimate.update(size, max(refusal.asked or guessed, window + 1)).note(self.ledger, window)

    def note_usage(self, notes: Ledger, tokens: int) -> None:
        """Note how many tokens this request had, where the size of requests matters."""
        window = self.find_window()
        if window is not None:
            Estimate.read(notes).update(self.count_sent(), tokens).note(notes, window)

    def find_window(self) -> int | None:
        """Return the tokens that a request may have, or None."""
        return find_window(self.settings, self.ledger, self.context.model_name, self.context.window)

    def clear_history(self) -> Sequence[AnyMessage]:
        """Return the history as the model sees it, without the cleared parts."""
        history, cleared = self._history(), self.ledger.get("cleared")
        return self.clearing.apply(history, cleared) if cleared else history

    def _history(self) -> Sequence[AnyMessage]:
        """Return the history as the model sees it."""
        return self.messages if self.seen is None else self.seen

    def count_sent(self) -> int:
        """Count the characters of prompt and history as they are sent; only new messages are measured."""
        return self.prompt_size + sum(count_characters.of_all(self.clear_history()))

    def put_in_order(self, wire: Sequence[AnyMessage], head: Sequence[SystemMessage]) -> Sequence[AnyMessage]:
        """Return the messages in an order that every server accepts: unchanged if they are."""
        return make_legal(wire, head, self.fill_prompt)

    def cached_system_prompt(self, head: Sequence[SystemMessage]) -> SystemMessage | None:
        """Return the system prompt, joined once for the same system messages and instructions."""
        systems = self.context.systems
        key = (self.instructions, *[str(message.content) for message in head])
        if key in systems:
            return systems[key]
        if len(systems) > REMEMBERED_PROMPTS:
            systems.clear()
        return systems.setdefault(key, join_system_prompt(head, self.instructions))


def _give_id(message: Any) -> Any:
    """Give a message an id if it has none; LangGraph would create another one than the ledger notes."""
    if isinstance(message, BaseMessage) and message.id is None:
        return message.model_copy(update={"id": new_id()})
    return message
