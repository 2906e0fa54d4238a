"""Token usage, estimated at four characters per token."""

import json
import math
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from wakeloop.testing.captured_requests import calls_of, malformed_of

CHARACTERS_PER_TOKEN = 4


def render_message(message: BaseMessage) -> str:
    """Return a message as text, with its calls."""
    content = message.content
    if not isinstance(content, str):
        content = json.dumps(content, default=str)
    text = f"{message.type}:{content}"
    for call in calls_of(message):
        text += f"{call['name']}{json.dumps(call['args'], default=str)}"
    for broken in malformed_of(message):
        text += f"{broken['name']}{broken['args']}"
    return text + "\n"


def common_length(one: str, other: str) -> int:
    """Return how many characters two strings have in common at their start."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length


class UsageMeter:
    """Counts tokens. The text that a request shares with the start of the one before it counts as cached."""

    def __init__(self) -> None:
        self.before: list[str] = []

    def usage(
        self, tools: Sequence[dict[str, Any]], request: Sequence[BaseMessage], reply: AIMessage
    ) -> UsageMetadata:
        """Return the usage of one request and its reply."""
        texts = [json.dumps(list(tools), default=str), *map(render_message, request)]
        same = 0
        for text, before in zip(texts, self.before, strict=False):
            if text != before:
                break
            same += 1
        cached = sum(map(len, texts[:same]))
        if same < min(len(texts), len(self.before)):
            cached += common_length(texts[same], self.before[same])
        self.before = texts
        sent = math.ceil(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)
        out = math.ceil(len(render_message(reply)) / CHARACTERS_PER_TOKEN)
        return UsageMetadata(
            input_tokens=sent,
            output_tokens=out,
            total_tokens=sent + out,
            input_token_details=InputTokenDetails(cache_read=cached // CHARACTERS_PER_TOKEN),
        )
