"""Tables of events, sessions, schedules, files and workers."""

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
    sa.Column("event", sa.Text),  # JSON; NULL once its run has ended
    sa.Column("run", sa.Text),  # the run that took it
    sa.Column("error", sa.Text),  # why its run failed, or why it was refused
    sa.UniqueConstraint("thread", "id"),
    sqlite_autoincrement=True,  # never reuse a number: the numbers give the order of events and questions
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
    sa.Column("error", sa.Text),  # why the newest run failed, or why an answer was refused
    sa.Column("asked", sa.Text),  # JSON: each open question, and the newest event when it was asked
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
TRUSTED = sa.Table(
    "wakeloop_trusted",
    METADATA,
    sa.Column("agent", sa.Text, primary_key=True),
    sa.Column("files", sa.Text, nullable=False),  # JSON: hashes of the files that start code
)
WORKERS = sa.Table(
    "wakeloop_workers",
    METADATA,
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("since", sa.Text, nullable=False),  # ISO 8601, UTC
    sa.Column("draining", sa.Boolean, nullable=False, default=False),
)
