"""Asks a person: the one place that interrupts."""

from collections.abc import Callable, Generator, Mapping, Sequence
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
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import OperationRefused
from wakeloop.todos.operations import Board, Operation, Outcome, Question, Rules
from wakeloop.todos.rounds import play_round

T = TypeVar("T")


def ask_person(asked: Mapping[str, Any], read: Callable[[Decision], T]) -> T:
    """Park the run until a request is answered, and return what `read` makes of the decision.

    An answer that cannot be taken (`OperationRefused`) loses nothing: the request is put again, with a
    sentence on it.
    """
    value: Mapping[str, Any] = asked
    while True:
        answer = interrupt(value)
        try:
            return read(read_decision(answer, asked))
        except OperationRefused as fault:
            value = repeat_request(asked, str(fault))


@dataclass(frozen=True)
class ReviewedRound:
    """What a round came to: the list, an outcome a call, and what a person made of its plan, if asked.

    `rejected` are the places of the calls that the person has refused.
    """

    board: Board
    outcomes: Sequence[Outcome]
    ruling: PlanRuling | None = None
    rejected: Sequence[int] = ()


def play_reviewed_round(
    board: Board,
    operations: Sequence[Operation | str],
    rules: Rules,
    notes: Ledger,
    settings: LoopSettings,
    *,
    verified: bool,
) -> Generator[Question, str | None, ReviewedRound | Ledger]:
    """Play a round, and put the plan that it makes to the person where that is due.

    Yields what `play_round` yields. Where items are `verified` and one was asked about, it returns notes in
    place of putting the plan: store them and begin again, since a node begins anew behind an interrupt, and
    no item is to be asked about twice.
    """
    verdicts = read_verdicts(notes)
    after, outcomes = yield from play_round(board, operations, rules, verdicts)
    if not needs_approval(notes, settings, board, after):
        return ReviewedRound(after, outcomes)
    if verified and verdicts and notes.get("plan") == "due":
        return note_verdicts(notes, verdicts)
    ruling = ask_person(build_plan_request(after), partial(rule_on_plan, before=board, after=after))
    if ruling.kind != "rejected":
        return ReviewedRound(ruling.board, outcomes, ruling)
    rejected = find_plan_calls(board, outcomes)
    after, outcomes = yield from play_round(board, operations, rules, verdicts, rejected)
    return ReviewedRound(after, outcomes, ruling, rejected)
