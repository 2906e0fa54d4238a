"""Strips a byte order mark from the start of a streamed reply."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def strip_mark(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a stream without the mark, which would make its reader ignore the first event."""
    mark = BYTE_ORDER_MARK
    for part in parts:
        yield part.removeprefix(mark)
        mark = b""


async def astrip_mark(parts: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield what `strip_mark` does, from an asynchronous stream."""
    mark = BYTE_ORDER_MARK
    async for part in parts:
        yield part.removeprefix(mark)
        mark = b""


def strip_mark_hook(response: Any) -> None:
    """Strip the mark from a response: a hook for an httpx client."""
    read = response.iter_bytes
    response.iter_bytes = lambda *args, **kwargs: strip_mark(read(*args, **kwargs))


async def astrip_mark_hook(response: Any) -> None:
    """Strip the mark from a response: a hook for an asynchronous httpx client."""
    read = response.aiter_bytes
    response.aiter_bytes = lambda *args, **kwargs: astrip_mark(read(*args, **kwargs))
