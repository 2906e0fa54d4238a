"""Makes a request fit the model's context window.

What is cleared stays cleared, and each clearing makes much room, so the beginning of the requests changes
rarely and providers' caches keep working. Only requests are made smaller; the thread keeps everything.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage

from wakeloop.dialects.base import Dialect
from wakeloop.loop.before_request import announce
from wakeloop.loop.ledger import Cleared, Ledger
from wakeloop.loop.silences import ASKS_PERSON
from wakeloop.model.usage import CHARACTERS_PER_TOKEN, count_characters
from wakeloop.platform.computed_per_object import computed_per_object
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten, to_one_line
from wakeloop.text.marks import injected_kwargs, kind_of, split_result_text

FULL, EMPTIED = 0.8, 0.5  # of the window: above the first it is cleared, down to the second
LARGEST_RESULT = 0.25  # of the window
KEPT_ROUNDS = (4, 2, 1)  # whose results stay, one step after the other
MEASURED_FROM = 2_000  # characters that a history has to grow by to measure characters per token
PER_TOKEN = (1.0, 8.0)  # characters, at least and at most


class Estimate(NamedTuple):
    """The last request that was counted, in characters and tokens, and the characters of a token."""

    characters: int = 0
    tokens: int = 0
    per_token: float = CHARACTERS_PER_TOKEN

    @classmethod
    def read(cls, notes: Ledger) -> Self:
        """Read it from the notes."""
        characters, tokens, hundredths, _ = notes.get("counted", (0, 0, 100 * CHARACTERS_PER_TOKEN, 0))
        return cls(characters, tokens, hundredths / 100)

    def note(self, notes: Ledger, window: int) -> None:
        """Note it, with the window that it is measured by."""
        notes["counted"] = [self.characters, self.tokens, round(100 * self.per_token), window]

    def count_tokens(self, characters: int) -> int:
        """Estimate the tokens of a request: those of the last one, and what has come or gone since.

        Tools, pictures and instructions are in the tokens of the last one.
        """
        return max(0, round(self.tokens + (characters - self.characters) / self.per_token))

    def count_room(self, tokens: float) -> int:
        """Return how many characters a request of so many tokens may have."""
        return round(self.characters + (tokens - self.tokens) * self.per_token)

    def update(self, characters: int, tokens: int) -> "Estimate":
        """Return the estimate after a request that was counted."""
        grown, more = characters - self.characters, tokens - self.tokens
        per_token = self.per_token
        if grown >= MEASURED_FROM and more > 0:
            per_token = min(max(grown / more, PER_TOKEN[0]), PER_TOKEN[1])
        return Estimate(characters, tokens, per_token)


@dataclass
class Clearing:
    """Clears parts of a history, as far as the notes in `cleared` say; `tools` are those of the request."""

    dialect: Dialect
    settings: LoopSettings
    tools: Mapping[str, Any]
    calls: dict[str | None, ToolCall] = field(default_factory=dict)

    def fill(self, name: str, **blanks: Any) -> str:
        """Return one of the package's prompts."""
        return fill_prompt(name, self.dialect.prompt_folder, self.settings.prompts, **blanks)

    def apply(self, messages: Sequence[AnyMessage], cleared: Cleared) -> Sequence[AnyMessage]:
        """Return what is sent of a history: the same for the same beginning and the same notes."""
        results, cut = find_end(messages, cleared.get("results")), find_end(messages, cleared.get("cut"))
        rounds = find_end(messages, cleared.get("rounds"))
        end = max(rounds, results, cut)
        sent, left_out, stays = list[AnyMessage](), 0, True
        for place, message in enumerate(messages[:end]):
            shown = message
            if isinstance(message, AIMessage):
                self.calls |= {call["id"]: call for call in message.tool_calls}
            if not isinstance(message, ToolMessage):  # a result leaves with its call
                stays = place >= rounds or never_leaves(message)
                left_out += not stays and isinstance(message, AIMessage)
            elif stays and place < results:
                shown = self.clear_result(message, cleared.get("kept", ()))
            elif stays and place < cut:
                shown = self.cut_result(message, cleared["head"])
            if stays:
                sent.append(shown)
            if left_out and place == rounds - 1:
                text = announce(self.fill("cleared_rounds", rounds=left_out), self.settings, "cleared_rounds")
                sent.append(HumanMessage(text, additional_kwargs=injected_kwargs("repair")))
        return [*sent, *messages[end:]]

    def clear_result(self, message: ToolMessage, kept: Collection[str]) -> ToolMessage:
        """Return a result of which only a line is left, and what the graph added if its id is in `kept`."""
        name = self.name_tool(message)
        if name in self.dialect.tool_names or name == ASKS_PERSON:
            return message
        call = self.calls.get(message.tool_call_id)
        key = (message.id in kept, self.settings.prompts.get("cleared_result"), self.dialect.prompt_folder)
        known = keep_lines(message).get(key)
        if known is None or known[0] is not call:
            known = keep_lines(message)[key] = call, self.build_line(message, key[0], format_call(name, call))
        return message if known[1] is None else known[1]

    def build_line(self, message: ToolMessage, is_kept: bool, call: str) -> ToolMessage | None:  # noqa: FBT001
        """Return a result of which only a line is left; None if it is shorter than the line."""
        added = split_result_text(message)[1]
        size = count_characters(message) - len(added)
        line = self.fill("cleared_result", size=f"{size:,}", call=call)
        if len(line) >= size:
            return None
        return message.model_copy(update={"content": line + added if is_kept else line})

    def cut_result(self, message: ToolMessage, head: int) -> ToolMessage:
        """Return a result of which only the head is left, with how to read the rest."""
        name = self.name_tool(message)
        own, added = split_result_text(message)
        if len(own) <= head or name == ASKS_PERSON:
            return message
        arguments = find_paging_arguments(self.tools.get(name))
        rest = self.fill(
            "cut_result_by" if arguments else "cut_result",
            shown=f"{head:,}",
            size=f"{len(own):,}",
            lines=f"{len(own[:head].splitlines()):,}",
            all=f"{len(own.splitlines()):,}",
            tool=name,
            arguments=arguments,
        )
        return message.model_copy(update={"content": f"{own[:head]}\n{rest}{added}"})

    def name_tool(self, message: ToolMessage) -> str:
        """Return the name of the tool that a result comes from."""
        call = self.calls.get(message.tool_call_id)
        return message.name or (call["name"] if call else "a tool")

    def plan(
        self, messages: Sequence[AnyMessage], cleared: Cleared, most: int, full: int, largest: int
    ) -> Cleared:
        """Return what to clear, so that `most` characters are left; no result is cut below `largest`.

        The steps come in this order, and the first that is enough is the last. The rounds since the list was
        last written are cleared only where more than `full` characters are left without that: what they did
        may not be in the list yet.
        """
        replies = [(place, one) for place, one in enumerate(messages) if isinstance(one, AIMessage)]
        rounds = [place for place, reply in replies if reply.tool_calls]
        new: Cleared = {**cleared}

        def fits(more: Cleared, characters: int = most) -> bool:
            return sum(map(count_characters, self.apply(messages, {**new, **more}))) <= characters

        for least in dict.fromkeys((self.count_unlisted([messages[place] for place in rounds]), 1)):
            for kept in dict.fromkeys(max(kept, least) for kept in KEPT_ROUNDS):
                if len(rounds) > kept and rounds[-kept] > find_end(messages, new.get("results")):
                    new["results"] = messages[rounds[-kept] - 1].id or ""
                if fits({}):
                    return new
            new |= {"cut": messages[-1].id or "", "head": max(largest, 1)}
            if fits({}, full if least > 1 else most):
                return new
        gone = find_end(messages, new.get("rounds"))
        marks: list[Cleared] = [{"rounds": messages[at - 1].id or ""} for at, _ in replies if at > gone]
        if marks:
            new |= marks[min(bisect_left(marks, True, key=fits), len(marks) - 1)]  # noqa: FBT003
        return new

    def count_unlisted(self, rounds: Sequence[Any]) -> int:
        """Return how many rounds began with the last that wrote the list; 1 if none of the last four did."""
        for number, reply in enumerate(reversed(rounds[-KEPT_ROUNDS[0] :]), 1):
            if any(call["name"] in self.dialect.writes for call in reply.tool_calls):
                return number
        return 1


@computed_per_object
def keep_lines(message: Any) -> dict[Any, tuple[ToolCall | None, ToolMessage | None]]:  # noqa: ARG001
    """Return where the lines in place of a result are kept: each request of a thread has them again."""
    return {}


def find_end(messages: Sequence[AnyMessage], key: str | None) -> int:
    """Return the place after the message with this id; 0 if it is not there."""
    if key is not None:
        for place, message in enumerate(messages, 1):
            if message.id == key:
                return place
    return 0


def find_visible(
    messages: Sequence[Any], notes: Ledger, *marks: Literal["results", "rounds"]
) -> Sequence[Any]:
    """Return the part of a history that comes after what was cleared."""
    cleared = notes.get("cleared", {})
    end = max(find_end(messages, cleared.get(mark)) for mark in marks)
    return messages[end:] if end else messages


def find_window(settings: LoopSettings, notes: Ledger, model: str, profile: int | None) -> int | None:
    """Return the tokens that a request may have; None if that is not known, or nothing is to be cleared."""
    if settings.max_context == 0:
        return None
    name, learned = notes.get("window", ("", 0))
    known = [settings.max_context or profile, learned if name == model else None]
    return min(filter(None, known), default=None)


def read_profile_window(model: Any) -> int | None:
    """Return the window in a model's profile, which langchain-core keeps, or None."""
    profile = getattr(model, "profile", None)
    tokens = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    return tokens if type(tokens) is int and tokens > 0 else None


def never_leaves(message: AnyMessage) -> bool:
    """Tell whether a message is never left out: words of others, answers of a person, a compaction."""
    if isinstance(message, AIMessage):
        blocks = message.content if isinstance(message.content, list) else ()
        compacts = any(isinstance(block, dict) and block.get("type") == "compaction" for block in blocks)
        return compacts or any(call["name"] == ASKS_PERSON for call in message.tool_calls)
    is_own = isinstance(message, HumanMessage) and kind_of(message) not in (None, "event")
    return isinstance(message, SystemMessage) or not is_own


def format_call(name: str, call: Mapping[str, Any] | None) -> str:
    """Return a call in one short line.

    >>> format_call("read_file", {"args": {"path": "a.md"}})
    "read_file(path='a.md')"
    """
    args = ", ".join(f"{key}={value!r}" for key, value in call["args"].items()) if call else ""
    return shorten(to_one_line(f"{name}({args})"), 120)


def find_paging_arguments(tool: Any) -> str:
    """Return the arguments by which a tool may be asked for another part: those that are whole numbers."""
    schemas: Mapping[str, Any] = getattr(tool, "args", None) or {}
    return " and ".join(name for name, schema in schemas.items() if "'integer'" in str(schema))
