"""A weak model that plays a task, whatever the agent binds."""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import PrivateAttr

from wakeloop.bench.belief import believed
from wakeloop.bench.family_builder import read_call, seeded_random
from wakeloop.bench.knobs import Knobs
from wakeloop.bench.mind import Dice, Mind, told
from wakeloop.bench.task import Step, Task
from wakeloop.bench.token_usage import UsageMeter
from wakeloop.testing.careful import Intent
from wakeloop.testing.recording_model import RecordingModel
from wakeloop.testing.replies import calls, malformed_call, says
from wakeloop.testing.schema_examples import make_example
from wakeloop.testing.todo_tools import PlannedCall, updated_ids

GRADER = "GraderResponse"  # the tool by which the grader of Deep Agents' rubric answers


class WeakModel(RecordingModel):
    """A chat model that does a task's steps with the tools it is given, as badly as its knobs say.

    What it did to the world is the truth; what it believes it reads from each request alone: which of its
    calls were accepted, what the list shows, what was asked last. It knows the todo tools of our dialects and
    of `write_todos` by their names, and works without a list where none is bound. Asked to go on, it goes on
    if it believes that something is left; as the grader of a rubric it judges what it last worked on. The
    same seed and the same requests give the same replies. It reports its usage, from the size of the request.
    """

    seed: int = 0
    knobs: Knobs = Knobs()

    _task: Task = PrivateAttr()
    _steps: tuple[Step, ...] = PrivateAttr()
    _dice: Dice = PrivateAttr()
    _meter: UsageMeter = PrivateAttr(default_factory=UsageMeter)
    _worked: Mind | None = PrivateAttr(None)

    def __init__(self, task: Task, seed: int = 0, knobs: Knobs | None = None, **fields: Any) -> None:
        super().__init__(seed=seed, knobs=knobs or Knobs(), **fields)
        self._task, self._dice = task, Dice(seed, self.knobs)
        able = len(task.steps) - self.knobs.cannot
        self._steps = tuple(
            step if number < able else Step(step.label, (read_call(f"locked/{number}"),), step.found)
            for number, step in enumerate(task.steps)
        )

    def _choose_step(self, request: list[BaseMessage]) -> AIMessage:
        tools, options = self.bound[-1], self.options[-1]
        names = {tool["function"]["name"]: tool["function"] for tool in tools if "function" in tool}
        belief = believed(request, names, self._steps)
        mind = Mind(
            self._steps,
            self._task.spoils,
            self._task.final,
            told(self.knobs, request),
            self._dice,
            belief,
            len(self.requests),
        )
        form = options.get("response_format")
        if GRADER in names:
            reply = calls(*self._numbered([PlannedCall(GRADER, (self._worked or mind).graded())]))
        elif isinstance(form, dict):
            schema = form.get("json_schema", {}).get("schema", {"type": "object"})
            reply = says(json.dumps(make_example(schema, seeded_random(f"{self.seed}/form"), mind.closing())))
        elif not names or options.get("tool_choice") == "none":
            reply = says(mind.closing())
        else:
            self._worked = mind
            reply = self._befallen(mind.next(names), names)
        return reply.model_copy(update={"usage_metadata": self._meter.usage(tools, request, reply)})

    def _befallen(self, intent: Intent, tools: dict[str, Any]) -> AIMessage:
        """The reply, with what may befall any reply."""
        if self._dice.tosses("empty"):
            return says("")
        moves = _together([_fitted(move, tools) for move in intent.moves], tools)
        if self._dice.tosses("cut"):
            moves = [*moves[:-1], *(_halved(move) for move in moves[-1:])]
            text = intent.text[: len(intent.text) // 2]
            return calls(*self._numbered(moves), text=text, finish_reason="length")
        if moves and self._dice.tosses("malformed"):
            (name, args, key), *rest = self._numbered(moves)
            return calls(malformed_call(name, json.dumps(args)[:-1], key), *rest)
        return calls(*self._numbered(moves), text=intent.text)

    def _numbered(self, moves: Sequence[PlannedCall]) -> list[tuple[str, dict[str, Any], str]]:
        reply = len(self.requests)
        return [(name, args, f"call_{self.seed}_{reply}_{place}") for place, (name, args) in enumerate(moves)]


def _fitted(move: PlannedCall, tools: dict[str, Any]) -> PlannedCall:
    """The call in the words of the tool that is bound: some toolboxes call a path `file_path`."""
    takes = tools.get(move.name, {}).get("parameters", {}).get("properties", {})
    if "path" in move.args and "path" not in takes and "file_path" in takes:
        return PlannedCall(
            move.name, {"file_path" if name == "path" else name: v for name, v in move.args.items()}
        )
    return move


def _together(moves: Sequence[PlannedCall], tools: dict[str, Any]) -> list[PlannedCall]:
    """Neighbouring updates to one status as a single call, where the tool that is bound takes `ids`."""
    made: list[PlannedCall] = []
    takes = tools.get("todo_update", {}).get("parameters", {}).get("properties", {})
    for move in moves:
        last = made[-1] if made else None
        if "ids" in takes and last and _same_but_for_ids(last, move):
            made[-1] = PlannedCall(
                move.name, {"ids": [*updated_ids(last.args), *updated_ids(move.args)], **_rest(move)}
            )
        else:
            made.append(move)
    return made


def _same_but_for_ids(one: PlannedCall, other: PlannedCall) -> bool:
    return one.name == other.name == "todo_update" and _rest(one) == _rest(other)


def _rest(move: PlannedCall) -> dict[str, Any]:
    return {name: value for name, value in move.args.items() if name not in ("id", "ids")}


def _halved(move: PlannedCall) -> PlannedCall:
    """A call whose last text is cut, as a lenient reader takes it."""
    texts = [name for name, value in move.args.items() if isinstance(value, str)]
    if not texts:
        return move
    last = move.args[texts[-1]]
    return PlannedCall(move.name, {**move.args, texts[-1]: last[: len(last) // 2]})
