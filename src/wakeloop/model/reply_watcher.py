"""What a model's client cannot read, and what it mends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from pydantic import ValidationError

from wakeloop.errors import RESUME_HINT, ReplyError
from wakeloop.model.finish_reasons import is_unreadable_call, reply_problem
from wakeloop.platform.response_bodies import find_server_message, find_unparsed_text
from wakeloop.text.characters import shorten

BrokenArguments = Mapping[tuple[str | None, str | None], str]

_RAW = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
_READERS = frozenset(
    (
        *("json", "pydantic", "openai", "anthropic"),
        *("langchain_core", "langchain_openai", "langchain_anthropic", "langchain_aws"),
    )
)
_CALLS = frozenset(("tool_calls", "invalid_tool_calls", "tool_call_chunks"))
_NO_STREAM = "No generations found in stream"
_NAMED = 300  # characters of what the client said
_ENDED = {  # what clients raise for a reply in a format, by the name of the class
    "LengthFinishReasonError": "cut",
    "ContentFilterFinishReasonError": "refused",
    "ModelRefusalError": "refused",
}


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply that the client would not give out: why, in one line, and what it said as far as it was heard.

    `how` is `unfit`, `cut` or `refused`.
    """

    why: str
    kind: str = "unfit"
    message: AIMessage | None = None


class ReplyWatcher(BaseCallbackHandler):
    """One request's ear: `with Hearing(config, streaming=…) as heard: model.invoke(sent, heard.config)`.

    What the client raises raw while it reads a reply leaves as `ReplyError`; errors with a name of their own
    (a timeout, a lost connection) and those of other code pass. A streamed call whose arguments broke off is
    parsed by langchain as if it were whole: `halves` holds the text of each, by id and name.

    What can be asked for again does not leave: a reply lost with calls that do not fit a message or that its
    server could not read, and, where a format is asked for (`formats`), what a client raises in the place of
    a result; `unread` is what it was.
    Where `asks_whole`, neither does a stream that ended before it began, which `silent` tells: a body that is
    no stream looks so. A stream `finishes` where it has to say how it ended.
    """

    run_inline = True

    def __init__(
        self,
        config: RunnableConfig,
        *,
        streaming: bool,
        formats: bool = False,
        retries_unstreamed: bool = False,
        finishes: bool = True,
    ) -> None:
        self.config, self.formats, self.retries_unstreamed, self.finishes = (
            config,
            formats,
            retries_unstreamed,
            finishes,
        )
        self.chunks: list[AIMessageChunk] = []
        self.streamed = self.never_began = False
        self.unreadable: UnreadableReply | None = None
        self.message: AIMessage | None = None
        callbacks: Any = config.get("callbacks")
        if streaming or formats or getattr(callbacks, "handlers", callbacks):  # nothing else is streamed
            self.config = merge_configs(config, {"callbacks": [self]})

    def __enter__(self) -> Self:
        self.never_began = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if (unread := self._find_retryable(error, trace)) is not None:
            self.unreadable = unread
            return True
        if isinstance(error, _RAW) and _raising_package(trace) in _READERS:
            if self.retries_unstreamed and _NO_STREAM in str(error):
                self.never_began, self.retries_unstreamed = True, False
                return True
            raise unreadable_reply_error(error, find_server_message(trace)) from error
        return False

    def _find_retryable(
        self, error: BaseException | None, trace: TracebackType | None
    ) -> UnreadableReply | None:
        """Return what is asked for again in the place of an error, or None where it has to leave."""
        if isinstance(error, ValidationError):
            places = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
            if places and places <= _CALLS:
                return UnreadableReply(_describe_cause(error))
        if is_unreadable_call(error):
            return UnreadableReply("the server could not read it")
        if not self.formats or error is None:
            return None
        kinds = [_ENDED[parent.__name__] for parent in type(error).__mro__ if parent.__name__ in _ENDED]
        parsed = find_unparsed_text(trace) if isinstance(error, ValueError) else None
        if kinds or parsed is not None or isinstance(error, OutputParserException):
            said = self.message or _completion_text(error) or parsed or AIMessage("")
            return UnreadableReply(
                _describe_cause(error), kinds[0] if kinds else reply_problem(said) or "unfit", said
            )
        return None

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Begin anew."""
        self.chunks = []
        self.streamed = False

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:  # noqa: ARG002 - langchain passes it by name
        """Keep the pieces of calls."""
        self.streamed = True
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
            self.chunks.append(message)

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Keep the reply, for what a client raises behind it."""
        first = next((made for made in response.generations if made), [None])
        said = getattr(first[0], "message", None)
        self.message = said if isinstance(said, AIMessage) else None

    @property
    def must_finish(self) -> bool:
        """Whether the reply is a stream that has to say how it ended."""
        return self.streamed and self.finishes

    @property
    def broken_arguments(self) -> BrokenArguments:
        """The arguments that are no whole JSON, joined as langchain joins them."""
        if not self.chunks:
            return {}
        joined = self.chunks[0] + self.chunks[1:] if self.chunks[1:] else self.chunks[0]
        calls = [(call["id"], call["name"], call["args"] or "{}") for call in joined.tool_call_chunks]
        return {(key, name): args for key, name, args in calls if not _is_json(args)}


def require_ai_message(message: Any) -> AIMessage:
    """Return a reply. Raises `ReplyError` for a message in another role."""
    if not isinstance(message, AIMessage):
        raise unreadable_reply_error(f"its role is {message.type!r}, not the assistant's")
    return message


def unreadable_reply_error(error: BaseException | str, words: str = "") -> ReplyError:
    """Name what no reply could be made of; `words` are the server's own, where it had some."""
    said = f"the server says: {shorten(words, _NAMED)}" if words else _describe_cause(error)
    if "is not JSON serializable" in said:
        return ReplyError(f"The request could not be written ({said}): take out the message that holds it.")
    return ReplyError(
        f"The model's reply could not be read ({said}), so nothing of it was stored: {RESUME_HINT}, and if it "
        "comes again look at the model's address and at what stands before its server."
    )


def _describe_cause(error: BaseException | str) -> str:
    said = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    if "<html" in said.lower() or "<!doctype html" in said.lower():
        return "a page of HTML came in its place"
    said = said.partition("For further information visit")[0].partition(" For troubleshooting, visit")[0]
    return shorten(" ".join(said.split()), _NAMED)


def _completion_text(error: BaseException) -> AIMessage | None:
    """Return the text that openai's own error about a reply's end holds."""
    choices = getattr(getattr(error, "completion", None), "choices", None)
    text = getattr(getattr(choices[0], "message", None), "content", None) if choices else None
    return AIMessage(text) if isinstance(text, str) else None


def _raising_package(trace: TracebackType | None) -> str:
    """Return the package whose code raised: the innermost frame's."""
    module = ""
    while trace is not None:
        module, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return module.partition(".")[0]


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True
