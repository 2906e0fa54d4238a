"""Put a run's questions to the user at the terminal."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from wakeloop.cli.failures import CommandError, usage_error
from wakeloop.cli.streams import read_line
from wakeloop.display import formatting
from wakeloop.display.screen import Line
from wakeloop.loop.approval import PLAN_ACTION, Decision, build_question, read_decision
from wakeloop.loop.silences import QUESTION_WAIT
from wakeloop.text.asked_questions import asks_question
from wakeloop.text.characters import escape_invisible
from wakeloop.text.marks import new_id
from wakeloop.thread.thread_status import read_session
from wakeloop.todos.items import OperationRefused

if TYPE_CHECKING:
    from langgraph.types import Interrupt


ONE_BY_ONE = ("o", "one by one")  # what is typed to decide the parts of a question separately
ANSWER_HINT = "Your answer, on one line:"
SKIP_HINT = "Your answer, on one line (Enter alone continues without it):"

Say = Callable[[Line], None]


def ask_questions(
    interrupts: Sequence["Interrupt"], say: Say, source: TextIO | None = None
) -> dict[str, Any] | None:
    """Answer interrupts by asking the user, one line per question; return the answers by interrupt id.

    None if nobody can type or the input ends.
    """
    terminal = source or sys.stdin
    if not terminal.isatty():
        return None
    answers: dict[str, Any] = {}
    for interrupt in interrupts:
        answer = ask_question(interrupt.value, terminal, say, may_skip=interrupt.id == QUESTION_WAIT)
        if answer is None:
            return None
        answers[interrupt.id] = answer
    return answers


def ask_question(value: Any, terminal: TextIO, say: Say, *, may_skip: bool = False) -> str | None:
    """Ask one question until it is answered, or skipped; return None if the input ends."""
    answered = Answering(value)
    while True:
        *shown, hint = format_question_value(answered.part, may_skip=may_skip)
        for line in shown:
            say(line)
        discard_typed_input(terminal)  # only someone who has seen the question may answer it
        say(hint)
        entry = read_line(terminal)
        if not entry:
            return None
        answer = answered.take(entry.rstrip("\r\n"), say)
        if answer is not None:
            return answer


class Answering:
    """The answers to one question, which may have several parts; `part` is the current one.

    The parts are asked one by one if the user wants that, or if words cannot decide all of them.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self.parts = split_question(value)
        self.decisions: list[dict[str, Any]] = []
        self.is_split = len(self.parts) > 1 and any(map(is_answered_by_any_words, self.parts))

    @property
    def part(self) -> Any:
        """The current question, or one part of it."""
        return self.parts[len(self.decisions)] if self.is_split else self.value

    def take(self, typed: str, say: Say) -> str | None:
        """Take an entry, and return the answer to the whole question; None to ask on."""
        if not self.is_split and len(self.parts) > 1 and typed.strip().lower() in ONE_BY_ONE:
            self.is_split = True
            return None
        if not self.is_split:
            return self.resolve(typed, say)
        try:
            decision = read_decision(typed, self.part)
        except OperationRefused as fault:
            say(Line("error", f"The answer was not accepted: {fault}."))
            return None
        self.decisions.append(write_decision(decision, self.part))
        if len(self.decisions) < len(self.parts):
            return None
        return json.dumps({"decisions": self.decisions})

    def resolve(self, typed: str, say: Say) -> str | None:
        """Return the typed answer, or the plan as edited in the editor; None to ask again."""
        if formatting.find_plan(self.value) is None or typed.strip().lower() != EDIT_ANSWER:
            return typed
        try:
            return edit_plan(self.value)
        except CommandError as error:
            say(Line("error", str(error)))
            return None


def write_decision(decision: Decision, part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a decision in LangChain's shape."""
    match decision.kind:
        case "approve":
            return {"type": "approve"}
        case "edit":
            action = {"name": part["action_requests"][0]["name"], "args": dict(decision.args or {})}
            return {"type": "edit", "edited_action": action}
    return {"type": decision.kind, "message": decision.words}


def split_question(value: Any) -> list[dict[str, Any]]:
    """Return a question of the package about several calls as one question for each; [] for any other."""
    configs = value.get("review_configs") if isinstance(value, Mapping) else None
    actions = formatting.find_actions(value)
    if not isinstance(configs, list) or len(configs) != len(actions):
        return []
    parts = []
    for action, config in zip(actions, configs, strict=True):
        part = {"action_requests": [action], "review_configs": [config]}
        parts.append({**part, "on": "human" if is_answered_by_any_words(part) else value.get("on")})
    return parts


def is_answered_by_any_words(part: Mapping[str, Any]) -> bool:
    """Tell whether a question about one call takes any words as its answer."""
    return bool(part["review_configs"][0].get("allowed_decisions") == ["respond"])


def find_questions(snapshot: Any) -> "tuple[Interrupt, ...]":
    """Return what a thread asks a person: its interrupts, or the question that the model asked in words.

    Both look the same to the person. The id of a question in words is `QUESTION_WAIT`.
    """
    if snapshot.interrupts:
        return tuple(snapshot.interrupts)
    session = read_session(snapshot)
    question = session.get("question", "") if session["state"] == "waiting" else ""
    if not asks_question(question):
        return ()
    from langgraph.types import Interrupt  # takes a moment, and most threads ask nothing

    return (Interrupt(value=build_question(question), id=QUESTION_WAIT),)


def build_input(answers: dict[str, Any]) -> Any:
    """Return the graph's input for a person's answers by the ids of their questions.

    The answer to a question in words is a message. An empty one leaves the question unanswered: the run
    continues, and the model reads that nobody has given permission.
    """
    from langchain_core.messages import HumanMessage
    from langgraph.types import Command

    if QUESTION_WAIT not in answers:
        return Command(resume=answers)
    words = answers[QUESTION_WAIT].strip()
    if words:
        return {"messages": [HumanMessage(words)]}
    return {"todo_inbox": [{"kind": "kick", "id": new_id(), "correlation_id": QUESTION_WAIT}]}


def discard_typed_input(terminal: TextIO) -> None:
    """Discard keys that a terminal has received but nobody has read; leave other streams alone."""
    if not terminal.isatty():
        return
    # an object that only claims to be a terminal has no queue, and a real one may be gone
    with suppress(UnsupportedOperation, termios.error):
        termios.tcflush(terminal.fileno(), termios.TCIFLUSH)


@contextmanager
def suppress_echo(terminal: TextIO, *, by_key: bool = False) -> Iterator[bool]:
    """Keep typed text off the screen; it can still be read later, with `by_key` before the line ends.

    Yield whether that worked: it does not while another program owns the terminal.
    """
    if not terminal.isatty():
        yield False
        return
    try:
        descriptor = terminal.fileno()
        if os.tcgetpgrp(descriptor) != os.getpgrp():  # changing it from the background would stop us
            yield False
            return
        before, mode = termios.tcgetattr(descriptor), termios.tcgetattr(descriptor)
    except (OSError, termios.error):
        yield False
        return
    mode[3] &= ~termios.ECHO
    if by_key:
        mode[0] &= ~termios.ICRNL  # as the prompt reads keys
        mode[3] &= ~termios.ICANON
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)
    try:
        yield True
    finally:
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def format_question_value(value: Any, *, may_skip: bool = False) -> list[Line]:
    """Format a question as lines; the last one says what may be typed."""
    if formatting.find_plan(value) is not None:
        hint = f"{formatting.PLAN_HELP}:"
    elif formatting.wants_approval(value):
        hint = (
            f"{formatting.ALL_HELP if len(formatting.find_actions(value)) > 1 else formatting.APPROVAL_HELP}:"
        )
    else:
        hint = SKIP_HINT if may_skip else ANSWER_HINT
    lines = [f"question: {text}" for text in formatting.format_interrupt(value)]
    return [Line("question", text) for text in (*lines, hint)]


# -- edit a plan that waits for approval in the user's editor --------------------------------------------


EDIT_ANSWER = "e"  # what the user types to open the editor
HEADER = (
    "# The plan, one item per line. Change, reorder, delete or add lines, then save and close the editor.\n"
    "# Lines that start with # are ignored. An empty list changes nothing: you are asked again.\n"
)
NUMBERED_ITEM = re.compile(r"\[([^\]]+)\] ?(.*)")


def edit_plan(value: Any) -> str | None:
    """Let the user edit a plan, and return the answer as JSON; None if the plan was emptied."""
    todos = formatting.find_plan(value) or []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.txt"
        path.write_text(HEADER + "".join(f"{format_item(todo)}\n" for todo in todos), encoding="utf-8")
        _run_editor(path)
        edited = parse_plan(path.read_text(encoding="utf-8-sig", errors="replace"), todos)
    if not edited:
        return None
    action = {"name": PLAN_ACTION, "args": {"todos": edited}}
    return json.dumps({"decisions": [{"type": "edit", "edited_action": action}]})


def format_item(todo: Mapping[str, Any]) -> str:
    r"""Format an item as one line; a line break in it becomes `\n`."""
    return f"[{todo['id']}] " + escape_invisible(todo["content"]).replace("\n", "\\n")


def parse_plan(text: str, todos: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Read the edited lines; a line with an id of the list is that item, others are new items."""
    known = {str(todo["id"]): todo for todo in todos}
    items: list[dict[str, Any]] = []
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        numbered = NUMBERED_ITEM.fullmatch(line)
        todo = known.pop(numbered[1], None) if numbered else None
        if todo is None or numbered is None:
            items.append({"content": line})
        elif line == format_item(todo).strip():
            items.append(dict(todo))  # unchanged: keep the original text, with its line breaks
        else:
            items.append({**todo, "content": numbered[2]})
    return items


def _run_editor(path: Path) -> None:
    """Open a file in `$VISUAL`, `$EDITOR` or vi, and wait until it is closed."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode  # noqa: S603 - the user's own
    except (OSError, ValueError) as error:
        raise usage_error(f"Cannot start the editor {editor!r} ({error}): set EDITOR to another.") from None
    if code:
        raise usage_error(f"The editor {editor!r} exited with code {code}: the plan is unchanged.")
