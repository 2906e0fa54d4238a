"""Applies a round's todo calls to the list, one result each."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig

from wakeloop.dialects.base import Dialect
from wakeloop.loop.before_request import Notices
from wakeloop.loop.item_notes import (
    choose_items,
    has_external_success,
    note_accepted,
    note_completed,
    note_writes,
)
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.list_changes import note_own_write, note_unnoticed, render_whole_list
from wakeloop.loop.overrides import settings_in_force
from wakeloop.loop.progress import reach_unless_grown
from wakeloop.loop.replies import find_external_calls
from wakeloop.model.tool_results import (
    error_result,
    find_unanswered,
    last_calls,
    tool_result,
    unknown_tool_error,
)
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


@dataclass(frozen=True)
class PlayedRound:
    """A round's todo calls, all that its reply made, the list before them, and their superstep.

    `notes` are those of the reply. The `others`, calls next to the todo calls, waited for the plan: they run
    now, or are answered. `unseen` is what the model has not seen of the list. `by_hand` says that somebody
    else had written the list.
    """

    notes: Ledger
    calls: list[Any]
    made: Sequence[ToolCall]
    before: Board
    others: list[Any]
    step: int
    unseen: dict[str, Any] | None
    by_hand: bool


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
        return find_todo_calls(copy_ledger(state), state, last_calls(state["messages"]))

    def play(self, state: TodoState, step: int) -> Generator[Question, str | None, dict[str, Any]]:
        """Play the round, or put open items to the verifier once its calls are answered."""
        notes, made = copy_ledger(state), last_calls(state["messages"])
        calls = find_todo_calls(notes, state, made)
        if notes.get("check") and not calls:
            return self.check_open_items(state)
        return self.play_round(state, notes, calls, made, step)

    def check_open_items(self, state: TodoState) -> Generator[Question, str | None, dict[str, Any]]:
        """Put open items to the verifier, and complete those that it finds done; the others stay silent."""
        ledger = copy_ledger(state)
        ledger.pop("check", None)
        ledger.pop("held", None)  # they have run
        if not has_external_success(state["messages"], ledger.get("todo_calls", ())):
            return {"todo_ledger": ledger}
        written = adopt_list(state["todos"], ledger)
        before = board = Board(todos=state["todos"] if written is None else written)
        outcomes: list[Outcome] = []
        for todo in choose_items(ledger, before.todos):
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
        note_writes(ledger, before, outcomes, verified=True)
        note_accepted(ledger, before, outcomes, called=False)
        ledger["writes"] = ledger.get("writes", 0) + 1
        lines = []
        for outcome in outcomes:
            done = after.find(outcome.touched[0])
            assert done is not None  # noqa: S101 - it was stored above
            lines.append(self.dialect.render_verified(done))
        last = find_last(ToolMessage, state["messages"])
        assert last is not None  # noqa: S101 - a call has just succeeded
        for event in self.verifier.make_events(outcomes, after):
            stream_event(event)
        changed = diff_lists(before.todos, after.todos)
        stream_event({"type": "todos", "todos": list(after.todos), "changed": changed_ids(changed)})
        said = append_to_result(last, Notices(changes="\n".join(lines)).compose())
        note_own_write(ledger, before.todos, after.todos)
        said = with_list_stamp(said, stamp_items(after.todos))
        return {"messages": [said], "todos": {**changed, "own": True}, "todo_ledger": ledger}

    def play_round(
        self, state: TodoState, notes: Ledger, calls: list[Any], made: Sequence[ToolCall], step: int
    ) -> Generator[Question, str | None, dict[str, Any]]:
        """Play the round; return the update, or the notes to store before a plan is shown."""
        ledger: Ledger = {**notes}
        todos, written = state["todos"], adopt_list(state["todos"], ledger)
        board = Board(
            todos=todos if written is None else written,
            goal=str(state["todo_goal"]),
            next_id=ledger.get("next_id", 1),
            refusals=ledger.get("refusals", {}),
        )
        if written is None:
            note_unnoticed(ledger, state["messages"], todos)
        settings = settings_in_force(self.settings, ledger)
        rules = Rules(
            settings.max_items,
            settings.in_progress,
            one_write=self.dialect.replaces,
            repeats=settings.repeats,
        )
        operations = [self.read_operation(call, board, ledger) for call in calls]
        verified = self.verifier.verify is not None
        judged = yield from play_reviewed_round(board, operations, rules, {**notes}, verified=verified)
        if not isinstance(judged, ReviewedRound):
            if "unseen" in ledger:
                judged["unseen"] = ledger["unseen"]
            return {"todo_ledger": judged}
        waiting: list[Any] = []
        if "plan" in ledger:
            waiting = find_unanswered(find_external_calls(ledger, made), state["messages"])
        played = PlayedRound(
            notes, calls, made, board, waiting, step, ledger.get("unseen"), written is not None
        )
        return self.write_outcomes(state, played, judged)

    def read_operation(self, call: Any, board: Board, ledger: Ledger) -> Operation | str:
        """Turn a call into an operation, or into the sentence that refuses it."""
        why = ledger.get("faults", {}).get(call["id"])
        if call["name"] not in self.dialect.tool_names:  # a build with another dialect wrote it
            return unknown_tool_error(call["name"], self.dialect.tool_names)
        if why is None:
            try:
                operation = self.dialect.parse_call(call["name"], call["args"])
            except OperationRefused as refusal:
                why = str(refusal)
            else:
                why = self.dialect.refusal(operation, board)
                if why is None and "unseen" in ledger and isinstance(operation, Replace | Reset):
                    why = self.refuse_outdated(ledger)
                if why is None:
                    return operation
        return Replace((), why) if self.dialect.replaces and call["name"] in self.dialect.writes else why

    def refuse_outdated(self, ledger: Ledger) -> str:
        """Return why a whole list is refused: it answers a request made before others changed the list."""
        settings = settings_in_force(self.settings, ledger)
        return fill_prompt("outdated_list", self.dialect.prompt_folder, settings.prompts)

    def write_outcomes(self, state: TodoState, played: PlayedRound, judged: ReviewedRound) -> dict[str, Any]:
        """Turn the outcomes into tool results, the list's changes, counters and events."""
        before = played.before
        ledger: Ledger = {**played.notes}
        if played.unseen is not None:
            ledger["unseen"] = played.unseen
        settings, after = settings_in_force(self.settings, ledger), judged.board
        ledger["next_id"] = after.next_id
        ledger.pop("refusals", None)
        if after.refusals:
            ledger["refusals"] = prune_refusals(after)
        outcomes = self.mark_rejected(judged, settings)
        self.note_outcomes(ledger, before, outcomes, played.made)
        if settings.audit != "off" and self.verifier.verify is None:  # a verifier sees what it accepts
            note_completed(ledger, before.todos, after.todos)
        results = self.render_results(played, outcomes, ledger)
        self.update_unseen(ledger, before, judged, outcomes, results)
        if results and settings.max_idle_rounds:
            # Idle rounds are counted from the messages alone; this notes how far the list had come before.
            results[0].artifact = reach_unless_grown(before.todos, after.todos)
        if "plan" in ledger:
            results += self.apply_plan_ruling(ledger, judged, results, played.others, settings)
        for event in self.verifier.make_events(outcomes, after):
            stream_event(event)
        update: dict[str, Any] = self.write_list(state, played, ledger, after, results)
        update["messages"] = results
        if ledger != state.get("todo_ledger"):  # most rounds leave it alone, which saves a row
            update["todo_ledger"] = ledger
        if after.goal != before.goal:
            update["todo_goal"] = after.goal
        return update

    def write_list(
        self, state: TodoState, played: PlayedRound, ledger: Ledger, after: Board, results: list[ToolMessage]
    ) -> dict[str, Any]:
        """Return the list's changes as an update, stream them, and stamp the last result with the list."""
        changed = diff_lists(played.before.todos, after.todos)
        if not (changed or played.by_hand):
            return {}
        written: Changes = write_all(after.todos) if played.by_hand else {**changed, "own": True}
        if len(played.made) > len(played.calls):  # other calls of the reply may write the list, too
            if "plan" in ledger:  # and they run later
                ledger["base"] = [*played.before.todos]  # type: ignore[list-item]
            else:
                written["step"] = played.step
        results[-1] = with_list_stamp(results[-1], stamp_after(state["todos"], written, after.todos))
        stream_event({"type": "todos", "todos": list(after.todos), "changed": changed_ids(changed)})
        return {"todos": written}

    def note_outcomes(
        self, ledger: Ledger, before: Board, outcomes: Sequence[Outcome], calls: Sequence[Any]
    ) -> None:
        """Note what the model's writes came to: accepted, given up, verified."""
        verified = self.verifier.verify is not None
        note_writes(ledger, before, outcomes, verified=verified)
        if verified:
            runs = [call for call in find_external_calls(ledger, calls) if "fault" not in call]
            note_accepted(ledger, before, outcomes, called=bool(runs))

    def update_unseen(
        self,
        ledger: Ledger,
        before: Board,
        judged: ReviewedRound,
        outcomes: Sequence[Outcome],
        results: Sequence[ToolMessage],
    ) -> None:
        """Note what the model knows of others' changes after the round; show the list if one was refused."""
        if "unseen" not in ledger:
            return
        why, after = self.refuse_outdated(ledger), judged.board
        outdated = [result for result, outcome in zip(results, outcomes, strict=True) if outcome.error == why]
        if outdated:
            settings = settings_in_force(self.settings, ledger)
            listing = render_whole_list(self.dialect, settings, after.todos, after.goal)
            last = outdated[-1]
            last.content = f"{last.content}\n\n{listing}"
            ledger |= {"outdated": True, "shown": last.id or ""}
        knows_all = (Replace, Reset, Show)
        if outdated or any(o.error is None and isinstance(o.operation, knows_all) for o in outcomes):
            ledger.pop("unseen", None)
        else:
            note_own_write(ledger, before.todos, after.todos)

    def render_results(
        self, played: PlayedRound, outcomes: Sequence[Outcome], ledger: Ledger
    ) -> list[ToolMessage]:
        """Return one result per call, and note which message shows the list now."""
        others = len(played.made) > len(played.calls)
        results: list[ToolMessage] = []
        for call, outcome in zip(played.calls, outcomes, strict=True):
            result = self.render_result(call, replace(outcome, has_other_calls=others), ledger)
            results.append(result)
            if outcome.wrote:
                ledger["todo_guard_suppressed"] = False  # the model works with its list again
            if outcome.error is None and self.dialect.shows_open_items(outcome):
                ledger["shown"] = result.id or ""
        return results

    def mark_rejected(self, judged: ReviewedRound, settings: LoopSettings) -> Sequence[Outcome]:
        """Return the outcomes; those that the person rejected say so, in the person's words."""
        if judged.ruling is None or not judged.rejected:
            return judged.outcomes
        folder, words = self.dialect.prompt_folder, judged.ruling.words
        why = fill_prompt("plan_rejected", folder, settings.prompts, words=words)
        outcomes = list(judged.outcomes)
        for place in judged.rejected:
            outcomes[place] = replace(outcomes[place], error=why)
        return outcomes

    def apply_plan_ruling(
        self,
        ledger: Ledger,
        judged: ReviewedRound,
        results: Sequence[ToolMessage],
        others: Sequence[Any],
        settings: LoopSettings,
    ) -> list[ToolMessage]:
        """Note what a person decided about the plan, show an edit once, and answer the other calls."""
        ruling = judged.ruling
        ledger["plan"] = kind = "stands" if ruling is None else ruling.kind
        ledger.pop("verdicts", None)
        if ruling is not None and kind != "rejected":
            ledger["planned"] = True
        if kind == "stands":
            ledger["held"] = list(others)
            return []
        if kind == "edited":
            # An edit counts as a list from outside, so an input that sends back an older one is recognized.
            ledger["writes"] = ledger.get("writes", 0) + 1
            listing = self.dialect.render_list(judged.board.todos, judged.board.goal, settings)
            edited = fill_prompt("plan_edited", self.dialect.prompt_folder, settings.prompts, list=listing)
            last = results[-1]
            last.content = f"{last.content}\n\n{edited}"
            ledger["shown"] = last.id or ""
            ledger.pop("unseen", None)
        why = fill_prompt(f"held_{kind}", self.dialect.prompt_folder, settings.prompts)
        ledger["faults"] = {**ledger.get("faults", {}), **{call["id"]: why for call in others}}
        return [error_result(call, call.get("fault") or why) for call in others]

    def render_result(self, call: Any, outcome: Outcome, ledger: Ledger) -> ToolMessage:
        """Render one call's result; that of a refused call is an error."""
        if call["id"] in ledger.get("faults", {}):
            text, status = ledger["faults"][call["id"]], "error"
        elif outcome.error is not None:
            text, status = self.dialect.render_error(outcome.error), "error"
        else:
            text = self.dialect.render_result(outcome)
            status = "success" if isinstance(outcome.operation, Show) or outcome.wrote else "error"
        return tool_result(call, text, status)


def find_todo_calls(notes: Ledger, state: TodoState, made: Sequence[ToolCall]) -> list[ToolCall]:
    """Return those of the last reply's calls that go to the list and have no result yet."""
    wanted = set(notes.get("todo_calls", ()))
    return find_unanswered([call for call in made if call["id"] in wanted], state["messages"])
