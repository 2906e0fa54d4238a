"""Watches one request for replies that its client cannot read."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import time
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
from wakeloop.model.length_refusals import LengthRefusal, find_length_refusal
from wakeloop.model.rate_limits import find_retry_time
from wakeloop.model.tool_calls import parse_json
from wakeloop.model.tool_choice import loses_plain_bodies, refuses_choice
from wakeloop.platform.provider_errors import is_provider_error
from wakeloop.platform.response_bodies import find_server_message, find_unparsed_text
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten

BrokenArguments = Mapping[tuple[str | None, str | None], str]
"""The arguments of calls that broke off in a stream, by the calls' id and name."""

_RAW_ERRORS = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
_READERS = frozenset(  # the packages that read replies: a raw error of theirs is about the reply
    (
        *("json", "pydantic", "openai", "anthropic"),
        *("langchain_core", "langchain_openai", "langchain_anthropic", "langchain_aws"),
    )
)
_CALLS = frozenset(("tool_calls", "invalid_tool_calls", "tool_call_chunks"))
_NO_STREAM = ("No generations found in stream", "No generation chunks were returned")  # by invoke, by stream
_LONGEST_CAUSE = 300  # characters
_FORMAT_ERRORS = {  # which clients raise for a reply in a format, by class name
    "LengthFinishReasonError": "cut",
    "ContentFilterFinishReasonError": "refused",
}


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply that the client did not return: why, in one line, and its text as far as it is known.

    `kind` is `unfit`, `cut` or `refused`.
    """

    why: str
    kind: str = "unfit"
    message: AIMessage | None = None


class ReplyWatcher(BaseCallbackHandler):
    """Watches one request: `with ReplyWatcher(config, streaming=…) as w: model.invoke(prompt, w.config)`.

    A raw error that the client raises while it reads the reply becomes a `ReplyError`. Errors with a class of
    their own (a timeout, a lost connection) and errors of other code pass.

    Some errors do not leave the block, because the request can be made again; `unreadable` then says why:

    - calls that do not fit a message, or that the server could not parse;
    - a refusal that the client raises instead of returning it;
    - with `formats`, whatever a client raises in place of a result in the format;
    - with `retries_unstreamed`, a stream that ended before it began: a reply that is not a stream looks like
      that. `never_began` is true for it;
    - with `waits`, a refusal for rate or quota that states a time: `limited_until` has it;
    - with `forced`, a refusal of the choice that forces a call. `choice_refused` is true for it, also if
      other code caught the error: the same request is made without that choice, and `forced` is false from
      then on.
    - with `takes_refusals`, a refusal because the request is too long, also if other code caught the error:
      `too_long` has what it says.

    langchain parses a streamed call whose arguments broke off as if it were whole: `broken_arguments` has
    them as they came. With `finishes`, a stream has to say how it ended.
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
        forced: bool = False,
        waits: bool = False,
        takes_refusals: bool = False,
    ) -> None:
        self.config, self.formats, self.finishes = config, formats, finishes
        self.retries_unstreamed = retries_unstreamed
        self.chunks: list[AIMessageChunk] = []
        self.forced, self.choice_refused = forced, False
        self.waits = waits
        self.limited_until: float | None = None
        self.streamed = self.never_began = False
        self.takes_refusals = takes_refusals
        self.too_long: LengthRefusal | None = None
        self.unreadable: UnreadableReply | None = None
        self.message: AIMessage | None = None
        callbacks: Any = config.get("callbacks")
        listeners = getattr(callbacks, "handlers", callbacks)
        if streaming or formats or forced or listeners:  # else nothing is streamed, so nothing is heard
            self.config = merge_configs(config, {"callbacks": [self]})

    def __enter__(self) -> Self:
        self.never_began = False
        self.forced = self.forced and not self.choice_refused
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        if self.forced and refuses_choice(error):
            self.choice_refused = True
            return True
        if self._is_refused(error):
            return True
        self.unreadable = self._find_retryable(error, trace)
        if self.unreadable is not None:
            return True
        if isinstance(error, _RAW_ERRORS) and _raising_package(trace) in _READERS:
            if self.retries_unstreamed and any(words in str(error) for words in _NO_STREAM):
                self.never_began, self.retries_unstreamed = True, False
                return True
            raise unreadable_reply_error(error, find_server_message(trace)) from error
        return False

    def _is_refused(self, error: BaseException) -> bool:
        """Note a refusal for length, or for a limit that ends at a stated time; tell whether it was one."""
        self.too_long = find_length_refusal(error) if self.takes_refusals else None
        if self.too_long is None and self.waits:
            self.limited_until = find_retry_time(error, time())
        return self.too_long is not None or self.limited_until is not None

    def _find_retryable(self, error: BaseException, trace: TracebackType | None) -> UnreadableReply | None:
        """Return the reply to ask for again because of an error, or None if the error has to be raised."""
        if isinstance(error, ValidationError):
            places = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
            if places and places <= _CALLS:
                return UnreadableReply(_describe_cause(error))
        if is_provider_error(error, "ModelRefusalError"):
            return UnreadableReply(_describe_cause(error), "refused", _find_refusal(error, self.message))
        if isinstance(error, RecursionError) and _raising_package(trace) in _READERS:
            return UnreadableReply("its arguments are nested too deeply")
        if is_unreadable_call(error):
            return UnreadableReply("the server could not read it")
        if self.formats:
            return self._read_format_error(error, trace)
        return None

    def _read_format_error(self, error: BaseException, trace: TracebackType | None) -> UnreadableReply | None:
        """Return the reply that a client raised about instead of returning it, or None for another error."""
        kinds = [_FORMAT_ERRORS.get(parent.__name__) for parent in type(error).__mro__]
        kind = next(filter(None, kinds), None)
        unparsed = find_unparsed_text(trace) if isinstance(error, ValueError) else None
        if not (kind or unparsed is not None or isinstance(error, OutputParserException)):
            return None
        message = self.message or _completion_text(error) or unparsed or AIMessage("")
        return UnreadableReply(_describe_cause(error), kind or reply_problem(message) or "unfit", message)

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Forget what an earlier attempt streamed."""
        self.chunks = []
        self.streamed = False

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:  # noqa: ARG002 - passed by name
        """Keep the pieces of calls."""
        self.streamed = True
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
            self.chunks.append(message)

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """Note a refusal: a middleware that retries would put its own message in the reply's place."""
        if self.forced and refuses_choice(error):
            self.choice_refused = True
        elif self.takes_refusals:
            self.too_long = find_length_refusal(error)

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Keep the reply, in case the client raises after it."""
        self.too_long = None  # another model, a fallback, has taken the request
        if self.forced:
            self.choice_refused = False
        generations = next(filter(None, response.generations), [None])
        message = getattr(generations[0], "message", None)
        self.message = message if isinstance(message, AIMessage) else None

    @property
    def drops_choice(self) -> bool:
        """Whether the request has to be made again without the choice that forces a call."""
        return self.forced and self.choice_refused

    @property
    def must_finish(self) -> bool:
        """Whether the reply is a stream that has to say how it ended."""
        return self.streamed and self.finishes

    @property
    def broken_arguments(self) -> BrokenArguments:
        """The arguments that are not complete JSON, joined the way langchain joins them."""
        if not self.chunks:
            return {}
        joined, broken = self.chunks[0] + self.chunks[1:], {}
        for call in joined.tool_call_chunks:
            args = call["args"] or "{}"
            if parse_json(args) is None:
                broken[call["id"], call["name"]] = args
        return broken


def watch_request(
    config: RunnableConfig,
    model: Any,
    settings: LoopSettings,
    asking: str | None,
    *,
    formats: bool,
    forced: bool,
    waits: bool,
) -> ReplyWatcher:
    """Return the watcher for a request to a model; a run that `waits` parks where a limit refuses it."""
    return ReplyWatcher(
        config,
        streaming="streaming" in type(model).model_fields and model.streaming,
        formats=formats,
        retries_unstreamed=asking != "format" and loses_plain_bodies(model),
        finishes=settings.finish_reason == "required",
        forced=forced,
        waits=waits,
        takes_refusals=settings.max_context != 0,
    )


def require_ai_message(message: Any) -> AIMessage:
    """Return a reply. Raises `ReplyError` for a message in another role."""
    if not isinstance(message, AIMessage):
        raise unreadable_reply_error(f"its role is {message.type!r}, not 'assistant'")
    return message


def unreadable_reply_error(cause: BaseException | str, server_message: str = "") -> ReplyError:
    """Return the error about a reply that could not be read, with the server's own message if it sent one."""
    why = _describe_cause(cause)
    if server_message:
        why = f"the server says: {shorten(server_message, _LONGEST_CAUSE)}"
    if "is not JSON serializable" in why:
        return ReplyError(f"The request could not be written ({why}): remove the message that contains it.")
    if "got an unexpected keyword argument" in why:
        return ReplyError(
            f"The request could not be made ({why}): the client has no such option. Remove it, or move it to "
            "`extra_body` if it is meant for the server."
        )
    return ReplyError(
        f"The model's reply could not be read ({why}), so nothing of it was stored: {RESUME_HINT}. If it "
        "happens again, check the model's address and any proxy in front of its server."
    )


def _describe_cause(cause: BaseException | str) -> str:
    text = cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"
    if "<html" in text.lower() or "<!doctype html" in text.lower():
        return "an HTML page came instead"
    for hint in ("For further information visit", " For troubleshooting, visit"):  # pydantic's, langchain's
        text = text.partition(hint)[0]
    return shorten(" ".join(text.split()), _LONGEST_CAUSE)


def _find_refusal(error: BaseException, heard: AIMessage | None) -> AIMessage:
    """Return the reply that langchain-core's error about a refusal is about, or the error's words as one."""
    for reply in (heard, getattr(error, "raw_message", None)):
        if isinstance(reply, AIMessage) and reply_problem(reply) == "refused":
            return reply
    return AIMessage("", additional_kwargs={"refusal": str(error)})


def _completion_text(error: BaseException) -> AIMessage | None:
    """Return the text in openai's errors about how a reply ended."""
    choices = getattr(getattr(error, "completion", None), "choices", None)
    if not choices:
        return None
    text = getattr(getattr(choices[0], "message", None), "content", None)
    return AIMessage(text) if isinstance(text, str) else None


def _raising_package(trace: TracebackType | None) -> str:
    """Return the package whose code raised: that of the innermost frame."""
    module = ""
    while trace is not None:
        module, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return module.partition(".")[0]
