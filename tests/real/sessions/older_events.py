"""The tables of events as the release before made them, with rows that it wrote."""

ROWS = """
INSERT INTO wakeloop_events (id, thread, event, turn, error) VALUES ('e1', 'main', NULL, 'e1', 'given up');
INSERT INTO wakeloop_events (id, thread, event, turn, error)
    VALUES ('held', 'main', '{"kind": "cron", "id": "held", "text": "tick"}', NULL, NULL);
INSERT INTO wakeloop_events (id, thread, event, turn, error)
    VALUES ('e2', 'ada:1', '{"kind": "human", "id": "e2", "text": "yes"}', NULL, NULL);
INSERT INTO wakeloop_sessions VALUES ('main', 'given up');
INSERT INTO wakeloop_sessions VALUES ('ada:1', NULL);
"""
OTHERS = """
CREATE TABLE wakeloop_schedules (
	id TEXT NOT NULL, thread TEXT NOT NULL, cron TEXT NOT NULL, text TEXT NOT NULL, due TEXT NOT NULL,
	PRIMARY KEY (id)
);
CREATE TABLE wakeloop_sessions (thread TEXT NOT NULL, error TEXT, PRIMARY KEY (thread));
CREATE TABLE wakeloop_workers (
	worker TEXT NOT NULL, since TEXT NOT NULL, draining BOOLEAN NOT NULL, PRIMARY KEY (worker)
);
CREATE INDEX wakeloop_events_waiting ON wakeloop_events (thread, seq) WHERE event IS NOT NULL;
"""
SQLITE = f"""
CREATE TABLE wakeloop_events (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, thread TEXT NOT NULL,
	event TEXT, turn TEXT, error TEXT, UNIQUE (id)
);
{OTHERS}{ROWS}
UPDATE sqlite_sequence SET seq = 7 WHERE name = 'wakeloop_events';
"""
POSTGRES = f"""
CREATE TABLE wakeloop_events (
	seq BIGSERIAL NOT NULL, id TEXT NOT NULL, thread TEXT NOT NULL,
	event TEXT, turn TEXT, error TEXT, PRIMARY KEY (seq), UNIQUE (id)
);
{OTHERS}{ROWS}
SELECT setval('wakeloop_events_seq_seq', 7);
"""
