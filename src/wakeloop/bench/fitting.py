"""A weak model's knobs from a real model's transcripts."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.bench.statistics import Interval, wilson_interval
from wakeloop.bench.task import Call
from wakeloop.errors import ArgumentError
from wakeloop.testing.captured_requests import calls_of, is_blank, malformed_of
from wakeloop.testing.job_progress import call_key
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.todo_tools import ALL_TODO_TOOLS, Item, read_events, was_refused

_TODO_TOOL_NAMES = frozenset(name for vocabulary in ALL_TODO_TOOLS for name in vocabulary.names)
_LISTING_TOOLS = frozenset({"todo_list", "todo__list"})
_CUT_REASONS = ("length", "max_tokens", "MAX_TOKENS")
_BROKEN_CALL = re.compile(r"Error: (the arguments are not a JSON object|invalid arguments|unknown tool)")
_RATES = (
    *("stop", "false_done", "forget", "repeat", "malformed", "cut", "empty"),
    *("busy", "relist", "no_list"),
)


class Count(NamedTuple):
    """How often something happened, of how many times that it could have."""

    times: int
    of: int

    @property
    def rate(self) -> float:
        """The share, 0 where it never could."""
        return self.times / self.of if self.of else 0.0

    @property
    def interval(self) -> Interval:
        """The share with Wilson's interval: of a few replies it says little."""
        return wilson_interval(self.times, self.of)


@dataclass(frozen=True)
class Fit:
    """Knobs and what they were counted from; a habit that could never show has a count of 0 of 0."""

    knobs: Knobs
    counts: Mapping[str, Count]


class _Tally:
    """Counts by habit."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self.of: Counter[str] = Counter()

    def note(self, habit: str, happened: object) -> None:
        """One time that a habit could have shown."""
        self.of[habit] += 1
        self.times[habit] += bool(happened)

    def count(self, habit: str) -> Count:
        """What was noted of a habit."""
        return Count(self.times[habit], self.of[habit])


def fit_knobs(transcripts: Sequence[Sequence[BaseMessage]]) -> Fit:
    """The knobs that a model's transcripts show, each a list of messages as a thread ends with them.

    Counted are, in replies but the first of a transcript: stops (a text while items are open on its list, or
    after which it went on to work when asked), stops right after a stop, the same call with the same
    arguments as ever before, lists asked for; in all replies: broken calls, cut and empty ones; in items that
    were closed: closed without a call of another tool since the last closing, closed only when asked; in
    transcripts with calls: no list, a plan sent twice, a plan beside a call. What only the world knows
    (`spoil`, `cannot`, `on_failure`, `lenient`) and `wander` stay as they are by default.
    """
    if any(isinstance(one, BaseMessage) for one in transcripts):
        raise ArgumentError("fit takes transcripts, each a list of messages: of one it is fit([messages]).")
    tally = _Tally()
    for transcript in transcripts:
        _count_transcript(list(transcript), tally)
    found = {habit: tally.count(habit) for habit in (*_RATES, "after_stop", "one_reply", "plan_beside")}
    stop, after = found["stop"].rate, found["after_stop"]
    rates: dict[str, Any] = {habit: found[habit].rate for habit in _RATES}
    rates["stick"] = max(0.0, after.rate - stop) if after.of else 0.0
    if found["one_reply"].of:
        rates["replies"] = 1 if found["one_reply"].rate > 1 / 2 else 2
    if found["plan_beside"].of:
        rates["plan_beside"] = found["plan_beside"].rate > 1 / 2
    return Fit(Knobs.model_validate(rates), found)


@dataclass(frozen=True)
class _Reply:
    """A reply of a transcript, and what stood before it.

    `work` are its calls outside the list that were carried out, `listed` those to it; `items` the list before
    it, `closed` how many of them it closed.
    """

    message: AIMessage
    work: Sequence[str]
    listed: Sequence[str]
    items: Sequence[Item]
    closed: int
    broken: bool

    @property
    def stops(self) -> bool:
        """Whether it made no call."""
        return not (calls_of(self.message) or malformed_of(self.message))


def _read_replies(transcript: list[BaseMessage]) -> list[_Reply]:
    """The replies of a transcript; lines of the graph's own are none."""
    results = {message.tool_call_id: message for message in transcript if isinstance(message, ToolMessage)}
    spoken = {call["name"] for message in transcript for call in calls_of(message)}
    vocabulary = next((one for one in ALL_TODO_TOOLS if one.writes & spoken), None)
    found = []
    for place, message in enumerate(transcript):
        if not isinstance(message, AIMessage) or "wakeloop" in message.additional_kwargs:
            continue
        made = [(call, results.get(call["id"] or "")) for call in message.tool_calls]
        ran = [
            (call["name"], call_key(Call(call["name"], call["args"])))
            for call, result in made
            if result is not None and not was_refused(result)
        ]
        work = [key for name, key in ran if name not in _TODO_TOOL_NAMES]
        listed = [key for name, key in ran if name in _TODO_TOOL_NAMES]
        after = place + 1
        while after < len(transcript) and isinstance(transcript[after], ToolMessage):
            after += 1
        before, now = (
            vocabulary.read(read_events(transcript[:end])) if vocabulary else [] for end in (place, after)
        )
        still = {item.text for item in now if item.is_open}
        closed = sum(item.is_open and item.text not in still for item in before)
        broken = any(result is not None and _BROKEN_CALL.match(str(result.text)) for _, result in made)
        found.append(
            _Reply(message, work, listed, before, closed, bool(broken or message.invalid_tool_calls))
        )
    return found


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
    said = [metadata.get(name) for name in ("finish_reason", "stop_reason")]
    is_cut = any(word in _CUT_REASONS for word in said)
    tally.note("cut", is_cut)
    tally.note("empty", reply.stops and is_blank(reply.message) and not is_cut)
    if not reply.stops and not is_cut:
        tally.note("malformed", reply.broken)


def _count_later_reply(
    reply: _Reply, last: _Reply, later: Sequence[_Reply], seen: set[str], tally: _Tally
) -> None:
    left = any(one.work for one in later)
    if not any(one.closed for one in later):
        left = left or any(item.is_open for item in reply.items)
    if not reply.stops or (left and not is_blank(reply.message)):
        tally.note("after_stop" if last.stops else "stop", reply.stops)
    tally.note("busy", reply.work and seen.issuperset(reply.work))
    if reply.items:
        names = {call["name"] for call in calls_of(reply.message)}
        tally.note("relist", names and names <= _LISTING_TOOLS)


def _count_closing(reply: _Reply, before: Sequence[_Reply], undone: int, tally: _Tally) -> int:
    """Judge the items that a reply closed; returns how much work is left that closed none."""
    asked = bool(before) and before[-1].stops
    interrupted = next((bool(one.work) for one in reversed(before) if not one.stops), False)
    for place in range(reply.closed):
        late = asked and not (interrupted and place == 0)
        tally.note("forget", late)
        if not late:
            tally.note("false_done", undone <= 0)
        undone -= 1
    if not asked and sum(item.is_open for item in reply.items) > reply.closed:
        tally.note("one_reply", reply.work)
    return max(undone, 0)


def _count_run(replies: Sequence[_Reply], tally: _Tally) -> None:
    """What a whole transcript shows once."""
    written = [(reply, key) for reply in replies for key in reply.listed if "items" in key or "task" in key]
    if sum(bool(reply.work) for reply in replies) > 1:
        tally.note("no_list", not any(reply.listed for reply in replies))
    if written:
        tally.note("repeat", len({key for _, key in written}) < len(written))
        tally.note("plan_beside", written[0][0].work)
