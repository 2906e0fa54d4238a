"""Text that every server and every database takes."""

from typing import Any


def whole(value: Any) -> Any:
    """Join the halves of character pairs in a text, or in plain JSON; a half alone is replaced.

    A JSON reader passes a lone half on (also where a stream cut the pair), and no UTF-8 can be made of it.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict):
        return {whole(key): whole(part) for key, part in value.items()}
    return [whole(part) for part in value] if isinstance(value, list) else value
