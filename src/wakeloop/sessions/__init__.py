"""Sessions: what wakes them, and who hosts them."""

from wakeloop.loop.inbox import event_fault
from wakeloop.sessions.host import Schedule, SessionHost, SessionStatus, agent_of, derived_id
from wakeloop.sessions.questions import Early, early, noted
from wakeloop.sessions.runs import (
    NextInput,
    Outgoing,
    aclose_run,
    answer_to,
    answered,
    close_run,
    must_go_on,
    next_input,
    outstanding,
    refusal_of,
)
from wakeloop.sessions.tools import Limits, session_tools

__all__ = [
    "Early",
    "Limits",
    "NextInput",
    "Outgoing",
    "Schedule",
    "SessionHost",
    "SessionStatus",
    "aclose_run",
    "agent_of",
    "answer_to",
    "answered",
    "close_run",
    "derived_id",
    "early",
    "event_fault",
    "must_go_on",
    "next_input",
    "noted",
    "outstanding",
    "refusal_of",
    "session_tools",
]
