"""Checkpoint savers that never run code from a row."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

Saver = TypeVar("Saver", bound=BaseCheckpointSaver[Any])


def strict_saver(kind: Callable[..., Saver], connection: Any, **options: Any) -> Saver:
    """Make a checkpoint saver that treats rows as data, so that reading one never runs code.

    It reads what this package and LangGraph write into a thread, and refuses pickles and any constructors but
    those of messages and plain values, whatever environment variables say.

    Args:
        kind: The saver's class: `SqliteSaver`, `AsyncSqliteSaver`, `PostgresSaver`, `AsyncPostgresSaver`, or
            any other that takes a connection and `serde`.
        connection: A connection or a pool, as that class takes it.
        options: Further arguments of that class.

    Returns:
        The saver. Call its own `setup` to create its tables.

    Example:
        >>> import sqlite3
        >>> from langgraph.checkpoint.sqlite import SqliteSaver
        >>> saver = strict_saver(SqliteSaver, sqlite3.connect(":memory:"))
        >>> saver.setup()
    """
    return kind(connection, serde=StrictSerializer(), **options)


class StrictSerializer(JsonPlusSerializer):
    """A serializer that reads only plain values and messages."""

    def __init__(self) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a row's value. JSON stays plain; LangChain's own reader would call constructors."""
        kind, row = data
        return json.loads(row) if kind == "json" else super().loads_typed(data)
