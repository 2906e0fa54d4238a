"""A user's message: blocks and blanks that servers refuse."""

from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

_RESULTS = ("tool_result", "function_call_output")  # no set: a block may hold anything


def is_valid_user_message(message: BaseMessage) -> bool:
    """Tell whether every server takes what a user said."""
    content = message.content
    if isinstance(content, str):
        return bool(content) and not content.isspace()
    return not any(map(_is_result, content)) and not all(map(_is_blank, content))


def repair_user_message(message: Any, no_text: str) -> Any:
    """Return a user's message as every server takes it.

    Results stand in a user's blocks in a provider's own history; no call waits for them here, and they become
    text. Where nothing is said, `no_text` stands.
    """
    if is_valid_user_message(message):
        return message
    blocks = message.content if isinstance(message.content, list) else []
    said = [_result_as_text(block) if _is_result(block) else block for block in blocks]
    return message.model_copy(update={"content": no_text if all(map(_is_blank, said)) else said})


def _is_result(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in _RESULTS


def _is_blank(block: Any) -> bool:
    text = block if isinstance(block, str) else block.get("text") if block.get("type") == "text" else "other"
    return not (isinstance(text, str) and text.strip())


def _result_as_text(block: Any) -> dict[str, Any]:
    said = block.get("content") or block.get("output") or ""
    parts = said if isinstance(said, list) else [said]
    texts = [part if isinstance(part, str | dict) else str(part) for part in parts]
    return {"type": "text", "text": str(HumanMessage(texts).text)}
