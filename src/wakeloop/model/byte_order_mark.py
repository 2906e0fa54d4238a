"""Takes a byte order mark off the head of a streamed answer."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _StreamStart:
    """What came so far of a stream, until it is known whether it begins with the mark."""

    def __init__(self) -> None:
        self.held: bytes | None = b""

    def feed(self, part: bytes) -> bytes:
        """Return what of a part may go on: nothing while all that came might be the mark."""
        if self.held is None:
            return part
        self.held += part
        return b"" if BYTE_ORDER_MARK.startswith(self.held) else self.finish()

    def finish(self) -> bytes:
        """Return what is held, without the mark."""
        held, self.held = self.held or b"", None
        return held.removeprefix(BYTE_ORDER_MARK)


def strip_mark(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what is read without the mark: with it a reader of events takes the first for none."""
    head = _StreamStart()
    for part in parts:
        if whole := head.feed(part):
            yield whole
    if rest := head.finish():
        yield rest


async def astrip_mark(parts: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the same of what is read in an event loop."""
    head = _StreamStart()
    async for part in parts:
        if whole := head.feed(part):
            yield whole
    if rest := head.finish():
        yield rest


def strip_mark_hook(response: Any) -> None:
    """Mend an answer before it is read: a hook of a client, whichever httpx it is of."""
    read = response.iter_bytes
    response.iter_bytes = lambda *given, **more: strip_mark(read(*given, **more))


async def astrip_mark_hook(response: Any) -> None:
    """Mend an answer before it is read: the hook of an asynchronous client."""
    read = response.aiter_bytes
    response.aiter_bytes = lambda *given, **more: astrip_mark(read(*given, **more))
