"""A weak model that plays a job, whatever the agent binds."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import Field, PrivateAttr

from wakeloop.testing.captured_requests import (
    CHARACTERS_PER_TOKEN,
    UsageMeter,
    calls_of,
    is_from_model,
    malformed_of,
    render_message,
    role_of,
)
from wakeloop.testing.job_progress import read_progress
from wakeloop.testing.jobs import (
    OWN_LABEL,
    Call,
    Job,
    PlainJob,
    Step,
    example_args,
    make_example,
    make_job,
    seeded_random,
)
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.recording_model import RecordingModel
from wakeloop.testing.replies import calls, malformed_call, says
from wakeloop.testing.todo_tools import DEFAULT_STATUS, find_todo_tools, read_events, updated_ids
from wakeloop.testing.weak_policy import Dice, PlannedReply, WeakPolicy, follow_instructions, show_list

GRADER = "GraderResponse"  # the tool by which the grader of Deep Agents' rubric answers
LOCKED = "locked/{}"  # a file that no world has, so reading it always fails
_UNFORCED = ("auto", "none", None, False)
_CALL_ID = re.compile(r"call_\d+_(\d+)_\d+")


class WeakModel(RecordingModel):
    """A chat model that does a job with its tools, as badly as its `knobs` say.

    It has no memory but the request: which of its calls were accepted, what the list shows, what the user
    asked last. It recognizes the todo tools of this package's dialects and `write_todos` by their names, and
    works without a list if none is bound. As the grader of a rubric it judges the job it last worked on. It
    follows a bound `response_format`, makes a call that `tool_choice` forces, and reports its usage.

    Without a `job` it makes one up for each user request: `parts` steps, each a call of a bound tool with
    arguments that fit. The same seed and the same requests give the same replies, including call ids.

    >>> from langchain_core.tools import tool
    >>> @tool
    ... def measure(path: str) -> str:
    ...     "Measure a file."
    ...     return "12 lines"
    >>> model = WeakModel(seed=1, parts=1)
    >>> [call["args"] for call in model.bind_tools([measure]).invoke("Measure it.").tool_calls]
    [{'path': 'part 1 of 1'}]
    """

    seed: int = 0
    knobs: Knobs = Knobs()
    parts: int = Field(3, ge=1)

    _job: Job | None = PrivateAttr(None)
    _dice: Dice = PrivateAttr()
    _meter: UsageMeter = PrivateAttr(default_factory=UsageMeter)
    _worked: WeakPolicy | None = PrivateAttr(None)

    def __init__(
        self, job: Job | None = None, seed: int = 0, knobs: Knobs | None = None, **fields: Any
    ) -> None:
        super().__init__(seed=seed, knobs=knobs or Knobs(), **fields)
        self._dice = Dice(seed, self.knobs)
        self._job = None if job is None else self._lock_steps(job)

    def _lock_steps(self, job: Job) -> Job:
        """Return the job with its last steps made impossible, as many as the knob `cannot` says."""
        able = len(job.steps) - self.knobs.cannot
        steps = []
        for number, step in enumerate(job.steps):
            if number < able:
                steps.append(step)
            else:
                locked = Call("read_file", {"path": LOCKED.format(number)})
                steps.append(Step(step.label, (locked,), step.found))
        return PlainJob(tuple(steps), job.spoils, job.final)

    def _choose_step(self, request: list[BaseMessage]) -> AIMessage:
        tools, options = self.bound[-1], self.options[-1]
        functions = {tool["function"]["name"]: tool["function"] for tool in tools if "function" in tool}
        policy = self._read_request(request, functions)
        form, choice = options.get("response_format"), options.get("tool_choice")
        if GRADER in functions:
            verdict = Call(GRADER, (self._worked or policy).grade())
            reply = calls(*self._with_ids([verdict], request))
        elif isinstance(form, dict):
            schema = form.get("json_schema", {}).get("schema", {"type": "object"})
            fitting = make_example(schema, seeded_random(f"{self.seed}/form"), policy.final_text())
            reply = says(json.dumps(fitting))
        elif not functions or choice == "none":
            reply = says(policy.final_text())
        else:
            self._worked = policy
            reply = self._reply_to(request, policy, functions, choice)
        return reply.model_copy(update={"usage_metadata": self._meter.usage(tools, request, reply)})

    def _read_request(self, request: list[BaseMessage], functions: dict[str, Any]) -> WeakPolicy:
        """Return the policy for a request."""
        job = self._job or self._lock_steps(self._make_job(request, functions))
        users = [str(message.text) for message in request if role_of(message) == "user"]
        tokens = 0
        if self.knobs.stop_growth:
            tokens = sum(len(render_message(message)) for message in request) // CHARACTERS_PER_TOKEN
        return WeakPolicy(
            job,
            [step.label for step in job.steps],
            follow_instructions(self.knobs, request),
            self._dice,
            read_progress(request, functions, job.steps, self.knobs.forgets_cleared),
            len(self.requests),
            tokens,
            users[-1] if users else "",
        )

    def _make_job(self, request: list[BaseMessage], functions: dict[str, Any]) -> PlainJob:
        others, given = functions, []
        if todo_tools := find_todo_tools(functions):
            own = todo_tools.names
            others = {name: function for name, function in functions.items() if name not in own}
            items = todo_tools.read(read_events(request))
            given = [item.text for item in items if not OWN_LABEL.fullmatch(item.text)]
        # A list that somebody else wrote is the job; only without one does it think of parts itself.
        if given:
            return make_job(others, self.seed, given)
        turns = sum(map(_is_from_user, request))
        return make_job(others, self.seed, self.parts, max(1, turns))

    def _reply_to(
        self, request: list[BaseMessage], policy: WeakPolicy, functions: dict[str, Any], choice: Any
    ) -> AIMessage:
        """Return the next reply with all its habits; a forced call is made without them."""
        if choice not in _UNFORCED:
            return self._forced_reply(request, policy, functions, choice)
        if unrelated := self._unrelated_reply(request):
            return unrelated
        planned = policy.next_reply(functions)
        if planned.moves and policy.progress.stopped and self._dice.tosses("fake_results"):
            return says("".join(map(_fake_result, planned.moves)))
        return self._spoil_reply(request, planned, functions)

    def _forced_reply(
        self, request: list[BaseMessage], policy: WeakPolicy, functions: dict[str, Any], choice: Any
    ) -> AIMessage:
        """Return the call that `tool_choice` forces: of any tool, or of the one it names."""
        name = _forced_name(choice, functions)
        planned = policy.next_reply(functions, forced=True)
        moves = _fit_moves(planned.moves, functions)
        if name:
            moves = [move for move in moves if move.name == name]
        if not moves:
            name = name or show_list(functions).name
            if name not in functions:
                name = min(functions)
            rng = seeded_random(f"{self.seed}/forced/{len(self.requests)}")
            moves = [Call(name, example_args(functions[name], rng, "next"))]
        return calls(*self._with_ids(moves, request))

    def _unrelated_reply(self, request: list[BaseMessage]) -> AIMessage | None:
        """Return a reply that has nothing to do with the job."""
        own = [message for message in request if is_from_model(message)]
        if own and self._dice.tosses("echo"):
            return self._echo_reply(own[-1], request)
        if request and isinstance(request[-1], ToolMessage) and self._dice.tosses("empty_after_result"):
            return says("")
        fillers = [message for message in request if _is_filler(message)]
        if fillers and self._dice.tosses("copy_filler"):
            return says(str(fillers[-1].text))
        return None

    def _echo_reply(self, previous: BaseMessage, request: list[BaseMessage]) -> AIMessage:
        ids = self._new_ids(request)
        again: list[Any] = []
        for call in calls_of(previous):
            again.append((call["name"], call["args"], next(ids)))
        for broken in malformed_of(previous):
            again.append(malformed_call(broken["name"], broken["args"], next(ids)))
        return calls(*again, text=str(previous.text))

    def _spoil_reply(
        self, request: list[BaseMessage], planned: PlannedReply, functions: dict[str, Any]
    ) -> AIMessage:
        """Return the planned reply, spoiled by the habits that can spoil any reply."""
        if self._dice.tosses("empty"):
            return says("")
        moves = _fit_moves(planned.moves, functions)
        if moves:
            if self._dice.tosses("promise"):
                return says(f"I call {moves[0].name} now.", finish_reason="tool_calls")
            if self._dice.tosses("print_call"):
                return says("\n".join(map(_print_call, moves)))
        if self._dice.tosses("double"):
            moves = _double_todo_calls(moves, functions)
        if self._dice.tosses("cut"):
            moves = _halve_last_text(moves)
            text = planned.text[: len(planned.text) // 2]
            return calls(*self._with_ids(moves, request), text=text, finish_reason="length")
        if moves and self._dice.tosses("malformed"):
            (name, args, key), *rest = self._with_ids(moves, request)
            return calls(malformed_call(name, json.dumps(args)[:-1], key), *rest)
        if moves and self._dice.tosses("wrong_tool"):
            moves[0] = Call(_unknown_name(moves[0].name, functions), moves[0].args)
        if moves and self._dice.tosses("wrong_args"):
            wrapped: dict[str, Any] = {key: {"value": value} for key, value in moves[0].args.items()}
            moves[0] = Call(moves[0].name, wrapped or {"argument": None})
        return calls(*self._with_ids(moves, request), text=planned.text)

    def _with_ids(
        self, moves: Sequence[Call], request: Sequence[BaseMessage]
    ) -> list[tuple[str, dict[str, Any], str]]:
        """Return the calls with new ids."""
        ids = self._new_ids(request)
        return [(name, dict(args), next(ids)) for name, args in moves]

    def _new_ids(self, request: Sequence[BaseMessage]) -> Iterator[str]:
        """Yield ids that no call of the request has: another process may have started the thread."""
        number = len(self.requests)
        for message in request:
            for call in (*calls_of(message), *malformed_of(message)):
                if found := _CALL_ID.fullmatch(call["id"] or ""):
                    number = max(number, int(found[1]) + 1)
        for place in count():
            yield f"call_{self.seed}_{number}_{place}"


def _is_from_user(message: BaseMessage) -> bool:
    """Return whether a person wrote the message; those of the graph and of LangChain are marked."""
    marks = message.additional_kwargs.keys() & {"wakeloop", "lc_source"}
    return isinstance(message, HumanMessage) and not marks


def _is_filler(message: BaseMessage) -> bool:
    """Return whether the graph wrote this text in place of an empty reply."""
    is_ours = isinstance(message, AIMessage) and "wakeloop" in message.additional_kwargs
    return is_ours and not calls_of(message) and bool(str(message.text).strip())


def _forced_name(choice: Any, functions: dict[str, Any]) -> str:
    """Return the tool that a `tool_choice` names, "" for any tool."""
    if isinstance(choice, dict):
        choice = choice.get("function", choice).get("name")
    return choice if isinstance(choice, str) and choice in functions else ""


def _fit_moves(moves: Sequence[Call], functions: dict[str, Any]) -> list[Call]:
    """Return the calls with the argument names of the bound tools."""
    fitting = []
    for name, args in moves:
        takes = functions.get(name, {}).get("parameters", {}).get("properties", {})
        path = "file_path" if "file_path" in takes and "path" not in takes else "path"
        fitting.append(Call(name, {path if key == "path" else key: value for key, value in args.items()}))
    return _merge_updates(fitting, functions.get("todo_update", {}).get("parameters", {}))


def _merge_updates(moves: list[Call], schema: dict[str, Any]) -> list[Call]:
    """Write updates as the bound tool takes them: with `ids` neighbours to one status are a single call."""
    if "ids" not in schema.get("properties", ()):
        return moves
    merged: list[Call] = []
    for name, args in moves:
        if name != "todo_update":
            merged.append(Call(name, args))
            continue
        ids, rest = updated_ids(args), _without(args, "id", "ids")
        if "status" not in schema["required"] and rest.get("status") == DEFAULT_STATUS:
            rest = _without(rest, "status")
        if merged and merged[-1].name == name and _without(merged[-1].args, "ids") == rest:
            ids = [*merged.pop().args["ids"], *ids]
        merged.append(Call(name, {"ids": ids, **rest}))
    return merged


def _without(args: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in args.items() if name not in names}


def _double_todo_calls(moves: Sequence[Call], functions: dict[str, Any]) -> list[Call]:
    todo_tools = find_todo_tools(functions)
    doubled = []
    for move in moves:
        times = 2 if todo_tools and move.name in todo_tools.names else 1
        doubled += [move] * times
    return doubled


def _halve_last_text(moves: list[Call]) -> list[Call]:
    """Halve the last string argument of the last call, which is how a lenient parser reads a cut reply."""
    if not moves:
        return moves
    *others, last = moves
    texts = [name for name, value in last.args.items() if isinstance(value, str)]
    if not texts:
        return moves
    text = last.args[texts[-1]]
    return [*others, Call(last.name, {**last.args, texts[-1]: text[: len(text) // 2]})]


def _print_call(move: Call) -> str:
    return json.dumps({"name": move.name, "arguments": dict(move.args)})


def _fake_result(move: Call) -> str:
    return f"<tool_response>\n{move.name}: {json.dumps(dict(move.args))} was done.\n</tool_response>\n"


def _unknown_name(name: str, functions: dict[str, Any]) -> str:
    while name in functions:
        name += "_now"
    return name
