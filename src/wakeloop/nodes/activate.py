"""Opens an activation: input, repairs, counters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import time
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime

from wakeloop.channels.reducers import Goal, Overrides
from wakeloop.channels.todo_channels import SessionUpdate
from wakeloop.channels.todo_list import check_channels
from wakeloop.dialects.base import Dialect
from wakeloop.errors import InputError, SettingsError
from wakeloop.loop.activation import OUTCOME_KEYS, begin_activation, continue_activation
from wakeloop.loop.before_request import Notices, announce, place_notices
from wakeloop.loop.goal import begin_goal, build_wait_entry, is_unmet
from wakeloop.loop.inbox import find_owed_replies
from wakeloop.loop.ledger import Ledger, drop_keys, keep_round, read_notes
from wakeloop.loop.list_changes import find_unchanged, note_unnoticed, note_vocabulary, note_whole_list
from wakeloop.loop.nudge import build_nudge, name_old_items, render_given_list, render_missing
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.loop.silences import Doubt, doubts_topics, note_doubt
from wakeloop.loop.spending import check_price, note_list
from wakeloop.loop.waits import LONGEST_WAIT, render_ended_waits
from wakeloop.model.tool_results import find_unanswered, last_calls
from wakeloop.platform.checkpointers import has_checkpointer
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import emit_event, stream_event
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.state import TodoState, list_before, note_untaken
from wakeloop.text.marks import find_last, make_user_message, with_list_stamp
from wakeloop.thread.concurrent_runs import NESTED, find_activation_start
from wakeloop.thread.inputs import (
    InputVersion,
    ThreadInput,
    discard_stale_input,
    find_inbox_fault,
    merge_settings,
)
from wakeloop.thread.judges import Judges, Play, Query, take_verdict
from wakeloop.thread.repair import Repairs, plan_repairs
from wakeloop.thread.steering import Entry, is_steering_blocked, plan_read, query_store, take_entries
from wakeloop.todos.changes import make_todos_event, stamp_of, write_all
from wakeloop.todos.items import (
    OperationRefused,
    Todo,
    assign_ids,
    count_items,
    count_open,
    next_free_number,
)

DROPPED_BY_REPEAT = frozenset(("end", "unasked", "refused"))  # notes of a run that waited for a limit
ON_HOLD = (
    "The thread is on hold, so its events were not taken. Send a person's message, or release it with "
    "release_thread(agent, config)."
)


@dataclass(frozen=True)
class Input:
    """An input, checked and completed.

    `given` holds the channels as they came; in `state` the thread's own list and goal replace an outdated
    list that was sent back. `todos` have their ids; `next_id` and `writes` are the list's new numbers.
    """

    given: Any
    state: Any
    old: Ledger
    sent: InputVersion
    opening: ThreadInput
    overrides: dict[str, Any]
    settings: LoopSettings
    todos: list[Todo]
    next_id: int
    writes: int

    @property
    def has_new_list(self) -> bool:
        """Whether the list came from outside, and differs from the thread's own."""
        return self.writes != self.sent.newest


@dataclass(frozen=True, eq=False)
class Activate(Node):
    """Open an activation, or continue one for a subagent's result alone."""

    dialect: Dialect
    settings: LoopSettings
    judges: Judges
    todo_tools: bool
    reviews: bool = False  # whether a person decides calls of tools
    guarded: bool = True  # whether the graph refuses an input that would drop a question
    model: str | None = ""  # its name, for its price; None where only a request shows it
    clock: Callable[[], float] = time

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the update that the activation begins with."""
        self.judges.refuse_asynchronous()  # now, and not when the first item is completed
        return self.judges.finish(self.open_activation(state, config))

    async def acall(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the same update; asynchronous judges are fine here."""
        return await self.judges.afinish(self.open_activation(state, config))

    def open_activation(self, state: Any, config: RunnableConfig) -> Play[dict[str, Any]]:
        """Read the input, begin the notes, and write the update; or refuse the input."""
        old: Ledger = {**read_notes(state)}
        check_channels(state)
        entries = yield from self.read_entries(state, old)
        state = add_steered_events(state, entries)
        try:
            found = self.read_input(state, old)
        except (SettingsError, OperationRefused) as refusal:
            # An error raised here would leave the bad input in the thread, and every later run would fail.
            return _refuse_input(state, old, str(refusal))
        if not has_checkpointer(config):
            refuse_unanswerable(reviews=self.reviews, plans=found.settings.approve_plan != "off")
        notes = self.begin_notes(found, config)
        edits = take_entries(entries, notes, found.todos, self.dialect)
        if "todos" in edits:
            found = replace(found, todos=edits["todos"]["all"])
        if standing := self.find_standing_calls(found.state, old):
            notes |= {**keep_round(old), "standing": standing}
        awaited: list[Any] = []
        late = [*found.opening.late_waits]
        if not standing and self.asks_goal_first(found):
            verdict = yield Query({**found.state, "todos": found.todos})
            take_verdict(notes, verdict)
            if verdict.kind == "wait":
                entry = build_wait_entry(verdict, found.opening.now, found.opening.condition_since)
                if found.opening.now - entry["since"] < LONGEST_WAIT:
                    awaited = [entry]
                else:
                    notes["goal"] = "due"
                    late.append(entry)
        if not standing and is_unasked(found.opening, notes, found.todos, ended=bool(late)):
            notes["unasked"] = True
        update = {**edits, **self.write_update(found, notes, late)}
        if awaited:
            update["waiting_on"] = {"drop": [], **update.get("waiting_on", {}), "add": awaited}
        return update

    def read_entries(self, state: Any, old: Ledger) -> Play[list[Entry]]:
        """Read what a person has steered in, unless the thread is on hold or waits for an approval."""
        if find_inbox_fault(state):
            return []
        is_spoken = ThreadInput.read(state, old, self.clock()).is_spoken
        closed = is_steering_blocked(state.get("waiting_on")) and not is_spoken
        wanted = not closed and not self.find_standing_calls(state, old)
        return (yield from query_store(plan_read(old, wanted=wanted)))

    # -- the three steps ---------------------------------------------------------------------------------

    def read_input(self, given: Any, old: Ledger) -> Input:
        """Check what came in and give ids to its list. Raises `SettingsError` and `OperationRefused`."""
        sent = InputVersion.read(given, old)
        state: Any = discard_stale_input(given, sent)
        asked = merge_settings(state["todo_settings"], get_runtime().context)
        overrides = self.check_overrides(asked)
        set_aside = [getattr(state[name], "fault", None) for name in ("todo_settings", "todos")]
        if fault := sent.fault or next(filter(None, set_aside), None) or find_inbox_fault(state):
            raise OperationRefused(f"The input is refused: {fault}.")
        opening = ThreadInput.read(state, old, self.clock())
        if opening.is_held and not {"kick"}.issuperset(opening.kinds):
            raise OperationRefused(ON_HOLD)
        if (
            opening.continues_activation
            and not overrides
            and not isinstance(state["todo_settings"], Overrides)
        ):
            overrides = old.get("settings", {})  # those of the activation, which may be a context's
        settings = apply_overrides(self.settings, overrides)
        numbers = _number_items(state["todos"], old, sent.newest)
        return Input(given, state, old, sent, opening, overrides, settings, *numbers)

    def begin_notes(self, found: Input, config: RunnableConfig) -> Ledger:
        """Return the notes of a new activation, or those of the one that a subagent's result continues."""
        opening, settings, todos = found.opening, found.settings, found.todos
        if opening.repeats_request:
            notes = drop_keys(found.old, DROPPED_BY_REPEAT)
        elif opening.continues_activation:
            notes = continue_activation(found.old, todos, settings, waiting=opening.is_waiting)
        else:
            # A kick with nothing open asks nothing of the model, so its run ends as the one before it did.
            asks_nothing = not (opening.needs_reply or opening.is_unanswered or count_open(todos))
            notes = begin_activation(found.old, todos, keep=OUTCOME_KEYS if asks_nothing else ())
            begin_goal(
                notes,
                has_goal=self.judges.done_when is not None,
                by_peers=opening.by_peers,
                says_nothing=not opening.needs_reply,
            )
        if "looked" in found.old:
            notes["looked"] = True
        notes |= {"next_id": found.next_id, "budget": settings.max_wake_cycles, "writes": found.writes}
        note_list(notes, todos, settings, begins=True)
        self.note_unseen(found, notes)
        if began := find_activation_start(config, found.state["remaining_steps"]):
            notes["began"] = list(began)
        if found.overrides:
            notes["settings"] = found.overrides
        return notes

    def note_unseen(self, found: Input, notes: Ledger) -> None:
        """Note what others changed in a list that the model has seen."""
        if found.has_new_list and found.old:
            note_untaken(notes, found.state["todos"], found.todos)
        elif found.has_new_list and not count_open(found.todos) and count_items(found.todos)["blocked"]:
            note_whole_list(notes)  # a list that is given to a new thread is shown where something is open
        note_unnoticed(notes, found.state["messages"], found.todos, is_new_thread=not found.old)
        if self.uses_list(found.settings):
            note_vocabulary(notes, found.todos, self.dialect)

    def write_update(self, found: Input, notes: Ledger, late: Sequence[Any] = ()) -> dict[str, Any]:
        """Write the channels that the input changes, and stream its events."""
        state, opening = found.state, found.opening
        update: dict[str, Any] = {}
        if found.todos is not found.given["todos"]:
            update["todos"] = write_all(found.todos)
        if found.sent.echo is not None:
            update["todo_goal"] = state["todo_goal"]
        messages, reasons = list[BaseMessage](), list[str]()
        # A request that is made again says what it said, unless an agent has closed its round with a line.
        if not opening.repeats_request or isinstance(state["messages"][-1], AIMessage):
            messages, reasons = self.build_messages(found, notes, late)
        # Where the model has nothing to do, the conversation does not grow.
        if messages and (opening.needs_reply or not notes.get("unasked")):
            update["messages"] = messages
        update |= opening.settle(state, notes)
        if state.get("todo_handoff"):
            update["todo_handoff"] = {"clear": True}
        if state.get("structured_response") is not None:
            update["structured_response"] = None  # the last activation's answer
        self.report_events(found, notes, reasons)
        return {**update, "todo_session": {"state": "running", "reason": None}, "todo_ledger": notes}

    def find_standing_calls(self, state: Any, old: Ledger) -> list[str]:
        """Return the calls that were put to a person when an input came in the place of the answer.

        The graph's own `invoke` refuses such an input. A parent graph and `create_agent` have dropped the
        question, so it is put again.
        """
        info = get_runtime().execution_info
        if self.guarded and (info is None or NESTED not in info.checkpoint_ns):
            return []
        waited = find_unanswered(last_calls(state["messages"]), state["messages"]) if "nag" in old else []
        if old.get("plan") in ("due", "judged"):
            return [call["id"] for call in waited]
        decided = [call["id"] for call in state.get("todo_decided") or ()]
        reviews = {key for key in old.get("reviews", ()) if key not in decided}
        return [call["id"] for call in waited if call["id"] in reviews]

    def asks_goal_first(self, found: Input) -> bool:
        """Tell whether `done_when` is asked before any request.

        That is so where nobody says anything to the model: after a verdict that may have changed meanwhile,
        and with nothing open, where only an unmet goal gives the model something to do.
        """
        opening, known = found.opening, found.old.get("goal")
        if self.judges.done_when is None or opening.continues_activation or opening.repeats_request:
            return False
        if opening.needs_reply or opening.is_waiting or known == "unmet":
            return False
        return known in ("met", "impossible", "wait") or not count_open(found.todos)

    # -- what they use -----------------------------------------------------------------------------------

    def report_events(self, found: Input, notes: Ledger, reasons: list[str]) -> None:
        """Stream the events of a list from outside, an outdated list, the activation, and its wake."""
        if found.has_new_list:
            stream_event(make_todos_event(list_before(found.state["todos"]), found.todos))
        if found.sent.echo is not None:
            stream_event(found.sent.echo)
        counts = {"open": count_open(found.todos), "budget": notes["budget"]}
        emit_event({"type": "activated", "sources": found.opening.sources, **counts}, notes)
        if found.opening.is_clock and not notes.get("unasked"):
            reasons = ["wait", *reasons]
        if reasons:
            emit_event({"type": "wake", "cycle": notes["wake_cycles"], **counts, "reasons": reasons}, notes)

    def build_messages(
        self, found: Input, notes: Ledger, late: Sequence[Any]
    ) -> tuple[list[BaseMessage], list[str]]:
        """Return the messages made from the input, and the reasons if it counts as a wake.

        A subagent's result that is answered comes in one message with everything that a nudge would say.
        """
        state, opening, settings = found.state, found.opening, found.settings
        events = opening.format_events(self.fill_prompt(settings, "no_text"))
        owed = [*find_owed_replies(state), *find_owed_replies({"owed_replies": opening.owed_replies})]
        wakes = opening.continues_activation and not notes.get("unasked")
        results = events if wakes else ""
        doubt: Doubt | None = "question" if opening.leaves_question else None
        note_doubt(notes, doubt, subagents=False)
        text, reasons = build_nudge(
            self.dialect, settings, found.todos, state["todo_goal"], owed, results, doubt=doubt
        )
        waited = render_ended_waits(late, opening.kicked_work, settings, self.dialect.prompt_folder)
        # where the input says something, its message says this, too
        with_input, alone = (waited, "") if opening.needs_reply else ("", waited)
        if wakes:
            text = Notices(waited=with_input, nudge=text).compose()
        arrived = opening.build_messages(text if wakes else events)
        shows_list = bool(wakes and arrived and count_open(found.todos))
        if not wakes:
            reasons = []
            changes = self.render_new_list(found, arrived)
            earlier = self.name_old_items(found, notes)
            notices = Notices(changes=changes, earlier=earlier, waited=with_input)
            filler = self.fill_prompt(settings, "continued")
            placed = place_notices(arrived, notices, "activate", filler=filler)
            arrived += [with_list_stamp(message, stamp_of(found.todos)) for message in placed]
            # next to what others changed, only the other open items are named
            shows_list = bool(changes or (notices.earlier and "unseen" not in notes))
        if shows_list:
            notes["shown"] = arrived[-1].id or ""
        say = partial(self.fill_prompt, settings)
        missing = "" if doubt else render_missing(self.dialect, settings, notes)
        opener = Notices(waited=alone, missing=missing, nudge=text).compose()
        opener = opener or announce(say("activate"), settings, "activate")
        message, standing = make_user_message("activate", opener, doubt=doubt), notes.get("standing", ())
        if count_open(found.todos) and doubt is None:
            message = with_list_stamp(message, stamp_of(found.todos))
        mended = plan_repairs(state, found.old, arrived, self.dialect.tool_names, message, say, standing)
        note_repairs(notes, mended, opener if count_open(found.todos) else None)
        return mended.build_writes(state["messages"]), reasons

    def render_new_list(self, found: Input, arrived: list[BaseMessage]) -> str:
        """Return the text that shows a list from outside, once, after somebody's words; else ""."""
        last = next(reversed(found.state["messages"]), None)
        if not (found.has_new_list and self.uses_list(found.settings)):
            return ""
        if not arrived and not isinstance(last, HumanMessage):
            return ""  # the nudge that is added in their place shows the list
        earlier = () if found.old else found.state["messages"]  # a history that came with the list
        return render_given_list(self.dialect, found.settings, found.todos, found.state["todo_goal"], earlier)

    def name_old_items(self, found: Input, notes: Ledger) -> str:
        """Return the words that name the items of an earlier activation after a person's message; else "".

        Where the message may mean something else than to continue with them, that is noted (rule 26).
        """
        spoken = found.opening.is_spoken and not found.has_new_list and self.uses_list(found.settings)
        earlier = found.old and find_last(AIMessage, found.state["messages"]) is not None
        if not (spoken and earlier):
            return ""
        text = ""
        if found.settings.on_new_topic == "say" and not found.opening.answers_person_wait:
            # what others changed is said in the same message
            rest = find_unchanged(notes, found.todos)
            text = name_old_items(
                self.dialect, found.settings, rest, found.state["todo_goal"], "replace_or_continue"
            )
        if count_open(found.todos) and doubts_topics(found.settings):
            notes["uncalled"] = "said" if text else "unsaid"
        return text

    def uses_list(self, settings: LoopSettings) -> bool:
        """Tell whether the model has the tools of the list."""
        return self.todo_tools and self.dialect.is_active(settings)

    def fill_prompt(self, settings: LoopSettings, name: str) -> str:
        """Return one of the package's prompts under these settings."""
        return fill_prompt(name, self.dialect.prompt_folder, settings.prompts)

    def check_overrides(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Check what a thread overrides, also against what its model can do."""
        overrides = check_overrides(self.settings, asked)
        settings = apply_overrides(self.settings, overrides)
        if self.model is not None:
            check_price(settings, self.model)
        if not self.todo_tools and self.dialect.is_active(settings):
            raise SettingsError("This agent's model cannot call tools, so auto_continue stays off.")
        return overrides


def add_steered_events(state: Any, entries: Sequence[Entry]) -> Any:
    """Return the state with what a person said after the last request as the first of its events."""
    words = [entry.as_event() for entry in entries if entry.message]
    return {**state, "todo_inbox": [*words, *(state.get("todo_inbox") or ())]} if words else state


def note_repairs(notes: Ledger, mended: Repairs, nudge: str | None) -> None:
    """Note the messages that were added, and the one that shows the list if it is the `nudge`."""
    notes["injected"] = mended.injected_ids
    if mended.appended and mended.appended[-1].content == nudge:
        notes["shown"] = mended.appended[-1].id or ""


def is_unasked(opening: ThreadInput, ledger: Ledger, todos: Sequence[Todo], *, ended: bool = False) -> bool:
    """Tell whether the model has nothing to do: no input, still waiting, or the budget is spent.

    `ended` says that something that was waited for has not come.
    """
    if opening.repeats_request:
        return False
    if opening.waits_for_limit:
        return True
    if opening.continues_activation and ledger.get("end"):
        return True
    if opening.is_waiting and not opening.new_input and opening.is_passive:
        return True
    if ledger.get("judged") and not is_unmet(ledger):
        return True
    speaks = opening.needs_reply or opening.is_unanswered or ended or bool(opening.kicked_work)
    return not (speaks or count_open(todos) or is_unmet(ledger))


def refuse_unanswerable(*, reviews: bool, plans: bool) -> None:
    """Refuse a run that could ask a person but could not wait for the answer. Raises `InputError`."""
    if reviews or plans:
        what = "its tools ask a person" if reviews else "approve_plan asks a person"
        raise InputError(
            f"This agent needs a checkpointer: {what}, and without one nothing can wait for the answer. "
            "Pass checkpointer=InMemorySaver(), or one that lasts."
        )


def _number_items(todos: list[Todo], old: Ledger, writes: int) -> tuple[list[Todo], int, int]:
    """Give ids to a list from outside; return it with the next id, and the number of its last write."""
    before, next_id = getattr(todos, "before", None), old.get("next_id", 1)
    if before is None and all("id" in todo for todo in todos):  # another agent's list may lack ids, too
        return todos, next_id, writes
    numbered, next_id = assign_ids(todos, next_free_number(before or (), next_id))
    if numbered == (before or []):  # a parent may pass on what the thread has already
        return numbered, next_id, writes
    return numbered, next_id, writes + 1


def _refuse_input(state: TodoState, old: Ledger, sentence: str) -> dict[str, Any]:
    """Put list, goal and settings back as they were; `call_model` raises the sentence."""
    update: dict[str, Any] = {"todo_ledger": {**old, "refused": sentence}}
    if (before := getattr(state["todos"], "before", None)) is not None:
        update["todos"] = write_all(before)
    if find_inbox_fault(state):  # sound events stay, so that the next run reads them
        update["todo_inbox"] = []
    if isinstance(state["todo_goal"], Goal):
        update["todo_goal"] = state["todo_goal"].before
    if isinstance(written := state.get("todo_session"), SessionUpdate):
        update["todo_session"] = dict(written.before) or None
    if isinstance(state["todo_settings"], Overrides):
        update["todo_settings"] = dict(state["todo_settings"].before or {})
    return update
