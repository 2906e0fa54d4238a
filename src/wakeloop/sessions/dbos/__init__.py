"""Sessions on DBOS, over SQLite or Postgres.

Names are imported when first used: DBOS takes a second.
"""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wakeloop.sessions.dbos.dbos_host import DbosHost
    from wakeloop.sessions.dbos.session_client import SessionClient

__all__ = ["DbosHost", "SessionClient"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "wakeloop.sessions.dbos.dbos_host": ("DbosHost",),
        "wakeloop.sessions.dbos.session_client": ("SessionClient",),
    },
    extra="sessions",
)
