"""What a model's client cannot read, and what it mends."""

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from wakeloop.errors import ReplyError
from wakeloop.text.characters import shorten

Halves = Mapping[tuple[str | None, str | None], str]

_RAW = (ValueError, TypeError, LookupError, AttributeError)
_READERS = frozenset(("json", "pydantic", "openai", "langchain_openai", "langchain_core"))
_NAMED = 300  # characters of what the client said


class Hearing(BaseCallbackHandler):
    """One request's ear: `with Hearing(config, streaming=…) as heard: model.invoke(sent, heard.config)`.

    What the client raises raw while it reads a reply leaves as `ReplyError`; errors with a name of their own
    (a refusal, a timeout, a lost connection) and those of other code pass. A streamed call whose arguments
    broke off is parsed by langchain as if it were whole: `halves` holds the text of each, by id and name.
    """

    run_inline = True

    def __init__(self, config: RunnableConfig, *, streaming: bool) -> None:
        self.config = config
        self.chunks: list[AIMessageChunk] = []
        callbacks: Any = config.get("callbacks")
        if streaming or getattr(callbacks, "handlers", callbacks):  # nothing else has a reply streamed
            self.config = merge_configs(config, {"callbacks": [self]})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, _RAW) and _raised_in(trace) in _READERS:
            raise unreadable(error) from error

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Begin anew."""
        self.chunks = []

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:  # noqa: ARG002 - langchain passes it by name
        """Keep the pieces of calls."""
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
            self.chunks.append(message)

    @property
    def halves(self) -> Halves:
        """The arguments that are no whole JSON, joined as langchain joins them."""
        if not self.chunks:
            return {}
        joined = self.chunks[0] + self.chunks[1:] if self.chunks[1:] else self.chunks[0]
        calls = [(call["id"], call["name"], call["args"] or "{}") for call in joined.tool_call_chunks]
        return {(key, name): args for key, name, args in calls if not _is_json(args)}


def unreadable(error: BaseException | str) -> ReplyError:
    """Name what no reply could be made of."""
    said = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    said = shorten(" ".join(said.partition("For further information visit")[0].split()), _NAMED)
    return ReplyError(
        f"The model's reply could not be read ({said}), so nothing of it was stored: run the thread again "
        "with the input None, and if it comes again look at the model's address and at what stands before "
        "its server."
    )


def _raised_in(trace: TracebackType | None) -> str:
    """Return the package whose code raised: the innermost frame's."""
    module = ""
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        trace = trace.tb_next
    return module.partition(".")[0]


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True
