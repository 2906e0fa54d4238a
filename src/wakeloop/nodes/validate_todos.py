"""Applies a round's todo calls to the list, one result each."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig

from wakeloop.dialects.base import Dialect
from wakeloop.loop import item_notes
from wakeloop.loop.before_request import Notices
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.list_changes import note_own_write, note_unnoticed, render_whole_list
from wakeloop.loop.overrides import settings_in_force
from wakeloop.loop.progress import reach_unless_grown
from wakeloop.loop.replies import find_external_calls
from wakeloop.model import tool_results
from wakeloop.platform.runnables import read_step
from wakeloop.platform.tool_runs import ToolAnsweringNode
from wakeloop.platform.traces import stream_event
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.state import TodoState, adopt_list, copy_ledger
from wakeloop.text.marks import append_to_result, find_last, with_list_stamp
from wakeloop.thread.interrupts import ReviewedRound, play_reviewed_round
from wakeloop.thread.judges import Verifier
from wakeloop.todos.changes import Changes, changed_ids, diff_lists, stamp_after, stamp_items, write_all
from wakeloop.todos.items import OperationRefused
from wakeloop.todos.operations import (
    Board,
    Change,
    Operation,
    Outcome,
    Question,
    Replace,
    Reset,
    Rules,
    Show,
    prune_refusals,
    with_status,
)


@dataclass
class Round:
    """A round of todo calls while it is answered.

    `ledger` are the notes of the reply, on which is written. `made` are all calls of the reply, `calls` those
    to the todo tools, `before` is the list before them, `step` their superstep. `by_hand` says that somebody
    else had written the list, `has_others` that the reply made other calls, too.
    """

    ledger: Ledger
    settings: LoopSettings
    made: Sequence[ToolCall]
    calls: list[Any]
    before: Board
    step: int
    by_hand: bool
    has_others: bool


@dataclass(frozen=True, eq=False)
class ValidateTodos(ToolAnsweringNode):
    """Apply a round's todo calls; ask the verifier about items, and a person about the plan."""

    dialect: Dialect
    settings: LoopSettings
    verifier: Verifier = field(default_factory=Verifier)

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the list's changes and one tool result per call."""
        play, verdict = self.play(state, read_step(config)), None
        try:
            while True:
                verdict = self.verifier.ask(play.send(verdict), state)
        except StopIteration as done:
            return cast(dict[str, Any], done.value)

    async def acall(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the same; an asynchronous verifier is awaited."""
        play, verdict = self.play(state, read_step(config)), None
        try:
            while True:
                verdict = await self.verifier.aask(play.send(verdict), state)
        except StopIteration as done:
            return cast(dict[str, Any], done.value)

    def calls_to_answer(self, state: TodoState) -> list[ToolCall]:
        """Return the round's todo calls from the last reply."""
        return find_todo_calls(copy_ledger(state), state, tool_results.last_calls(state["messages"]))

    def play(self, state: TodoState, step: int) -> Generator[Question, str | None, dict[str, Any]]:
        """Play the round, or put open items to the verifier once its calls are answered."""
        notes, made = copy_ledger(state), tool_results.last_calls(state["messages"])
        calls = find_todo_calls(notes, state, made)
        if notes.get("check") and not calls:
            return self.check_open_items(state)
        return self.play_round(state, notes, calls, made, step)

    # -- items that are put to the verifier after a round ------------------------------------------------

    def check_open_items(self, state: TodoState) -> Generator[Question, str | None, dict[str, Any]]:
        """Put open items to the verifier, and complete those that it finds done; the others stay silent."""
        ledger = copy_ledger(state)
        ledger.pop("check", None)
        ledger.pop("held", None)  # they have run
        if not item_notes.count_successes(state["messages"], ledger):
            return {"todo_ledger": ledger}
        written = adopt_list(state["todos"], ledger)
        before = board = Board(todos=state["todos"] if written is None else written)
        outcomes: list[Outcome] = []
        for todo in item_notes.choose_items(ledger, before.todos):
            done = with_status(todo, "completed")
            if (yield Question(done)) is None:
                board = board.with_item(done)
                outcomes.append(Outcome(Change(todo["id"], "completed"), board, touched=(todo["id"],)))
        update: dict[str, Any] = {"todo_ledger": ledger}
        if outcomes:
            update |= self.complete_items(state, ledger, before, outcomes)
        if written is not None:
            update["todos"] = write_all(board.todos)
        return update

    def complete_items(
        self, state: TodoState, ledger: Ledger, before: Board, outcomes: Sequence[Outcome]
    ) -> dict[str, Any]:
        """Store items that the verifier found done, and say so at the end of the last result."""
        after = outcomes[-1].board
        item_notes.note_writes(ledger, before, outcomes, verified=True)
        ledger["writes"] = ledger.get("writes", 0) + 1
        done = [after.find(outcome.touched[0]) for outcome in outcomes]
        text = "\n".join(self.dialect.render_verified(todo) for todo in done if todo is not None)
        last = find_last(ToolMessage, state["messages"])
        assert last is not None  # noqa: S101 - a call has just succeeded
        changed = self.stream_changes(before, after, outcomes, always=True)
        said = append_to_result(last, Notices(changes=text).compose())
        note_own_write(ledger, before.todos, after.todos)
        said = with_list_stamp(said, stamp_items(after.todos))
        return {"messages": [said], "todos": {**changed, "own": True}, "todo_ledger": ledger}

    def stream_changes(
        self, before: Board, after: Board, outcomes: Sequence[Outcome], *, always: bool
    ) -> Changes:
        """Stream the verifier's answers and the new list, and return what has changed in it."""
        self.verifier.stream_verdicts(outcomes, after)
        changed = diff_lists(before.todos, after.todos)
        if changed or always:
            stream_event({"type": "todos", "todos": list(after.todos), "changed": changed_ids(changed)})
        return changed

    # -- the todo calls of a round -----------------------------------------------------------------------

    def play_round(
        self, state: TodoState, notes: Ledger, calls: list[Any], made: Sequence[ToolCall], step: int
    ) -> Generator[Question, str | None, dict[str, Any]]:
        """Play the round; return the update, or the notes to store before a plan is shown."""
        taken: Ledger = {**notes}
        todos, written = state["todos"], adopt_list(state["todos"], taken)
        before = Board(
            todos=todos if written is None else written,
            goal=str(state["todo_goal"]),
            next_id=taken.get("next_id", 1),
            refusals=taken.get("refusals", {}),
        )
        if written is None:
            note_unnoticed(taken, state["messages"], todos)
        if "unseen" in taken:  # nothing else of a list that somebody wrote is noted: the round is a new one
            notes["unseen"] = taken["unseen"]
        settings = settings_in_force(self.settings, notes)
        others = len(made) > len(calls)
        round_ = Round(notes, settings, made, calls, before, step, written is not None, others)
        rules = Rules(settings.max_items, settings.in_progress, self.dialect.replaces, settings.repeats)
        operations = [self.read_operation(call, round_) for call in calls]
        verified = self.verifier.verify is not None
        judged = yield from play_reviewed_round(before, operations, rules, notes, verified=verified)
        if not isinstance(judged, ReviewedRound):
            return {"todo_ledger": judged}
        return self.write_outcomes(state, round_, judged)

    def read_operation(self, call: Any, round_: Round) -> Operation | str:
        """Turn a call into an operation, or into the sentence that refuses it."""
        why = round_.ledger.get("faults", {}).get(call["id"])
        if call["name"] not in self.dialect.tool_names:  # a build with another dialect wrote it
            return tool_results.unknown_tool_error(call["name"], self.dialect.tool_names)
        if why is None:
            try:
                operation = self.dialect.parse_call(call["name"], call["args"])
            except OperationRefused as refusal:
                why = str(refusal)
            else:
                why = self.dialect.refusal(operation, round_.before)
                if why is None and "unseen" in round_.ledger and isinstance(operation, Replace | Reset):
                    why = self.fill_prompt("outdated_list", round_)
                if why is None:
                    return operation
        return Replace((), why) if self.dialect.replaces and call["name"] in self.dialect.writes else why

    def fill_prompt(self, name: str, round_: Round, **blanks: object) -> str:
        """Return one of the package's prompts under the settings of a round."""
        return fill_prompt(name, self.dialect.prompt_folder, round_.settings.prompts, **blanks)

    def write_outcomes(self, state: TodoState, round_: Round, judged: ReviewedRound) -> dict[str, Any]:
        """Turn the outcomes into tool results, the list's changes, counters and events."""
        ledger, settings = round_.ledger, round_.settings
        before, after = round_.before, judged.board
        ledger["next_id"] = after.next_id
        ledger.pop("refusals", None)
        if after.refusals:
            ledger["refusals"] = prune_refusals(after)
        outcomes = self.mark_rejected(round_, judged)
        verified = self.verifier.verify is not None
        runs = verified and any("fault" not in call for call in find_external_calls(ledger, round_.made))
        item_notes.note_writes(ledger, before, outcomes, verified=verified, called=runs)
        if settings.audit != "off" and not verified:  # a verifier sees what it accepts
            item_notes.note_completed(ledger, before.todos, after.todos)
        results = self.render_results(round_, outcomes)
        self.update_unseen(round_, judged, outcomes, results)
        if results and settings.max_idle_rounds:
            # Idle rounds are counted from the messages alone; this notes how far the list had come before.
            results[0].artifact = reach_unless_grown(before.todos, after.todos)
        if "plan" in ledger:
            results += self.apply_plan_ruling(state, round_, judged, results)
        changed = self.stream_changes(before, after, outcomes, always=round_.by_hand)
        update: dict[str, Any] = {"messages": results}
        if changed or round_.by_hand:
            update["todos"] = written = self.write_list(round_, after, changed)
            results[-1] = with_list_stamp(results[-1], stamp_after(state["todos"], written, after.todos))
        if ledger != state.get("todo_ledger"):  # most rounds leave it alone, which saves a row
            update["todo_ledger"] = ledger
        if after.goal != before.goal:
            update["todo_goal"] = after.goal
        return update

    def write_list(self, round_: Round, after: Board, changed: Changes) -> Changes:
        """Return the list's changes as they are written; other calls of the reply may write the list, too."""
        written: Changes = write_all(after.todos) if round_.by_hand else {**changed, "own": True}
        if round_.has_others and "plan" in round_.ledger:  # and they run later
            round_.ledger["base"] = [*round_.before.todos]  # type: ignore[list-item]
        elif round_.has_others:
            written["step"] = round_.step
        return written

    def update_unseen(
        self,
        round_: Round,
        judged: ReviewedRound,
        outcomes: Sequence[Outcome],
        results: Sequence[ToolMessage],
    ) -> None:
        """Note what the model knows of others' changes after the round; show the list if one was refused."""
        ledger, after = round_.ledger, judged.board
        if "unseen" not in ledger:
            return
        why = self.fill_prompt("outdated_list", round_)
        outdated = [result for result, outcome in zip(results, outcomes, strict=True) if outcome.error == why]
        if outdated:
            listing = render_whole_list(self.dialect, round_.settings, after.todos, after.goal)
            last = outdated[-1]
            last.content = f"{last.content}\n\n{listing}"
            ledger |= {"outdated": True, "shown": last.id or ""}
        knows_all = (Replace, Reset, Show)
        if outdated or any(o.error is None and isinstance(o.operation, knows_all) for o in outcomes):
            ledger.pop("unseen", None)
        else:
            note_own_write(ledger, round_.before.todos, after.todos)

    def render_results(self, round_: Round, outcomes: Sequence[Outcome]) -> list[ToolMessage]:
        """Return one result per call, and note which message shows the list now."""
        ledger, others = round_.ledger, round_.has_others
        results: list[ToolMessage] = []
        for call, outcome in zip(round_.calls, outcomes, strict=True):
            status = "error"
            if (fault := ledger.get("faults", {}).get(call["id"])) is not None:
                text = fault
            elif outcome.error is not None:
                text = self.dialect.render_error(outcome.error)
            else:
                text = self.dialect.render_result(replace(outcome, has_other_calls=others))
                status = "success" if isinstance(outcome.operation, Show) or outcome.wrote else "error"
            result = tool_results.tool_result(call, text, status)
            results.append(result)
            if outcome.wrote:
                ledger["todo_guard_suppressed"] = False  # the model works with its list again
            if outcome.error is None and self.dialect.shows_open_items(outcome):
                ledger["shown"] = result.id or ""
        return results

    def mark_rejected(self, round_: Round, judged: ReviewedRound) -> Sequence[Outcome]:
        """Return the outcomes; those that the person rejected say so, in the person's words."""
        if judged.ruling is None or not judged.rejected:
            return judged.outcomes
        why = self.fill_prompt("plan_rejected", round_, words=judged.ruling.words)
        outcomes = list(judged.outcomes)
        for place in judged.rejected:
            outcomes[place] = replace(outcomes[place], error=why)
        return outcomes

    def apply_plan_ruling(
        self, state: TodoState, round_: Round, judged: ReviewedRound, results: Sequence[ToolMessage]
    ) -> list[ToolMessage]:
        """Note what a person decided about the plan, show an edit once, and answer the other calls.

        The calls that waited for the plan run now, or are answered.
        """
        ledger, ruling = round_.ledger, judged.ruling
        waiting = tool_results.find_unanswered(find_external_calls(ledger, round_.made), state["messages"])
        ledger["plan"] = kind = "stands" if ruling is None else ruling.kind
        ledger.pop("verdicts", None)
        if ruling is not None and kind != "rejected":
            ledger["planned"] = True
        if kind == "stands":
            ledger["held"] = list(waiting)
            return []
        if kind == "edited":
            # An edit counts as a list from outside, so an input that sends back an older one is recognized.
            ledger["writes"] = ledger.get("writes", 0) + 1
            listing = self.dialect.render_list(judged.board.todos, judged.board.goal, round_.settings)
            last = results[-1]
            last.content = f"{last.content}\n\n{self.fill_prompt('plan_edited', round_, list=listing)}"
            ledger["shown"] = last.id or ""
            ledger.pop("unseen", None)
        why = self.fill_prompt(f"held_{kind}", round_)
        ledger["faults"] = {**ledger.get("faults", {}), **{call["id"]: why for call in waiting}}
        return [tool_results.error_result(call, call.get("fault") or why) for call in waiting]


def find_todo_calls(notes: Ledger, state: TodoState, made: Sequence[ToolCall]) -> list[ToolCall]:
    """Return those of the last reply's calls that go to the list and have no result yet."""
    wanted = set(notes.get("todo_calls", ()))
    return tool_results.find_unanswered([call for call in made if call["id"] in wanted], state["messages"])
