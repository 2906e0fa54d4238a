"""Fits a weak model's knobs to a real model's transcripts."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.bench.figures import Interval, wilson_interval
from wakeloop.bench.task import Call
from wakeloop.errors import ArgumentError
from wakeloop.testing.captured_requests import calls_of, is_blank, malformed_of
from wakeloop.testing.job_progress import call_key
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.todo_tools import ALL_TODO_TOOLS, Item, TodoTools, read_events, was_refused

_TODO_TOOL_NAMES = frozenset[str]().union(*(vocabulary.names for vocabulary in ALL_TODO_TOOLS))
_LISTING_TOOLS = frozenset({"todo_list", "todo__list"})
_CUT_REASONS = ("length", "max_tokens", "MAX_TOKENS")
_BROKEN_CALL = re.compile(r"Error: (the arguments are not a JSON object|invalid arguments|unknown tool)")
_RATES = (
    *("stop", "false_done", "forget", "repeat", "malformed", "cut", "empty"),
    *("busy", "relist", "no_list"),
)


class Count(NamedTuple):
    """How often something happened, out of how often it could have."""

    times: int
    of: int

    @property
    def rate(self) -> float:
        """The share; 0 if it could never happen."""
        return self.times / self.of if self.of else 0.0

    @property
    def interval(self) -> Interval:
        """The share with Wilson's interval, which is wide for a few replies."""
        return wilson_interval(self.times, self.of)


@dataclass(frozen=True)
class Fit:
    """Knobs and the counts they come from; a habit that could never show has the count 0 of 0."""

    knobs: Knobs
    counts: Mapping[str, Count]


class _Tally:
    """Counts by habit."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self.of: Counter[str] = Counter()

    def note(self, habit: str, happened: object) -> None:
        """Count one occasion on which a habit could have shown."""
        self.of[habit] += 1
        self.times[habit] += bool(happened)

    def count(self, habit: str) -> Count:
        """Return the count of a habit."""
        return Count(self.times[habit], self.of[habit])


def fit_knobs(transcripts: Sequence[Sequence[BaseMessage]]) -> Fit:
    """Return the knobs that a model's transcripts show; each is the list of messages of a finished thread.

    It counts:

    - in all replies: broken, cut and empty ones;
    - in all replies but the first of a transcript: stops (words while items on its list are open, or after
      which the model continued to work when asked), stops right after a stop, repeated calls (same
      arguments), listings;
    - in closed items: those closed without a call of another tool since the last closing, those closed only
      when asked;
    - in transcripts with calls: no list, a repeated plan, a plan next to another call.

    Transcripts don't show `spoil`, `cannot`, `on_failure`, `lenient` and `wander`; these keep their defaults.

    Raises:
        ArgumentError: `transcripts` is a single transcript, not a list of them.
    """
    if any(isinstance(one, BaseMessage) for one in transcripts):
        raise ArgumentError("fit_knobs takes a list of transcripts; for one, write fit_knobs([messages]).")
    tally = _Tally()
    for transcript in transcripts:
        _count_transcript(list(transcript), tally)
    found = {habit: tally.count(habit) for habit in (*_RATES, "after_stop", "one_reply", "plan_beside")}
    stop, after = found["stop"].rate, found["after_stop"]
    rates: dict[str, Any] = {}
    for habit in _RATES:
        rates[habit] = found[habit].rate
    rates["stick"] = max(0.0, after.rate - stop)
    if found["one_reply"].of:
        rates["replies"] = 1 if found["one_reply"].rate > 1 / 2 else 2
    if found["plan_beside"].of:
        rates["plan_beside"] = found["plan_beside"].rate > 1 / 2
    return Fit(Knobs.model_validate(rates), found)


@dataclass(frozen=True)
class _Reply:
    """A reply of a transcript, and the state before it.

    `work` are its accepted calls of other tools, `listed` those of todo tools; `items` is the list before the
    reply, `closed` the number of items that it closed.
    """

    message: AIMessage
    work: Sequence[str]
    listed: Sequence[str]
    items: Sequence[Item]
    closed: int
    broken: bool

    @property
    def stops(self) -> bool:
        """Whether the reply made no call."""
        return not (calls_of(self.message) or malformed_of(self.message))


def _read_replies(transcript: list[BaseMessage]) -> list[_Reply]:
    """Return the replies of a transcript, without messages that the graph wrote itself."""
    results = {message.tool_call_id: message for message in transcript if isinstance(message, ToolMessage)}
    vocabulary = _find_todo_tools(transcript)
    found = []
    for place, message in enumerate(transcript):
        if not isinstance(message, AIMessage) or "wakeloop" in message.additional_kwargs:
            continue
        work: list[str] = []
        listed: list[str] = []
        broken = bool(message.invalid_tool_calls)
        for call in message.tool_calls:
            result = results.get(call["id"] or "")
            if result is None:
                continue
            broken = broken or bool(_BROKEN_CALL.match(str(result.text)))
            if not was_refused(result):
                kind = listed if call["name"] in _TODO_TOOL_NAMES else work
                kind.append(call_key(Call(call["name"], call["args"])))
        after = place + 1
        while after < len(transcript) and isinstance(transcript[after], ToolMessage):
            after += 1
        items: list[Item] = []
        closed = 0
        if vocabulary is not None:
            items = vocabulary.read(read_events(transcript[:place]))
            closed = _count_closed(items, vocabulary.read(read_events(transcript[:after])))
        found.append(_Reply(message, work, listed, items, closed, broken))
    return found


def _find_todo_tools(transcript: list[BaseMessage]) -> TodoTools | None:
    """Return the todo tools that a transcript writes its list with."""
    called: set[str] = set()
    for message in transcript:
        called.update(call["name"] for call in calls_of(message))
    for vocabulary in ALL_TODO_TOOLS:
        if vocabulary.writes & called:
            return vocabulary
    return None


def _count_closed(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return how many open items the reply closed; items are matched by their content."""
    still_open = {item.text for item in after if item.is_open}
    return sum(item.is_open and item.text not in still_open for item in before)


def _count_transcript(transcript: list[BaseMessage], tally: _Tally) -> None:
    """Count one transcript."""
    replies = _read_replies(transcript)
    seen: set[str] = set()
    undone, last = 0, None
    for number, reply in enumerate(replies):
        _count_reply(reply, tally)
        if number:
            last = replies[number - 1]
            _count_later_reply(reply, last, replies[number + 1 :], seen, tally)
        if reply.closed:
            undone = _count_closing(reply, replies[:number], undone, tally)
        undone += bool(reply.work)
        seen.update(reply.work)
    _count_run(replies, tally)


def _count_reply(reply: _Reply, tally: _Tally) -> None:
    metadata = reply.message.response_metadata
    is_cut = metadata.get("finish_reason") in _CUT_REASONS or metadata.get("stop_reason") in _CUT_REASONS
    tally.note("cut", is_cut)
    tally.note("empty", reply.stops and is_blank(reply.message) and not is_cut)
    if not reply.stops and not is_cut:
        tally.note("malformed", reply.broken)


def _count_later_reply(
    reply: _Reply, last: _Reply, later: Sequence[_Reply], seen: set[str], tally: _Tally
) -> None:
    left = any(one.work for one in later)
    if not left and not any(one.closed for one in later):
        left = _count_open(reply) > 0
    if not reply.stops or (left and not is_blank(reply.message)):
        tally.note("after_stop" if last.stops else "stop", reply.stops)
    tally.note("busy", reply.work and seen.issuperset(reply.work))
    if reply.items:
        names = {call["name"] for call in calls_of(reply.message)}
        tally.note("relist", names and names <= _LISTING_TOOLS)


def _count_closing(reply: _Reply, before: Sequence[_Reply], undone: int, tally: _Tally) -> int:
    """Judge the items that a reply closed, and return how many replies with work are left unused."""
    asked = bool(before) and before[-1].stops
    interrupted = _worked_last(before)
    for place in range(reply.closed):
        late = asked and not (interrupted and place == 0)
        tally.note("forget", late)
        if not late:
            tally.note("false_done", undone <= 0)
        undone -= 1
    if not asked and _count_open(reply) > reply.closed:
        tally.note("one_reply", reply.work)
    return max(undone, 0)


def _worked_last(replies: Sequence[_Reply]) -> bool:
    """Return whether the last reply with a call did work outside the list."""
    for reply in reversed(replies):
        if not reply.stops:
            return bool(reply.work)
    return False


def _count_open(reply: _Reply) -> int:
    return sum(item.is_open for item in reply.items)


def _count_run(replies: Sequence[_Reply], tally: _Tally) -> None:
    """Count the habits that only a whole transcript shows."""
    plans: list[str] = []
    planned_in: _Reply | None = None
    working, has_list = 0, False
    for reply in replies:
        working += bool(reply.work)
        has_list = has_list or bool(reply.listed)
        for key in reply.listed:
            if "items" in key or "task" in key:
                plans.append(key)
                planned_in = planned_in or reply
    if working > 1:
        tally.note("no_list", not has_list)
    if planned_in is not None:
        tally.note("repeat", len(set(plans)) < len(plans))
        tally.note("plan_beside", planned_in.work)
