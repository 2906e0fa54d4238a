"""The tables of events, sessions, schedules and workers."""

import sqlalchemy as sa

METADATA = sa.MetaData()
EVENTS = sa.Table(
    "wakeloop_events",
    METADATA,
    sa.Column(
        "seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("thread", sa.Text, nullable=False),
    sa.Column("event", sa.Text),  # JSON; None when its run has ended
    sa.Column("turn", sa.Text),  # the run that took it; a stored name
    sa.Column("error", sa.Text),  # why its run was given up, or it was refused
    sa.UniqueConstraint("thread", "id"),
    sqlite_autoincrement=True,  # a number is never used twice
)
WAITING = sa.Index(
    "wakeloop_events_waiting",
    EVENTS.c.thread,
    EVENTS.c.seq,
    sqlite_where=EVENTS.c.event.is_not(None),
    postgresql_where=EVENTS.c.event.is_not(None),
)
SESSIONS = sa.Table(
    "wakeloop_sessions",
    METADATA,
    sa.Column("thread", sa.Text, primary_key=True),
    sa.Column("error", sa.Text),  # why the newest run was given up, or an answer refused
    sa.Column("asked", sa.Text),  # JSON: each question that stands, and what was newest when it was asked
)
SCHEDULES = sa.Table(
    "wakeloop_schedules",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("thread", sa.Text, nullable=False),
    sa.Column("cron", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("due", sa.Text, nullable=False),  # ISO 8601, UTC
)
WORKERS = sa.Table(
    "wakeloop_workers",
    METADATA,
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("since", sa.Text, nullable=False),  # ISO 8601, UTC
    sa.Column("draining", sa.Boolean, nullable=False, default=False),
)
