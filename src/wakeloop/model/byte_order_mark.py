"""Strips a byte order mark from the start of a streamed reply."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _StreamStart:
    """Holds back the first bytes of a stream until they can no longer be the mark."""

    def __init__(self) -> None:
        self.held: bytes | None = b""

    def feed(self, part: bytes) -> bytes:
        """Return the bytes that may be passed on."""
        if self.held is None:
            return part
        self.held += part
        return b"" if BYTE_ORDER_MARK.startswith(self.held) else self.finish()

    def finish(self) -> bytes:
        """Return what is held back, without the mark."""
        held, self.held = self.held or b"", None
        return held.removeprefix(BYTE_ORDER_MARK)


def strip_mark(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a stream without the mark, which would make its reader ignore the first event."""
    start = _StreamStart()
    for part in parts:
        passed = start.feed(part)
        if passed:
            yield passed
    rest = start.finish()
    if rest:
        yield rest


async def astrip_mark(parts: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield what `strip_mark` does, from an asynchronous stream."""
    start = _StreamStart()
    async for part in parts:
        passed = start.feed(part)
        if passed:
            yield passed
    rest = start.finish()
    if rest:
        yield rest


def strip_mark_hook(response: Any) -> None:
    """Strip the mark from a response: a hook for an httpx client."""
    read = response.iter_bytes
    response.iter_bytes = lambda *args, **kwargs: strip_mark(read(*args, **kwargs))


async def astrip_mark_hook(response: Any) -> None:
    """Strip the mark from a response: a hook for an asynchronous httpx client."""
    read = response.aiter_bytes
    response.aiter_bytes = lambda *args, **kwargs: astrip_mark(read(*args, **kwargs))
