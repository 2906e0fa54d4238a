"""A chat model that records its requests."""

import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutine
from threading import Lock
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from wakeloop.testing.replies import Step, resolve_step


@dataclass
class Record:
    """The requests of a model, shared by all its bindings and copies."""

    requests: list[list[BaseMessage]] = field(default_factory=list)
    bound: list[list[dict[str, Any]]] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock, repr=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Record":
        return self


class RecordingModel(BaseChatModel):
    """A chat model that needs no network; a subclass chooses the replies.

    Sync, async and streamed requests are all recorded before the reply is played, so a request that raises
    is recorded too. It is safe in parallel runs: one lock matches a request with its reply.
    """

    cache: BaseCache | bool | None = Field(default=False, exclude=True)
    """Off: a cached reply would hide a request from the record."""

    _record: Record = PrivateAttr(default_factory=Record)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """The messages of every request, in order, as they were at the time of the request."""
        return self._record.requests

    @property
    def bound(self) -> list[list[dict[str, Any]]]:
        """The tools bound at each request: one list per request, `[]` if there were none."""
        return self._record.bound

    @property
    def options(self) -> list[dict[str, Any]]:
        """The other keywords of each request, such as `tool_choice`, `response_format`, `stop`."""
        return self._record.options

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools bound last, in OpenAI's format (a provider's own tool dict unchanged); `[]` if none."""
        return self._record.tools

    @abstractmethod
    def _choose_step(self, request: list[BaseMessage]) -> Step:
        """Return the step that answers this request. It is recorded already, and the lock is held."""

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return this model with tools; the binding shares the record."""
        made = [_convert_tool(tool) for tool in tools]
        self._record.tools = made
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=made, **chosen, **kwargs)

    def with_structured_output(
        self, schema: dict[str, Any] | type, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Return a runnable that parses the JSON text (or the first call's arguments) of the next reply.

        `schema` is a pydantic class (the result is an instance), a TypedDict class or a JSON schema (the
        result is a dict, not validated). Raises OutputParserException for other text; with `include_raw` the
        result is `{"raw", "parsed", "parsing_error"}` and nothing is raised. `method` and `strict` are
        accepted and change nothing; other keywords go with the request into `.options`.
        """
        return bind_schema(self, schema, include_raw=include_raw, **kwargs)

    @property
    def _llm_type(self) -> str:
        return "wakeloop-testing"

    def _take(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> Step:
        options = {name: value for name, value in kwargs.items() if name != "tools"}
        if stop is not None:
            options["stop"] = stop
        record = self._record
        with record.lock:
            record.requests.append(list(messages))
            record.bound.append(list(kwargs.get("tools") or ()))
            record.options.append(options)
            return self._choose_step(messages)

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> AIMessage:
        reply = resolve_step(self._take(messages, stop, kwargs), messages)
        if isinstance(reply, AIMessage):
            return reply
        if iscoroutine(reply):
            reply.close()
        raise TypeError("The script has an async callable, but the model was called without await.")

    async def _areply(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> AIMessage:
        reply = resolve_step(self._take(messages, stop, kwargs), messages)
        while isawaitable(reply):
            reply = resolve_step(await reply, messages)
        return reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base class reports tokens
        **kwargs: Any,
    ) -> ChatResult:
        return _chat_result(self._reply(messages, stop, kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base class reports tokens
        **kwargs: Any,
    ) -> ChatResult:
        return _chat_result(await self._areply(messages, stop, kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base class reports tokens
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from split_reply(self._reply(messages, stop, kwargs))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base class reports tokens
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for piece in split_reply(await self._areply(messages, stop, kwargs)):
            yield piece


def _chat_result(reply: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=reply)])


def _convert_tool(tool: dict[str, Any] | type | Callable[..., Any] | BaseTool) -> dict[str, Any]:
    try:
        return convert_to_openai_tool(tool)
    except ValueError:
        if isinstance(tool, dict):  # a provider's own tool, e.g. {"type": "memory_20250818", …}
            return tool
        raise


_MOST_TEXTS = 4


class _SingleChunk(ChatGenerationChunk):
    """The only chunk of a stream. Adding an empty list must not parse its calls again."""

    def __add__(self, other: ChatGenerationChunk | list[ChatGenerationChunk]) -> ChatGenerationChunk:
        return super().__add__(other) if other else self


def split_reply(message: AIMessage) -> list[ChatGenerationChunk]:
    """Return chunks that add up to `message`, metadata, usage and malformed calls included.

    If the sum would differ, the reply comes as one chunk: LangChain's lenient parser makes cut arguments
    look complete, and loses names and content blocks.
    """
    chunks = list(_chunks_of(message))
    if message_chunk_to_message(chunks[0] + chunks[1:]) == message:
        return [ChatGenerationChunk(message=chunk) for chunk in chunks]
    fields = {name: value for name, value in dict(message).items() if name != "type"}
    return [_SingleChunk(message=AIMessageChunk(**fields, chunk_position="last"))]


def _chunks_of(message: AIMessage) -> Iterator[AIMessageChunk]:
    if isinstance(message.content, str):
        for text in _split_text(message.content):
            yield AIMessageChunk(content=text, id=message.id)
    made: list[tuple[str | None, str | None, str | None]] = []
    for call in message.tool_calls:
        made.append((call["name"], json.dumps(call["args"], default=repr), call["id"]))
    for broken in message.invalid_tool_calls:
        made.append((broken["name"], broken["args"], broken["id"]))
    for index, (name, args, key) in enumerate(made):
        middle = len(args or "") // 2
        yield _call_chunk(message, name=name, args=args and args[:middle], id=key, index=index)
        yield _call_chunk(message, name=None, args=args and args[middle:], id=None, index=index)
    yield AIMessageChunk(
        content="" if isinstance(message.content, str) else message.content,
        id=message.id,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )


def _call_chunk(message: AIMessage, **part: Any) -> AIMessageChunk:
    return AIMessageChunk(content="", id=message.id, tool_call_chunks=[tool_call_chunk(**part)])


def _split_text(text: str) -> Iterator[str]:
    size = -(-len(text) // _MOST_TEXTS) or 1
    for start in range(0, len(text), size):
        yield text[start : start + size]


def bind_schema(
    model: BaseChatModel,
    schema: dict[str, Any] | type,
    *,
    include_raw: bool,
    method: str = "json_schema",
    strict: bool | None = None,
    **kwargs: Any,
) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
    """Return a runnable: the model with `response_format` bound, then a parser of its reply."""
    shape = convert_to_json_schema(schema)
    wanted = {"name": shape.get("title", "answer"), "schema": shape, "strict": strict}
    asked = model.bind(
        response_format={"type": "json_schema", "json_schema": wanted},
        ls_structured_output_format={"kwargs": {"method": method}, "schema": schema},
        **kwargs,
    )

    def parse(reply: AIMessage) -> Any:
        return _parse_reply(reply, schema)

    def parse_and_show(reply: AIMessage) -> dict[str, Any]:
        try:
            return {"raw": reply, "parsed": _parse_reply(reply, schema), "parsing_error": None}
        except OutputParserException as error:
            return {"raw": reply, "parsed": None, "parsing_error": error}

    return asked | RunnableLambda(parse_and_show if include_raw else parse)


def _parse_reply(reply: AIMessage, schema: dict[str, Any] | type) -> Any:
    text = str(reply.text)
    try:
        data = reply.tool_calls[0]["args"] if reply.tool_calls else json.loads(text)
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            return schema.model_validate(data)
    except (json.JSONDecodeError, ValidationError) as error:
        raise OutputParserException(f"The reply does not fit the format: {error}", llm_output=text) from error
    if not isinstance(data, dict):
        raise OutputParserException(f"The reply is not a JSON object: {text}", llm_output=text)
    return data
