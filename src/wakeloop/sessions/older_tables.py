"""Brings tables of an older release up to date, once."""

import json

import sqlalchemy as sa

from wakeloop.sessions.questions import ANY_QUESTION
from wakeloop.sessions.tables import EVENTS, SESSIONS, WAITING

OLD = "wakeloop_events_before"


def bring_up_to_date(engine: sa.Engine) -> None:
    """Let the ids of events be unique by thread, and sessions have notes of what they ask.

    One transaction; several processes may try at once, and workers of the older release may be at work. What
    a session of then asks counts as asked after all that is there, so that no older text answers it.
    """
    if not is_older(sa.inspect(engine)):
        return
    sqlite = engine.dialect.name == "sqlite"
    with engine.begin() as c:
        c.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else f"LOCK TABLE {SESSIONS.name}, {EVENTS.name}")
        if not is_older(sa.inspect(c)):  # another process has done it
            return
        c.exec_driver_sql(f"ALTER TABLE {SESSIONS.name} ADD COLUMN asked TEXT")
        newest = c.execute(sa.select(sa.func.max(EVENTS.c.seq))).scalar() or 0
        c.execute(SESSIONS.update().values(asked=json.dumps({ANY_QUESTION: newest})))
        if sqlite:
            copy_events(c)
        else:
            change_constraint(c)


def is_older(found: sa.Inspector) -> bool:
    """Tell whether the tables are those of the release before."""
    return all(column["name"] != SESSIONS.c.asked.name for column in found.get_columns(SESSIONS.name))


def copy_events(c: sa.Connection) -> None:
    """Make the table anew, the only way on SQLite to change what is unique; no number is used twice."""
    columns = "seq, id, thread, event, turn, error"
    c.exec_driver_sql(f"DROP INDEX {WAITING.name}")
    c.exec_driver_sql(f"ALTER TABLE {EVENTS.name} RENAME TO {OLD}")
    EVENTS.create(c)
    c.exec_driver_sql(f"INSERT INTO {EVENTS.name} ({columns}) SELECT {columns} FROM {OLD}")  # noqa: S608 - names of ours
    c.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (EVENTS.name,))
    c.exec_driver_sql("UPDATE sqlite_sequence SET name = ? WHERE name = ?", (EVENTS.name, OLD))
    c.exec_driver_sql(f"DROP TABLE {OLD}")


def change_constraint(c: sa.Connection) -> None:
    """Let go of the constraint on ids alone, whatever its name is, and add the one on thread and id."""
    for constraint in sa.inspect(c).get_unique_constraints(EVENTS.name):
        if constraint["column_names"] == ["id"]:
            c.exec_driver_sql(f'ALTER TABLE {EVENTS.name} DROP CONSTRAINT "{constraint["name"]}"')
    c.exec_driver_sql(f"ALTER TABLE {EVENTS.name} ADD UNIQUE (thread, id)")
