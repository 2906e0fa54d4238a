"""Makes savers that run no code of a row that they read."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

Saver = TypeVar("Saver", bound=BaseCheckpointSaver[Any])


def strict_saver(kind: Callable[..., Saver], connection: Any, **options: Any) -> Saver:
    """Make a saver whose rows are data: none of them names code that is run when it is read.

    It reads what this package and LangGraph write into a thread, whatever the environment says: no pickles,
    no constructors but those of messages and plain values.

    Args:
        kind: The saver's class: `SqliteSaver`, `AsyncSqliteSaver`, `PostgresSaver`, `AsyncPostgresSaver`, or
            any other that takes a connection and `serde`.
        connection: What that class takes: a connection, or a pool of them.
        options: What else it takes.

    Returns:
        The saver. Its tables are made by its own `setup`.
    """
    return kind(connection, serde=StrictSerializer(), **options)


class StrictSerializer(JsonPlusSerializer):
    """Reads plain values and messages."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a row's value; JSON is plain here, where LangChain's own reader calls constructors."""
        kind, row = data
        return json.loads(row) if kind == "json" else super().loads_typed(data)
