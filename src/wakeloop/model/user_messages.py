"""User messages with blocks or blanks that servers refuse."""

from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

_RESULT_TYPES = ("tool_result", "function_call_output")  # a tuple: a block's type may be unhashable


def is_valid_user_message(message: BaseMessage) -> bool:
    """Tell whether every server accepts a user message."""
    content = message.content
    if isinstance(content, str):
        return bool(content) and not content.isspace()
    return not any(map(_is_result, content)) and not all(map(_is_blank, content))


def repair_user_message(message: Any, no_text: str) -> Any:
    """Return a user message that every server accepts; `no_text` replaces a blank one.

    In some providers' histories tool results are blocks of a user message. No call waits for them here, so
    they become text.
    """
    if is_valid_user_message(message):
        return message
    content: str | list[Any] = no_text
    if isinstance(message.content, list):
        blocks = list(message.content)
        for place, block in enumerate(blocks):
            if _is_result(block):
                blocks[place] = _result_as_text(block)
        if not all(map(_is_blank, blocks)):
            content = blocks
    return message.model_copy(update={"content": content})


def _is_result(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in _RESULT_TYPES


def _is_blank(block: Any) -> bool:
    if isinstance(block, str):
        return not block.strip()
    if block.get("type") != "text":
        return False
    text = block.get("text")
    return not (isinstance(text, str) and text.strip())


def _result_as_text(block: Any) -> dict[str, Any]:
    result = block.get("content") or block.get("output") or ""
    parts: list[Any] = [result]
    if isinstance(result, list):
        parts = result
    texts = []
    for part in parts:
        texts.append(part if isinstance(part, str | dict) else str(part))
    return {"type": "text", "text": str(HumanMessage(texts).text)}
