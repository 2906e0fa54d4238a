"""Watches a request that the agent makes."""

from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain.agents.structured_output import StructuredOutputError, ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.types import TracePolicy

from wakeloop.checks.argument_values import get_tool_name
from wakeloop.model.redaction import RedactingTracer
from wakeloop.model.reply_watcher import ReplyWatcher
from wakeloop.model.usage import model_name_of
from wakeloop.stream import EndReason
from wakeloop.text.marks import text_of

GIVE_UP = "Model call failed after "  # how a message of `ModelRetryMiddleware` begins


def _trim_traced_inputs(inputs: Any) -> Any:
    request = inputs.get("request") if isinstance(inputs, dict) else None
    if not isinstance(request, dict):
        return inputs
    return {
        "request": {
            "model": model_name_of(request["model"]),
            "system_message": request.get("system_message"),
            "messages": request.get("messages"),
        }
    }


TRACE_POLICY = TracePolicy(process_inputs=_trim_traced_inputs)
"""What LangSmith sees of a request; LangChain would send it every argument of the model."""


class HeardCalls(BaseCallbackHandler):
    """Hears the calls of a model, after all other middleware: what was sent, and whether it was answered.

    `ids` are those of the messages that were really sent, `bound` the tools, by the id of the reply.
    `answered` is None if no model was called, False if the last call failed. Where other middleware asks a
    model too, the agent's call comes last.
    """

    run_inline = True

    def __init__(self) -> None:
        self.ids: frozenset[str | None] = frozenset()
        self.answered: bool | None = None
        self.bound: dict[str, dict[str, Any]] = {}
        self._sent: dict[Any, dict[str, Any]] = {}  # the tools of a call under way

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **shown: Any) -> None:  # noqa: ARG002 - langchain's own
        """Keep what the last request sends."""
        self.ids = frozenset([message.id for message in messages[0]])
        self._sent[run_id] = read_bound_tools(shown.get("invocation_params") or {})

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        """Note that the model answered, and what was bound to it."""
        self.answered = True
        tools = self._sent.pop(run_id, {})
        for generation in response.generations[0] if tools else ():
            self.bound[getattr(generation, "message", AIMessage("")).id or ""] = tools

    def on_llm_error(self, error: BaseException, **_: Any) -> None:  # noqa: ARG002 - langchain's own
        """Note that the call failed."""
        self.answered = False

    def find_end_without_model(self, reply: AIMessage, model: Any) -> EndReason | None:
        """Return how a run ends whose reply was written by no model; None for a model's own.

        LangChain gives every reply of a chat model an id, so a message without one comes from a middleware,
        unless the model's own class answers without LangChain's help.
        """
        if self.answered or reply.id or reply.tool_calls or reply.invalid_tool_calls:
            return None
        if self.answered is None and not is_heard(model):
            return "failed" if text_of(reply).startswith(GIVE_UP) else None
        return "ended_elsewhere" if self.answered is None else "failed"


def name_end_without_model(message: AIMessage) -> EndReason:
    """Return how a run ends with a message of other middleware that called no model, or nobody heard it."""
    return "failed" if text_of(message).startswith(GIVE_UP) else "ended_elsewhere"


def read_bound_tools(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tools of a request by name, in its client's form."""
    found = {}
    bound = parameters.get("tools")
    for tool in bound if isinstance(bound, list) else ():
        if not isinstance(tool, Mapping):
            continue
        # Gemini's client groups its tools, and Bedrock's wraps each
        for declared in tool.get("function_declarations") or [tool.get("toolSpec") or tool]:
            found[get_tool_name(declared)] = declared
    return found


def is_heard(model: Any) -> bool:
    """Tell whether LangChain reports the calls of a model."""
    kind = type(model)
    return issubclass(kind, BaseChatModel) and (kind.invoke, kind.ainvoke) == (
        BaseChatModel.invoke,
        BaseChatModel.ainvoke,
    )


@contextmanager
def catch_format_error(request: ModelRequest[Any], said: list[ModelResponse[Any]]) -> Iterator[None]:
    """Catch LangChain's error for an answer that is not in the provider's format, and keep the answer.

    A `ToolStrategy` has its own way, `handle_errors`.
    """
    try:
        yield
    except StructuredOutputError as error:
        if isinstance(request.response_format, ToolStrategy):
            raise
        said.append(ModelResponse([error.ai_message]))


def call_handler(
    handler: Callable[[Any], Any], request: Any, ear: ReplyWatcher, config: RunnableConfig
) -> Any:
    """Return a reply, or None if it could not be read. Errors and traces hold no keys."""
    answers: list[Any] = []
    with RedactingTracer(ear.config, request.model) as traced, ear, catch_format_error(request, answers):
        if traced is None or traced is config:
            answers.append(handler(request))
        else:
            with set_config_context(traced) as context:
                answers.append(context.run(handler, request))
    again = _build_next_attempt(request, ear)
    if again is not None:
        return call_handler(handler, again, ear, config)
    return answers[0] if answers else None


async def acall_handler(
    handler: Callable[[Any], Awaitable[Any]], request: Any, ear: ReplyWatcher, config: RunnableConfig
) -> Any:
    """Return the same; the model is awaited."""
    answers: list[Any] = []
    with RedactingTracer(ear.config, request.model) as traced, ear, catch_format_error(request, answers):
        if traced is None or traced is config:
            answers.append(await handler(request))
        else:
            with set_config_context(traced) as context:
                task = get_running_loop().create_task(_await_handler(handler, request), context=context)
                answers.append(await task)
    again = _build_next_attempt(request, ear)
    if again is not None:
        return await acall_handler(handler, again, ear, config)
    return answers[0] if answers else None


def _build_next_attempt(request: Any, ear: ReplyWatcher) -> Any:
    """Return the request for one more attempt, or None if its reply or error is final.

    A choice that was refused is left out, and a stream that never began, which may be a plain body, is not
    streamed.
    """
    if ear.drops_choice:
        return request.override(tool_choice=None)
    if ear.never_began:
        return request.override(model_settings={**request.model_settings, "stream": False})
    return None


async def _await_handler(handler: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    return await handler(request)
