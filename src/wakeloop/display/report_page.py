"""What stands on a thread's page, for its template."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from markupsafe import Markup

from wakeloop.display import formatting
from wakeloop.display.report_text import (
    MIN_LIMIT,
    Hide,
    clean_text,
    limit_per_text,
    markdown_to_html,
    text_to_html,
)
from wakeloop.display.terminal_text import clean_line
from wakeloop.display.time_axis import TimeAxis
from wakeloop.display.timeline import ItemLane, MessageEntry, Moment, RequestUsage, Timeline
from wakeloop.text.characters import pluralize
from wakeloop.text.marks import call_duration_ms, kind_of, source_of, split_result_text
from wakeloop.text.secrets import redact_json

FOLD_AT = 700  # characters: a longer text is folded
FOLD_AT_LINES = 14
MESSAGES_PER_PART = 50  # messages
MANY_MESSAGES = (
    1_000  # messages: what is folded is shown as it was written, since laying it out takes seconds
)
SECOND_MS = 1000  # milliseconds
MAX_BARS = 300  # of tokens and cost: more would not be seen
GRAPH_SPEAKERS = {
    "wake": "wake",
    "guard": "correction",
    "nag": "reminder",
    "retry": "asked again",
    "repair": "repair",
    "activate": "begins",
    "event": "event",
    "format": "asked for the format",
}
SPEAKERS = {"user": "You", "model": "Model", "system": "System"}
MOMENT_LABELS = {
    "request": "asked",
    "kick": "went on without a message",
    "event": "event",
    "wake": "wake",
    "nag": "reminder of the list",
    "guard": "asked by the guard",
    "repair": "repaired what a broken run left",
    "question": "waits for an answer",
    "failed": "a call failed",
    "dropped": "messages taken out",
    "hand": "list edited by hand",
    "gap": "cannot be read",
    "end": "end of a run",
}
"""The kinds of what happened, in the order of the legend."""
STATUS_LABELS = {
    "pending": "open",
    "in_progress": "worked on",
    "completed": "closed",
    "cancelled": "cancelled",
    "blocked": "blocked",
}


def split_messages(said: Sequence[MessageEntry]) -> list[Sequence[MessageEntry]]:
    """The conversation in parts that a browser lays out when they come into view; at least one."""
    return [said[at : at + MESSAGES_PER_PART] for at in range(0, len(said), MESSAGES_PER_PART)] or [said]


@dataclass(frozen=True)
class Bar:
    """A bar: place and width in percent of the axis, height in percent of the tallest."""

    x: float
    width: float
    height: float
    kind: str
    told: str


class ReportPage:
    """A picture as plain values and safe HTML; every text of the thread goes through `hide`."""

    def __init__(self, picture: Timeline, session: Mapping[str, Any], hide: Hide) -> None:
        self.picture, self.session, self.hide = picture, session, hide
        self.axis, self.room = TimeAxis(picture.times), limit_per_text(len(picture.said))
        self.numbers = {id(said): number for number, said in enumerate(picture.said, 1)}

    def values(self) -> dict[str, Any]:
        """All that the template is given."""
        picture, todos = self.picture, [lane.todo for lane in self.picture.lanes if lane.gone is None]
        return {
            "thread": self.line(picture.thread),
            "request": self.request(),
            "facts": list(self.facts(todos)),
            "ticks": list(self.axis.ticks()),
            "pauses": [(a, b, formatting.format_elapsed(took)) for a, b, took in self.axis.pauses],
            "moments": list(map(self.moment, picture.moments)),
            "legend": [
                (kind, told)
                for kind, told in MOMENT_LABELS.items()
                if any(m.kind == kind for m in picture.moments)
            ],
            "helpers": [self.helper(one) for one in picture.helpers],
            "tokens": list(self.tokens()),
            "costs": list(self.costs()),
            "lanes": list(map(self.lane, picture.lanes)),
            "parts": [list(map(self.message, part)) for part in split_messages(picture.said)],
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }

    # -- the head ----------------------------------------------------------------------------------------

    def request(self) -> str:
        """What the person asked first."""
        first = next((one.said for one in self.picture.moments if one.kind == "request"), None)
        return self.line(first.message.text, 300) if first else ""

    def facts(self, todos: Sequence[Any]) -> Iterator[tuple[str, str]]:
        """What is known of the whole thread, each with its name."""
        spends, moments = self.picture.spends, self.picture.moments
        damaged = self.session.get("state") == "damaged"
        yield (
            "State",
            "What is stored of it is damaged." if damaged else formatting.format_ending(self.session),
        )
        yield "List", formatting.format_progress(todos) if todos else "none was written"
        yield "Wakes", f"{sum(one.kind == 'wake' for one in moments):,}"
        yield "Requests", f"{len(spends):,}"
        read, cached, written = (
            sum(getattr(one, name) for one in spends) for name in ("input", "cached", "output")
        )
        told = f", {cached:,} cached" if cached else ""
        yield "Tokens", f"{read + written:,} ({read:,} in{told}, {written:,} out)"
        if costs := [one.cost for one in spends if one.cost is not None]:
            whole = "" if len(costs) == len(spends) else f" of {pluralize(len(costs), 'request')}"
            yield "Cost", f"{sum(costs):,.4f}{whole}"
        yield "Time", formatting.format_elapsed(self.picture.ended - self.picture.began)
        names = {m.response_metadata.get("model_name") for m in (one.message for one in self.picture.said)}
        if named := ", ".join(sorted(self.line(str(name), 60) for name in names if name)):
            yield "Model", named
        failed = sum(one.kind == "failed" for one in moments)
        if trouble := formatting.format_failures(failed, formatting.count_blocked(todos)):
            yield "Trouble", trouble
        yield "Began", datetime.fromtimestamp(self.picture.began, UTC).strftime("%Y-%m-%d %H:%M UTC")

    # -- the picture -------------------------------------------------------------------------------------

    def moment(self, one: Moment) -> dict[str, Any]:
        """Something that happened: where, what, and the message it belongs to."""
        told = MOMENT_LABELS.get(one.kind, one.kind)
        if one.kind == "end":
            told = f"end of a run ({self.line(one.text)})"
        elif one.text:
            told = f"{told}: {self.line(one.text)}"
        elif one.said and one.kind in ("request", "event"):
            told = f"{told}: {self.line(one.said.message.text, 80)}"
        return {
            "x": self.axis.place(one.at),
            "kind": one.kind if one.kind in MOMENT_LABELS else "event",
            "told": told,
            "time": self.since(one.at),
            "number": self.number(one.said),
        }

    def helper(self, one: Any) -> Bar:
        """A subagent at work."""
        end = self.picture.ended if one.end is None else one.end
        x, width = self.between(one.start, end)
        still = "" if one.end is not None else ", not finished"
        told = f"{self.line(one.name)}: {self.since(one.start)} to {self.since(end)}{still}"
        return Bar(x, width, 100, "helper", told)

    def tokens(self) -> Iterator[tuple[Bar, Bar]]:
        """What each request read and wrote; many requests are told together."""
        groups = self.grouped()
        most = max((sum(one.input + one.output for one in group) for _, _, group in groups), default=0)
        for x, width, group in groups:
            read, written = sum(one.input for one in group), sum(one.output for one in group)
            if not read + written:
                continue
            told = f"{self.since(group[0].at)}: {pluralize(read, 'token')} in, {written:,} out"
            if len(group) > 1:
                told = f"{len(group)} requests from {told}"
            yield (
                Bar(x, width, read / most * 100, "in", told),
                Bar(x, width, written / most * 100, "out", told),
            )

    def costs(self) -> Iterator[Bar]:
        """What all requests so far have cost."""
        whole = sum(one.cost or 0 for one in self.picture.spends)
        so_far, groups = 0.0, self.grouped()
        for place, (x, _, group) in enumerate(groups):
            so_far += sum(one.cost or 0 for one in group)
            end = groups[place + 1][0] if place + 1 < len(groups) else 100.0
            if whole:
                told = f"{self.since(group[-1].at)}: {so_far:,.4f} so far"
                yield Bar(x, max(end - x, 0.0), so_far / whole * 100, "cost", told)

    def grouped(self) -> list[tuple[float, float, list[RequestUsage]]]:
        """The requests by where they are on the axis, each with its place and the width of its bar."""
        spends = self.picture.spends
        every = max(1, -(-len(spends) // MAX_BARS))
        groups = [spends[at : at + every] for at in range(0, len(spends), every)]
        places = [self.axis.place(group[0].at) for group in groups]
        rooms = [b - a for a, b in pairwise(places) if b > a]
        width = max(min(median(rooms or [4.0]) / 2, 2.5), 0.2)
        return [(min(x, 100 - width), width, group) for x, group in zip(places, groups, strict=True)]

    def lane(self, lane: ItemLane) -> dict[str, Any]:
        """One item: its text, its bars, what became of it in words."""
        todo, bars, story = lane.todo, [], []
        for span in lane.spans:
            end = self.picture.ended if span.end is None else span.end
            x, width = self.between(span.start, end)
            name = STATUS_LABELS.get(span.status, span.status)
            story.append(f"{name} {self.since(span.start)}")
            bars.append(Bar(x, width, 100, span.status, f"{name} from {self.since(span.start)}"))
        story += [f"not accepted as done {self.since(at)}" for at in lane.refused]
        if lane.gone is not None:
            story.append(f"taken from the list {self.since(lane.gone)}")
        return {
            "id": self.line(str(todo.get("id", ""))),
            "text": self.line(todo["content"], 300),
            "status": "gone" if lane.gone is not None else todo["status"],
            "state": "gone" if lane.gone is not None else STATUS_LABELS.get(todo["status"], todo["status"]),
            "reason": self.line(todo.get("reason") or "", 300),
            "evidence": self.line(todo.get("evidence") or "", 300),
            "bars": bars,
            "refused": [self.axis.place(at) for at in lane.refused],
            "story": ", ".join(story),
            "number": self.number(lane.said),
        }

    # -- the conversation --------------------------------------------------------------------------------

    def message(self, said: MessageEntry) -> dict[str, Any]:
        """One message: who, when, its parts."""
        message, kind, source = said.message, kind_of(said.message), source_of(said.message)
        whose = {"human": "user", "ai": "model"}.get(message.type, message.type)
        whose = "graph" if kind and not isinstance(message, ToolMessage) else "system" if source else whose
        who = f"Inserted by {self.line(source, 60)}" if source else SPEAKERS.get(whose, whose)
        told: dict[str, Any] = {
            "number": self.numbers[id(said)],
            "time": self.since(said.at),
            "stamp": datetime.fromtimestamp(said.at, UTC).isoformat(timespec="seconds"),
            "whose": whose,
            "who": f"wakeloop: {GRAPH_SPEAKERS[str(kind)]}" if whose == "graph" else who,
            "gone": said.gone,
            "added": "",
            "calls": [],
            "notes": [],
        }
        text = str(message.text)
        if isinstance(message, ToolMessage):
            text, added = split_result_text(message)
            told["who"] = f"Result of {self.line(message.name or 'a tool', 60)}"
            told["added"] = clean_text(added, self.hide, self.room).strip()
            told["whose"] = "failed" if message.status == "error" else "tool"
            told["answers"] = self.number(said.answers)
            if took := call_duration_ms(message):
                told["notes"].append(
                    f"took {took:,} ms"
                    if took < SECOND_MS
                    else f"took {formatting.format_elapsed(took / 1000)}"
                )
        elif isinstance(message, AIMessage):
            told["calls"] = [self.call(call) for call in message.tool_calls]
            if usage := message.usage_metadata:
                read = pluralize(usage["input_tokens"], "token")
                told["notes"].append(f"{read} in, {usage['output_tokens']:,} out")
        text = clean_text(text, self.hide, self.room).strip()
        told["text"] = clean_line(text, 160)
        told["long"] = len(text) > FOLD_AT or text.count("\n") >= FOLD_AT_LINES
        laid_out = whose in ("user", "model") and not (told["long"] and len(self.numbers) > MANY_MESSAGES)
        told["body"] = markdown_to_html(text) if laid_out else text_to_html(text)
        return told

    def call(self, made: Mapping[str, Any]) -> dict[str, str | Markup]:
        """A call: its name, its arguments on a line, and all of them where the line is too short."""
        args = clean_text(formatting.to_json(redact_json(made["args"])), self.hide, self.room)
        short = clean_line(args, 140)
        return {
            "name": self.line(made["name"], 60),
            "short": short,
            "args": "" if short == args else text_to_html(args),
        }

    # -- small things ------------------------------------------------------------------------------------

    def line(self, text: str, limit: int = 160) -> str:
        """A text on one line."""
        return clean_line(clean_text(text, self.hide, MIN_LIMIT), limit)

    def since(self, time: float) -> str:
        """A time, as what had passed since the beginning."""
        return formatting.format_elapsed(max(time - self.picture.began, 0.0))

    def number(self, said: MessageEntry | None) -> int | None:
        """The number of a message on the page."""
        return None if said is None else self.numbers.get(id(said))

    def between(self, start: float, end: float) -> tuple[float, float]:
        """A place on the axis and how far it is to the other one, never nothing."""
        x = self.axis.place(start)
        return min(x, 99.7), max(self.axis.place(end) - x, 0.3)
