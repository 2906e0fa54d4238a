"""Token usage estimated from characters, four a token."""

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from wakeloop.testing.captured_requests import calls_of, malformed_of

CHARACTERS_PER_TOKEN = 4
"""Characters a token."""


def render_message(message: BaseMessage) -> str:
    """Return a message as text, with its calls."""
    content = (
        message.content if isinstance(message.content, str) else json.dumps(message.content, default=str)
    )
    made = [f"{call['name']}{json.dumps(call['args'], default=str)}" for call in calls_of(message)]
    broken = [f"{call['name']}{call['args']}" for call in malformed_of(message)]
    return f"{message.type}:{content}{''.join(made)}{''.join(broken)}\n"


class UsageMeter:
    """Counts tokens; what a request shares with the head of the one before it was cached."""

    def __init__(self) -> None:
        self.before: list[str] = []

    def usage(
        self, tools: Sequence[dict[str, Any]], request: Sequence[BaseMessage], reply: AIMessage
    ) -> UsageMetadata:
        """Return the usage of one request and its reply."""
        texts = [json.dumps(list(tools), default=str), *map(render_message, request)]
        same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(texts, self.before, strict=False))])
        cached = sum(map(len, texts[:same]))
        if same < min(len(texts), len(self.before)):
            cached += _common_length(texts[same], self.before[same])
        self.before = texts
        sent, out = (
            -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN),
            -(-len(render_message(reply)) // CHARACTERS_PER_TOKEN),
        )
        return UsageMetadata(
            input_tokens=sent,
            output_tokens=out,
            total_tokens=sent + out,
            input_token_details=InputTokenDetails(cache_read=cached // CHARACTERS_PER_TOKEN),
        )


def _common_length(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])
