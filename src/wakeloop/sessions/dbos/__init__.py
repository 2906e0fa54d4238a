"""Sessions on DBOS, over SQLite or Postgres.

Names are imported when first used: DBOS takes a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeloop.sessions.dbos.dbos_host import DbosHost
    from wakeloop.sessions.dbos.post import Post

__all__ = ["DbosHost", "Post"]

_FILE = {"DbosHost": "dbos_host", "Post": "post"}


def __getattr__(name: str) -> object:
    """Import a public name from its file, once."""
    if name not in _FILE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_FILE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
