"""Report page: a timeline as values for the template."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from statistics import median
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from wakeloop.display import formatting
from wakeloop.display.formatting import format_elapsed
from wakeloop.display.terminal_output import clean_line, strip_controls
from wakeloop.display.timeline import ItemLane, MessageEntry, Moment, RequestUsage, Timeline
from wakeloop.text.characters import pluralize
from wakeloop.text.marks import call_duration_ms, kind_of, source_of, split_result_text
from wakeloop.text.secrets import redact_json, redact_text

MAX_TEXT = 20_000  # characters of one message
MIN_LIMIT = 1_000  # the limit for one message if there are very many
MAX_TOTAL = 6_000_000  # of all messages together, roughly
MARGIN = 2_000  # redacted beyond the limit, so that the cut does not split a secret

Hide = Callable[[str], str]

# Messages are not trusted: raw HTML stays text, and nothing becomes a link or loads anything.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.disable(["link", "image", "autolink", "html_block", "html_inline", "reference", "entity"])


def limit_per_text(count: int) -> int:
    """Return how long each of `count` messages may be so that a browser opens the page quickly."""
    return max(MIN_LIMIT, min(MAX_TEXT, MAX_TOTAL // max(count, 1)))


def clean_text(text: str, hide: Hide, most: int = MAX_TEXT) -> str:
    """Remove control codes and secrets, and cut what is too long, with a count of the rest."""
    kept = redact_text(hide(strip_controls(text[: most + MARGIN])))
    if len(text) <= most:
        return kept
    return f"{kept[:most]}\n… and {len(text) - most:,} more characters"


def markdown_to_html(text: str) -> Markup:
    """Render Markdown as HTML without links or anything that loads."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 - it escapes what it is given


def text_to_html(text: str) -> Markup:
    """Render text as it is."""
    return Markup("<pre>{}</pre>").format(text) if text else escape("")


NARROWEST, WIDEST = 0.4, 6.0  # width of a step, relative to the median
PAUSE_SECONDS = 60.0  # a shortened step of this length is marked as a pause
FULL_WIDTH = 100.0


class TimeAxis:
    """Maps times in seconds to positions in percent.

    A step is as wide as it was long, within bounds: very long ones are shortened, so that a night between two
    messages does not hide the work, and very short ones are widened.
    """

    def __init__(self, times: Sequence[float]) -> None:
        self.times = sorted(set(times)) or [0.0]
        took = [after - before for before, after in pairwise(self.times)]
        middle = median(took) if took else 1.0
        drawn = [min(max(one, NARROWEST * middle), WIDEST * middle) for one in took]
        total = sum(drawn) or 1.0
        self.places = [place / total * FULL_WIDTH for place in accumulate(drawn, initial=0.0)]
        self.pauses = []
        for (start, end), seconds in zip(pairwise(self.places), took, strict=True):
            if seconds > max(WIDEST * middle, PAUSE_SECONDS):
                self.pauses.append((start, end, seconds))

    def place(self, time: float) -> float:
        """Return the position of a time, from 0 to 100."""
        at = bisect_right(self.times, time) - 1
        if at < 0:
            return 0.0
        if at + 1 >= len(self.times):
            return self.places[-1]
        before, after = self.times[at], self.times[at + 1]
        share = (time - before) / (after - before)
        return self.places[at] + share * (self.places[at + 1] - self.places[at])

    def ticks(self, most: int = 5) -> Iterator[tuple[float, str]]:
        """Yield positions with the time since the beginning, without repeating a label."""
        last = None
        for number in range(most):
            place = FULL_WIDTH * number / most
            at = min(bisect_right(self.places, place) - 1, len(self.times) - 1)
            text = format_elapsed(self.times[at] - self.times[0])
            if text != last:
                yield self.places[at], text
            last = text


FOLD_AT = 700  # characters; longer messages are folded
FOLD_AT_LINES = 14
MESSAGES_PER_PART = 50
MANY_MESSAGES = 1_000  # then folded messages stay unformatted, since formatting would take seconds
SECOND_MS = 1000
MAX_BARS = 300  # of tokens and cost; more would run together
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
    "kick": "continued without a message",
    "event": "event",
    "wake": "wake",
    "nag": "reminder about the list",
    "guard": "correction",
    "cleared": "old results left the requests",
    "repair": "repair after a broken run",
    "question": "waits for an answer",
    "failed": "a call failed",
    "dropped": "messages removed",
    "hand": "list edited by hand",
    "gap": "cannot be read",
    "end": "end of a run",
}
"""Labels of moments by kind, in the order of the legend."""
STATUS_LABELS = {
    "pending": "open",
    "in_progress": "in progress",
    "completed": "closed",
    "cancelled": "cancelled",
    "blocked": "blocked",
}


def split_messages(said: Sequence[MessageEntry]) -> list[Sequence[MessageEntry]]:
    """Split the conversation into parts that a browser lays out as they come into view; at least one."""
    return [said[at : at + MESSAGES_PER_PART] for at in range(0, len(said), MESSAGES_PER_PART)] or [said]


def _total(requests: Iterable[RequestUsage], name: str) -> Any:
    """Sum a field of some requests; an unknown cost counts as 0."""
    return sum(getattr(request, name) or 0 for request in requests)


@dataclass(frozen=True)
class Bar:
    """A bar: position and width in percent of the axis, height in percent of the tallest."""

    x: float
    width: float
    height: float
    kind: str
    label: str


class ReportPage:
    """A timeline as plain values and safe HTML. All text of the thread passes through `hide`."""

    def __init__(self, picture: Timeline, session: Mapping[str, Any], hide: Hide) -> None:
        self.picture, self.session, self.hide = picture, session, hide
        self.axis, self.room = TimeAxis(picture.times), limit_per_text(len(picture.said))
        self.numbers = {id(said): number for number, said in enumerate(picture.said, 1)}

    def values(self) -> dict[str, Any]:
        """Return everything that the template shows."""
        picture = self.picture
        todos = [lane.todo for lane in picture.lanes if lane.gone is None]
        kinds = {moment.kind for moment in picture.moments}
        return {
            "thread": self.line(picture.thread),
            "request": self.request(),
            "facts": list(self.facts(todos)),
            "ticks": list(self.axis.ticks()),
            "pauses": [(a, b, formatting.format_elapsed(took)) for a, b, took in self.axis.pauses],
            "moments": list(map(self.moment, picture.moments)),
            "legend": [(kind, label) for kind, label in MOMENT_LABELS.items() if kind in kinds],
            "helpers": list(map(self.helper, picture.helpers)),
            "tokens": list(self.tokens()),
            "costs": list(self.costs()),
            "lanes": list(map(self.lane, picture.lanes)),
            "parts": [list(map(self.message, part)) for part in split_messages(picture.said)],
            "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }

    # -- the head ----------------------------------------------------------------------------------------

    def request(self) -> str:
        """Return the first message of a person."""
        for one in self.picture.moments:
            if one.kind == "request" and one.said:
                return self.line(one.said.message.text, 300)
        return ""

    def facts(self, todos: Sequence[Any]) -> Iterator[tuple[str, str]]:
        """Yield facts about the whole thread, each with its name."""
        requests = self.picture.spends
        state = formatting.format_ending(self.session)
        if self.session.get("state") == "damaged":
            state = "The stored thread is damaged."
        yield "State", state
        yield "List", formatting.format_progress(todos) if todos else "none"
        kinds = Counter(moment.kind for moment in self.picture.moments)
        yield "Wakes", f"{kinds['wake']:,}"
        yield "Requests", f"{len(requests):,}"
        read, written = _total(requests, "input"), _total(requests, "output")
        cached = _total(requests, "cached")
        share = f", {cached:,} cached" if cached else ""
        about = "about " if (self.session.get("spent") or {}).get("estimated") else ""
        yield "Tokens", f"{about}{read + written:,} ({read:,} in{share}, {written:,} out)"
        if self.picture.context is not None:
            used, window = self.picture.context
            yield "Context", f"{used:,} of {window:,} tokens"
        priced = [one for one in requests if one.cost is not None]
        if priced:
            cost = f"{_total(priced, 'cost'):,.4f}"
            if len(priced) < len(requests):
                cost += f" of {pluralize(len(priced), 'request')}"
            yield "Cost", cost
        yield "Time", formatting.format_elapsed(self.picture.times[-1] - self.picture.times[0])
        if models := self.models():
            yield "Model", ", ".join(models)
        if trouble := formatting.format_trouble({"spent": {"failed_calls": kinds["failed"]}}, todos):
            yield "Trouble", trouble
        yield "Began", datetime.fromtimestamp(self.picture.times[0], UTC).strftime("%Y-%m-%d %H:%M UTC")

    def models(self) -> list[str]:
        """Return the names of all models that replied."""
        names = {entry.message.response_metadata.get("model_name") for entry in self.picture.said}
        return sorted(self.line(str(name), 60) for name in names if name)

    # -- the picture -------------------------------------------------------------------------------------

    def moment(self, one: Moment) -> dict[str, Any]:
        """Return a moment: its position, its label, and the message that it belongs to."""
        label = MOMENT_LABELS.get(one.kind, one.kind)
        if one.kind == "end":
            label = f"end of a run ({self.line(one.text)})"
        elif one.text:
            label = f"{label}: {self.line(one.text)}"
        elif one.said and one.kind in ("request", "event"):
            label = f"{label}: {self.line(one.said.message.text, 80)}"
        return {
            "x": self.axis.place(one.at),
            "kind": one.kind if one.kind in MOMENT_LABELS else "event",
            "label": label,
            "time": self.since(one.at),
            "number": self.number(one.said),
        }

    def helper(self, one: Any) -> Bar:
        """Return the bar of a subagent at work."""
        end = self.picture.times[-1] if one.end is None else one.end
        x, width = self.between(one.start, end)
        label = f"{self.line(one.name)}: {self.since(one.start)} to {self.since(end)}"
        if one.end is None:
            label += ", not finished"
        return Bar(x, width, 100, "helper", label)

    def tokens(self) -> Iterator[tuple[Bar, Bar]]:
        """Yield two bars per request, for its input and output tokens; very many requests share bars."""
        groups = self.group_requests()
        most = max([_total(group, "input") + _total(group, "output") for _, _, group in groups], default=0)
        for x, width, group in groups:
            read, written = _total(group, "input"), _total(group, "output")
            if not read + written:
                continue
            label = f"{self.since(group[0].at)}: {pluralize(read, 'token')} in, {written:,} out"
            if len(group) > 1:
                label = f"{len(group)} requests from {label}"
            heights = read / most * 100, written / most * 100
            yield Bar(x, width, heights[0], "in", label), Bar(x, width, heights[1], "out", label)

    def costs(self) -> Iterator[Bar]:
        """Yield a bar per request with the cost up to it."""
        whole = _total(self.picture.spends, "cost")
        so_far, groups = 0.0, self.group_requests()
        for place, (x, _, group) in enumerate(groups):
            so_far += _total(group, "cost")
            end = 100.0
            if place + 1 < len(groups):
                end = groups[place + 1][0]
            if whole:
                label = f"{self.since(group[-1].at)}: {so_far:,.4f} so far"
                yield Bar(x, max(end - x, 0.0), so_far / whole * 100, "cost", label)

    def group_requests(self) -> list[tuple[float, float, list[RequestUsage]]]:
        """Group the requests for at most `MAX_BARS` bars, each with its position and width."""
        spends = self.picture.spends
        every = max(1, -(-len(spends) // MAX_BARS))
        groups = [spends[at : at + every] for at in range(0, len(spends), every)]
        places = [self.axis.place(group[0].at) for group in groups]
        rooms = [b - a for a, b in pairwise(places) if b > a]
        width = max(min(median(rooms or [4.0]) / 2, 2.5), 0.2)
        placed: list[tuple[float, float, list[RequestUsage]]] = []
        for x, group in zip(places, groups, strict=True):
            placed.append((min(x, 100 - width), width, group))
        return placed

    def lane(self, lane: ItemLane) -> dict[str, Any]:
        """Return an item: its text, its bars, and its history in words."""
        todo, bars, story = lane.todo, [], []
        for span in lane.spans:
            end = self.picture.times[-1] if span.end is None else span.end
            x, width = self.between(span.start, end)
            name = STATUS_LABELS.get(span.status, span.status)
            story.append(f"{name} {self.since(span.start)}")
            bars.append(Bar(x, width, 100, span.status, f"{name} from {self.since(span.start)}"))
        for at in lane.refused:
            story.append(f"completion refused {self.since(at)}")
        status: str = todo["status"]
        if lane.gone is not None:
            story.append(f"removed {self.since(lane.gone)}")
            status = "gone"
        return {
            "id": self.line(str(todo.get("id", ""))),
            "text": self.line(todo["content"], 300),
            "status": status,
            "state": STATUS_LABELS.get(status, status),
            "reason": self.line(todo.get("reason") or "", 300),
            "evidence": self.line(todo.get("evidence") or "", 300),
            "bars": bars,
            "refused": list(map(self.axis.place, lane.refused)),
            "story": ", ".join(story),
            "number": self.number(lane.said),
        }

    # -- the conversation --------------------------------------------------------------------------------

    def message(self, entry: MessageEntry) -> dict[str, Any]:
        """Return a message: who wrote it, when, and its parts."""
        message, text = entry.message, str(entry.message.text)
        role, author = self.author(message)
        shown: dict[str, Any] = {
            "number": self.numbers[id(entry)],
            "time": self.since(entry.at),
            "stamp": datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds"),
            "whose": role,
            "who": author,
            "gone": entry.gone,
            "added": "",
            "calls": [],
            "notes": [],
        }
        if isinstance(message, ToolMessage):
            text, added = split_result_text(message)
            shown["added"] = clean_text(added, self.hide, self.room).strip()
            shown["answers"] = self.number(entry.answers)
            if took := call_duration_ms(message):
                time = f"{took:,} ms" if took < SECOND_MS else formatting.format_elapsed(took / 1000)
                shown["notes"].append(f"took {time}")
        elif isinstance(message, AIMessage):
            shown["calls"] = list(map(self.call, message.tool_calls))
            if usage := message.usage_metadata:
                read = pluralize(usage["input_tokens"], "token")
                shown["notes"].append(f"{read} in, {usage['output_tokens']:,} out")
        text = clean_text(text, self.hide, self.room).strip()
        shown["text"] = clean_line(text, 160)
        shown["long"] = len(text) > FOLD_AT or text.count("\n") >= FOLD_AT_LINES
        too_many = shown["long"] and len(self.numbers) > MANY_MESSAGES
        is_markdown = role in ("user", "model") and not too_many
        shown["body"] = markdown_to_html(text) if is_markdown else text_to_html(text)
        return shown

    def author(self, message: BaseMessage) -> tuple[str, str]:
        """Return a message's role, which is its style on the page, and its author's name."""
        if isinstance(message, ToolMessage):
            role = "failed" if message.status == "error" else "tool"
            return role, f"Result of {self.line(message.name or 'a tool', 60)}"
        kind, source = kind_of(message), source_of(message)
        if kind:
            return "graph", f"wakeloop: {GRAPH_SPEAKERS[str(kind)]}"
        if source:
            return "system", f"Inserted by {self.line(source, 60)}"
        role = {"human": "user", "ai": "model"}.get(message.type, message.type)
        return role, SPEAKERS.get(role, role)

    def call(self, made: Mapping[str, Any]) -> dict[str, str | Markup]:
        """Return a call: its name, its arguments on one line, and in full if they do not fit."""
        args = clean_text(formatting.to_json(redact_json(made["args"])), self.hide, self.room)
        short = clean_line(args, 140)
        return {
            "name": self.line(made["name"], 60),
            "short": short,
            "args": "" if short == args else text_to_html(args),
        }

    # -- small things ------------------------------------------------------------------------------------

    def line(self, text: str, limit: int = 160) -> str:
        """Put text of the thread on one line."""
        return clean_line(clean_text(text, self.hide, MIN_LIMIT), limit)

    def since(self, time: float) -> str:
        """Format a time as the time since the beginning."""
        return formatting.format_elapsed(max(time - self.picture.times[0], 0.0))

    def number(self, said: MessageEntry | None) -> int | None:
        """Return the number of a message on the page."""
        return None if said is None else self.numbers.get(id(said))

    def between(self, start: float, end: float) -> tuple[float, float]:
        """Return the position and width of a time span, wide enough to be seen."""
        x = self.axis.place(start)
        return min(x, 99.7), max(self.axis.place(end) - x, 0.3)
