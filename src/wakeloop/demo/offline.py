"""A stand-in for a model: offline, by rules, repeatable."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from wakeloop.demo.script import Reply, next_reply


class OfflineAuditor(BaseChatModel):
    """An offline, rule-based stand-in for a model: it can audit a folder and nothing else.

    No server, no key, no chance: the reply follows from the messages and the bound tools, so that a killed
    run goes on where it was. It has habits of weak models on purpose (see `script`). `limit` bounds the files
    of an audit, `delay` is the seconds that a reply takes. Token counts are characters divided by four.
    """

    name: str | None = "offline rule-based auditor (not a language model)"
    delay: float = 0
    limit: int = 12

    @property
    def _llm_type(self) -> str:
        return "wakeloop-offline-rule-based"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,  # noqa: ARG002 - the interface's
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Tell the rules which tools there are; a choice of tool changes nothing."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the interface's
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the interface's
        **kwargs: Any,
    ) -> ChatResult:
        reply = next_reply(messages, tool_names(kwargs), self.limit)
        time.sleep(self.delay)
        ids = call_ids(reply, messages)
        calls = [
            {"name": name, "args": args, "id": key, "type": "tool_call"}
            for (name, args), key in zip(reply.calls, ids, strict=True)
        ]
        message = AIMessage(
            reply.text,
            tool_calls=calls,
            usage_metadata=rough_usage(messages, reply),
            response_metadata=told(reply),
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the interface's
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = next_reply(messages, tool_names(kwargs), self.limit)
        for chunk in chunks(reply, messages, self.delay):
            generation = ChatGenerationChunk(message=chunk)
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=generation)
            yield generation


def chunks(reply: Reply, messages: Sequence[BaseMessage], delay: float) -> Iterator[AIMessageChunk]:
    """A reply in pieces: its words over `delay` seconds, its calls, and the counts at the end."""
    words = re.findall(r"\S+\s*", reply.text)
    for word in words:
        time.sleep(delay / len(words))
        yield AIMessageChunk(content=word)
    for index, ((name, args), key) in enumerate(zip(reply.calls, call_ids(reply, messages), strict=True)):
        piece = tool_call_chunk(name=name, args=json.dumps(args), id=key, index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[piece])
    yield AIMessageChunk(
        content="",
        usage_metadata=rough_usage(messages, reply),
        response_metadata=told(reply),
        chunk_position="last",
    )


def tool_names(kwargs: dict[str, Any]) -> frozenset[str]:
    """The names of the bound tools."""
    return frozenset(tool["function"]["name"] for tool in kwargs.get("tools", ()) if "function" in tool)


def call_ids(reply: Reply, messages: Sequence[BaseMessage]) -> list[str]:
    """Ids that no earlier call has: they carry the length of the history, which grows."""
    return [f"offline_{len(messages)}_{number}" for number in range(1, len(reply.calls) + 1)]


def told(reply: Reply) -> dict[str, Any]:
    """What a provider would tell beside the reply."""
    return {
        "model_name": "offline-rule-based",
        "finish_reason": "tool_calls" if reply.calls else "stop",
        "usage_note": "approximate: characters divided by four",
    }


def rough_usage(messages: Sequence[BaseMessage], reply: Reply) -> UsageMetadata:
    """Token counts for the display, approximate: characters divided by four."""
    read = sum(len(message.text) for message in messages) // 4
    written = (len(reply.text) + sum(len(json.dumps(args)) for _, args in reply.calls)) // 4
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
