"""Interrupts: how a run asks a person and waits.

This is the only module that calls LangGraph's `interrupt`.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from langgraph.types import interrupt

from wakeloop.loop.approval import Decision, read_decision, repeat_request
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.plan import (
    PlanRuling,
    build_plan_request,
    find_plan_calls,
    needs_approval,
    note_verdicts,
    read_verdicts,
    rule_on_plan,
)
from wakeloop.todos.items import OperationRefused
from wakeloop.todos.operations import Board, Operation, Outcome, Question, Rules
from wakeloop.todos.rounds import play_round

T = TypeVar("T")
_approved_call: ContextVar[tuple[str, Mapping[str, Any]] | None] = ContextVar("approved_call", default=None)


def ask_person(request: Mapping[str, Any], read: Callable[[Decision], T]) -> T:
    """Interrupt the run until the request is answered, and return what `read` makes of the decision.

    If the answer is not acceptable (`OperationRefused`), the request is asked again with the reason.
    """
    return ask_until_accepted(request, lambda answer: read(read_decision(answer, request)))


def ask_until_accepted(
    shown: Mapping[str, Any], read: Callable[[object], T], schema: dict[str, Any] | None = None
) -> T:
    """Interrupt the run with the value `shown` until `read` accepts an answer."""
    value = shown
    while True:
        answer = interrupt(value, response_schema=schema)
        try:
            return read(answer)
        except OperationRefused as fault:
            value = repeat_request(shown, str(fault))


@contextmanager
def run_approved(call: Mapping[str, Any]) -> Iterator[None]:
    """Run a call: if a person has `approved` it, a tool that asks by itself does not ask again.

    That holds for this tool with these arguments: what it calls in its turn is still asked about.
    """
    token = _approved_call.set((call["name"], call["args"]) if call.get("approved") else None)
    try:
        yield
    finally:
        _approved_call.reset(token)


def ask_before_effect(request: Mapping[str, Any]) -> Decision:
    """Return the decision on a call of a tool that asks by itself; ask, unless the graph has done so."""
    [action] = request["action_requests"]
    if _approved_call.get() == (action["name"], action["args"]):
        return Decision("approve")
    return ask_person(request, lambda decision: decision)


@dataclass(frozen=True)
class ReviewedRound:
    """The result of a round: the list, one outcome per call, and the ruling on its plan, if one was asked.

    `rejected` are the indices of the calls that the person rejected.
    """

    board: Board
    outcomes: Sequence[Outcome]
    ruling: PlanRuling | None = None
    rejected: Sequence[int] = ()


def play_reviewed_round(
    board: Board, operations: Sequence[Operation | str], rules: Rules, notes: Ledger, *, verified: bool
) -> Generator[Question, str | None, ReviewedRound | Ledger]:
    """Play a round, and ask the person to approve its plan if that is required.

    Yields what `play_round` yields. With a verifier (`verified`) that has just been asked, it returns notes
    instead of interrupting: the caller stores them and runs the node again.
    """
    verdicts = read_verdicts(notes)
    after, outcomes = yield from play_round(board, operations, rules, verdicts)
    if not needs_approval(notes, board, after):
        return ReviewedRound(after, outcomes)
    # After an interrupt LangGraph runs the node from its start. Verdicts are stored before that, or the
    # verifier would be asked twice about one item.
    if verified and verdicts and notes.get("plan") == "due":
        return note_verdicts(notes, verdicts)
    ruling = ask_person(build_plan_request(after), partial(rule_on_plan, before=board, after=after))
    if ruling.kind != "rejected":
        return ReviewedRound(ruling.board, outcomes, ruling)
    # Play the round again without the refused calls: the others, such as a status change, still count.
    rejected = find_plan_calls(board, outcomes)
    after, outcomes = yield from play_round(board, operations, rules, verdicts, rejected)
    return ReviewedRound(after, outcomes, ruling, rejected)
