"""Takes a byte order mark off the head of a streamed answer."""

from collections.abc import Iterable, Iterator
from typing import Any

MARK = b"\xef\xbb\xbf"


def unmarked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what is read without the mark: with it a reader of events takes the first for none."""
    head, left = b"", iter(parts)
    for part in left:
        head += part
        if not MARK.startswith(head):  # it is more than the mark, or something else
            break
    yield head.removeprefix(MARK)
    yield from left


def unmark(response: Any) -> None:
    """Mend an answer before it is read: a hook of a client, whichever httpx it is of."""
    read = response.iter_bytes
    response.iter_bytes = lambda *given, **more: unmarked(read(*given, **more))
