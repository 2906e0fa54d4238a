"""Sessions: threads that events wake, and their hosts."""

from wakeloop.loop.inbox import find_event_fault
from wakeloop.sessions.communication_tools import SubagentLimits, session_tools
from wakeloop.sessions.host import Schedule, SessionHost, SessionStatus, derive_id, find_agent
from wakeloop.sessions.host_rules import (
    NextInput,
    OutgoingEvent,
    aclose_run,
    choose_next_input,
    close_run,
    list_outstanding,
    make_answer,
    make_refusal,
    must_resume,
    remove_answered,
)
from wakeloop.sessions.questions import EarlyEvents, find_early_events, update_question_notes

__all__ = [
    "EarlyEvents",
    "NextInput",
    "OutgoingEvent",
    "Schedule",
    "SessionHost",
    "SessionStatus",
    "SubagentLimits",
    "aclose_run",
    "choose_next_input",
    "close_run",
    "derive_id",
    "find_agent",
    "find_early_events",
    "find_event_fault",
    "list_outstanding",
    "make_answer",
    "make_refusal",
    "must_resume",
    "remove_answered",
    "session_tools",
    "update_question_notes",
]
