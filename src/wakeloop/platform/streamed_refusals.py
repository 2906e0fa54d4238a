"""Keeps the refusals that langchain-openai drops in streams."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_CONVERT = "_convert_chunk_to_generation_chunk"  # of `BaseChatOpenAI`: a server's chunk becomes a message's


def keep_streamed_refusals(chat: object) -> None:
    """Let a client of langchain-openai keep the pieces of a streamed refusal, as it keeps a whole one.

    The message that it makes of the pieces has them under `refusal`. Other clients stay as they are.
    """
    convert = getattr(chat, _CONVERT, None)
    if convert is not None and not isinstance(convert, _RefusalKeeper):
        chat.__dict__[_CONVERT] = _RefusalKeeper(convert)


@dataclass(frozen=True)
class _RefusalKeeper:
    """Converts a chunk as the client does, and adds the piece of a refusal in it."""

    convert: Callable[..., Any]

    def __call__(self, chunk: Any, *args: Any, **kwargs: Any) -> Any:
        converted = self.convert(chunk, *args, **kwargs)
        refusal = _find_piece(chunk)
        if refusal and converted is not None:
            converted.message.additional_kwargs["refusal"] = refusal
        return converted


def _find_piece(chunk: Any) -> str:
    choices = chunk.get("choices") if isinstance(chunk, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    delta = first.get("delta") if isinstance(first, Mapping) else None
    refusal = delta.get("refusal") if isinstance(delta, Mapping) else None
    return refusal if isinstance(refusal, str) else ""
