"""One request and its reply: from a state to its update."""

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from wakeloop.channels.conversation import Messages
from wakeloop.errors import InputError
from wakeloop.loop.case import choose_costs
from wakeloop.loop.item_notes import note_work
from wakeloop.loop.ledger import ROUND_KEYS, drop_keys
from wakeloop.loop.list_changes import note_unnoticed, note_vocabulary, note_whole_list
from wakeloop.loop.overrides import settings_in_force
from wakeloop.loop.progress import count_idle_rounds, end_if_looping, note_progress
from wakeloop.loop.replies import (
    NO_ANSWERS,
    NOT_STORED,
    OVER_WITH_REPLY,
    note_format_reply,
    note_refusal,
    note_reply,
    note_unreadable_reply,
)
from wakeloop.loop.silences import asks_for_call, note_calls, restart_counts
from wakeloop.loop.spending import (
    Usage,
    add_request,
    add_round,
    build_spent_event,
    find_spent_budget,
    note_list,
)
from wakeloop.loop.waits import MOST_LIMIT_WAITS, build_limit_entry
from wakeloop.model.reply import Reply, drop_calls, read_reply, with_speaker
from wakeloop.model.reply_watcher import ReplyWatcher, require_ai_message
from wakeloop.model.request import Request, RequestContext
from wakeloop.model.structured_output import read_structured_reply
from wakeloop.model.usage import measure_usage
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.traces import emit_event, stream_event
from wakeloop.state import adopt_list, copy_ledger, find_overruled, list_before
from wakeloop.stream import EndReason
from wakeloop.text.marks import find_last, find_list_stamp, kind_of, mark_no_answer, split_result_text
from wakeloop.text.thoughts import answer_text
from wakeloop.thread.steering import (
    Entry,
    StoreRead,
    build_steered_messages,
    find_ended_waits,
    is_steering_blocked,
    plan_read,
    take_entries,
)
from wakeloop.todos.changes import make_todos_event, stamp_of, write_all
from wakeloop.todos.items import count_open

MOST_REFUSALS = 3  # for length, in a row


class Exchange:
    """One request and its reply, from the state to the update. Raises `InputError` for a refused input."""

    def __init__(self, state: Any, context: RequestContext) -> None:
        self.context, self.state, self.began = context, state, context.clock()
        self.ledger = copy_ledger(state)
        if sentence := self.ledger.get("refused"):
            raise InputError(sentence)
        self.settings = settings_in_force(context.settings, self.ledger)
        self.messages: list[AnyMessage] = state["messages"]
        self.index = self.messages if isinstance(self.messages, Messages) else Messages(self.messages)
        self.todos = state["todos"]
        self.update: dict[str, Any] = {}
        self.hook_usage: list[Usage] = []  # of the models that the hook asks
        self.asking = self.ledger.get("asking")
        self.active = context.dialect.is_active(self.settings)
        self.asks_for_call = self.asking is None and asks_for_call(self.ledger)
        self.entries: Sequence[Entry] = ()  # that a person has steered in
        self.refusals = 0  # for length
        self.written: AIMessage | None = None  # the reply, if somebody wrote it in the model's place
        self.stores_reply = False  # whether the last of the written messages is the reply

    def end_without_request(self) -> dict[str, Any] | None:
        """Return the update that ends the run or puts its calls to a person again; None to ask the model."""
        if "standing" in self.ledger:
            return {"todo_ledger": drop_keys(self.ledger, frozenset(("standing",)))}
        names, tools = self.context.dialect.tool_names, self.context.tools
        self.idle = count_idle_rounds(self.messages, self.todos, self.ledger, self.settings, names, tools)
        add_round(self.ledger, self.messages)
        end: EndReason | None = "handed_over"
        if not self.state.get("todo_handoff"):
            # The final report is asked for because a budget is spent, so budgets do not stop it.
            spent = None if self.asking == "report" else find_spent_budget(self.ledger, self.settings)
            end = spent or end_if_looping(self.idle, self.settings)
        return None if end is None else {"todo_ledger": {**drop_keys(self.ledger, ROUND_KEYS), "end": end}}

    def plan_read(self) -> StoreRead | None:
        """Return the read of the store before this request, unless the last node has read it for that."""
        wanted = self.asking is None and "looked" not in self.ledger
        waiting_on = self.state.get("waiting_on")
        blocked = bool(waiting_on) and is_steering_blocked(waiting_on)
        return plan_read(self.ledger, wanted=wanted and not blocked)

    @computed_once
    def request(self) -> Request:
        """The request, after the last round's list and progress have been noted."""
        noted = self.ledger.get("unseen")
        written = adopt_list(self.todos, self.ledger)
        if written is not None:
            stream_event(make_todos_event(list_before(self.todos), written, find_overruled(self.todos)))
            self.todos = written
            self.update["todos"] = write_all(written)
        if noted is not None and self.was_list_replaced():
            note_whole_list(self.ledger)
        note_unnoticed(self.ledger, self.messages, self.todos)
        if self.active:
            note_vocabulary(self.ledger, self.todos, self.context.dialect)
        if self.entries:
            self.update |= take_entries(self.entries, self.ledger, self.todos, self.context.dialect)
        if "todos" in self.update:
            self.todos = self.update["todos"]["all"]
        note_list(self.ledger, self.todos, self.settings)
        note_progress(self.messages, self.ledger, self.context.dialect.tool_names)
        if self.settings.audit != "off":
            note_work(self.messages, self.ledger)
        request = Request(self.state, self.todos, self.ledger, self.settings, self.context)
        if self.entries:
            self.add_steered_words(request)
        if "unseen" in self.ledger and self.active:
            # a nudge that was written after the changes shows them
            request.say_changes(is_older=written is None and self.ledger["unseen"] == noted)
        if self.idle:
            request.add_reminder(self.idle)
        return request

    def add_steered_words(self, request: Request) -> None:
        """Put the words that a person has steered in into the request."""
        if words := build_steered_messages(self.entries, self.messages, request.fill_prompt("continued")):
            request.store_writes(words)
            restart_counts(self.ledger, self.settings, some_open=count_open(self.todos))
            self.update |= find_ended_waits(self.state.get("waiting_on"))
            self.idle = 0
            self.asks_for_call = False

    def was_list_replaced(self) -> bool:
        """Tell whether the message written for this request shows another list, as in a fork after it."""
        last = self.messages[-1:]
        if not last or last[0].id == self.ledger.get("tail"):  # of an earlier run, and older than the notes
            return False
        return find_list_stamp(last) not in (None, stamp_of(self.todos))

    @computed_once
    def wire(self) -> list[AnyMessage]:
        """The messages that are sent to the model."""
        wire = self.request.build_messages()
        if self.request.cleared is not None:
            stream_event(self.request.cleared)
            self.request.cleared = None
        return wire

    def takes_refusal(self, watcher: ReplyWatcher) -> bool:
        """Learn from a refusal for length; tell whether to send a smaller request. The third is the last."""
        if watcher.too_long is None:
            return False
        self.refusals += 1
        self.request.learn_window(watcher.too_long)
        self.__dict__.pop("wire", None)  # it is built anew
        return self.refusals < MOST_REFUSALS

    def end_refused(self, end: EndReason, **notes: int) -> dict[str, Any]:
        """Return the update that ends a run whose request was refused. What was said before it stays."""
        ended: Any = {**drop_keys(self.ledger, ROUND_KEYS), "end": end, **notes}
        written = {"messages": self.request.writes} if self.request.writes else {}
        return {**self.request.update, **self.update, **written, "todo_ledger": ended}

    def park_for_limit(self, until: float) -> dict[str, Any]:
        """Return the update that parks a run whose request was refused for a limit until this time."""
        parked = self.end_refused("waiting", limit_waits=self.ledger.get("limit_waits", 0) + 1)
        dropped = parked.get("waiting_on", {"drop": []})
        return {**parked, "waiting_on": {**dropped, "add": [build_limit_entry(until)]}}

    @property
    def may_wait(self) -> bool:
        """Whether the run may wait if this request is refused for a limit (rule 29)."""
        return self.ledger.get("limit_waits", 0) < MOST_LIMIT_WAITS

    def build_update(self, raw: Any, watcher: ReplyWatcher, *, may_call: bool) -> dict[str, Any]:
        """Return the update for a reply: the message, and the notes that the routers read.

        Unless the reply `may_call` tools, calls in it are dropped.
        """
        if watcher.too_long is not None:
            return self.end_refused("context_full")
        if watcher.limited_until is not None:
            return self.park_for_limit(watcher.limited_until)
        self.ledger.pop("limit_waits", None)
        lost = watcher.unreadable
        if lost is not None and lost.kind == "refused" and self.asking != "format":
            raw, lost = lost.message, None  # a client may raise a refusal: it is a reply all the same
        if self.asking == "format":
            self.store_structured(lost or raw, watcher)
        elif lost is not None and self.asking != "report":
            self.ledger = note_unreadable_reply(drop_keys(self.ledger, OVER_WITH_REPLY), self.settings)
        else:
            self.store_reply(raw if lost is None else AIMessage(""), watcher, may_call=may_call)
        if watcher.choice_refused:
            self.ledger["unforced"] = True
        used = measure_usage(raw if lost is None else lost.message, self.request.count_sent)
        if not used.estimated:
            self.request.note_usage(self.ledger, used.input)
        seconds = self.context.clock() - self.began
        paid = add_request(
            self.ledger, [used, *self.hook_usage], seconds, self.settings, self.context.model_name
        )
        emit_event(build_spent_event(self.ledger, self.settings, paid), self.ledger)
        return self._collect_update()

    def take_written_reply(self, reply: AIMessage, watcher: ReplyWatcher) -> dict[str, Any]:
        """Return the update for a reply that somebody wrote: it was neither requested nor paid for."""
        self.written = reply
        self.store_reply(reply, watcher, may_call=True)
        return self._collect_update()

    def _collect_update(self) -> dict[str, Any]:
        if self.request.writes:
            self.update["messages"] = self.request.writes
        return {**self.request.update, **self.update, "todo_ledger": self.ledger}

    def has_message(self, key: str) -> bool:
        """Tell whether the history has a message of this id."""
        return self.index.find(key) is not None

    def is_copied(self, text: str) -> bool:
        """Tell whether a string is the result of a todo write that was not made in this turn.

        It is one word for word, or has a form that only results have. A copy that shows the list is an answer
        where nothing is open, or where a person began the turn. One that was asked for again and comes again
        is meant: the model may have been asked what the list says.
        """
        if self.ledger.get("again") == "copied":
            last = find_last(AIMessage, self.messages)
            if last is not None and answer_text(last) == text:
                return False
        in_turn, asked_by_person = True, False
        copied = re.fullmatch(self.context.dialect.result_form, text, re.DOTALL) is not None
        for message in reversed(self.messages):
            if isinstance(message, ToolMessage) and message.name in self.context.dialect.writes:
                if split_result_text(message)[0].strip() == text:
                    if in_turn:
                        return False
                    copied = True
                    break
            elif isinstance(message, HumanMessage) and in_turn and kind_of(message) != "retry":
                in_turn, asked_by_person = False, kind_of(message) not in ("wake", "guard")
        if not copied:
            return False
        shows_list = any(todo["content"] in text for todo in self.todos)
        return not (shows_list and (asked_by_person or not count_open(self.todos)))

    def read_reply(self, raw: AIMessage, watcher: ReplyWatcher, *, may_call: bool) -> Reply:
        """Read a reply: its text, its calls, what is wrong with it."""
        return read_reply(
            raw,
            self.context.dialect if self.active else None,
            self.context.tools,
            used=self.index.has_result,
            known=self.has_message if raw is not self.written else lambda _: False,
            fill=self.request.fill_prompt,
            broken_arguments=watcher.broken_arguments,
            must_finish=watcher.must_finish,
            may_call=may_call,
            prompts=self.settings.prompts,
            is_copied=self.is_copied,
            runs_printed=self.settings.printed_calls == "run",
        )

    def store_reply(self, raw: Any, watcher: ReplyWatcher, *, may_call: bool) -> None:
        """Note what a reply means, and store it unless the request is to be sent again."""
        message = require_ai_message(raw)
        placeholder = self.request.fill_prompt("no_text") if self.asking == "report" else ""
        asked = message if may_call else drop_calls(message, placeholder)
        reply = self.read_reply(asked, watcher, may_call=may_call)
        if self.asking in ("explain", "report"):
            self.ledger = drop_keys(self.ledger, OVER_WITH_REPLY)
            if reply.refused:
                self.ledger = note_refusal(self.ledger)
        else:
            self.ledger = note_reply(
                self.ledger,
                reply,
                self.settings,
                open_count=count_open(self.todos),
                steps_left=self.state["remaining_steps"],
                costs=self.context.costs
                or choose_costs(self.settings, reviews=self.context.reviews_together),
            )
            names = [call["name"] for call in reply.message.tool_calls]
            note_calls(self.ledger, names, forced=watcher.forced)
        again = self.ledger.get("again")
        if again in NOT_STORED or (again in NO_ANSWERS and not reply.text):
            return
        self.stores_reply = True
        stored = with_speaker(self.context.speaker, reply.message)
        # a last word is not asked for again, but a faked result is not an answer there either
        why = "faked" if self.asking is not None and reply.kind == "faked" else again
        self.request.writes.append(mark_no_answer(stored, why) if why in NO_ANSWERS else stored)

    def store_structured(self, result: Any, watcher: ReplyWatcher) -> None:
        """Store a structured result as plain JSON and its text in the history; ask again if it is invalid."""
        no_text = self.request.fill_prompt("no_text")
        cut, must_finish = bool(watcher.broken_arguments), watcher.must_finish
        read = read_structured_reply(
            result, no_text, known=self.has_message, cut=cut, must_finish=must_finish
        )
        self.ledger = note_format_reply(
            self.ledger, read.problem, self.settings, cut=read.cut, refused=read.refused
        )
        if read.problem is None and not read.refused:
            self.update["structured_response"] = read.value
        self.stores_reply = True
        self.request.writes.append(with_speaker(self.context.speaker, read.message))
