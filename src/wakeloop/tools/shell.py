"""The shell tool, and commands that judge the work."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.loop.approval import Decision, Review, build_approval_request, quote_words
from wakeloop.loop.goal import LONGEST_REASON, Verdict, impossible, wait
from wakeloop.text.characters import shorten
from wakeloop.text.descriptions import describe
from wakeloop.text.secrets import is_secret_variable
from wakeloop.thread.interrupts import ask_before_effect
from wakeloop.todos.items import Todo
from wakeloop.tools import bounded_process
from wakeloop.tools.bounded_process import BoundedOutput
from wakeloop.tools.folder import check_number, resolve_root

REVIEW = Review(("approve", "reject"), "Run this command?")
# a name or an absolute path, not a relative path, an assignment or a function definition
PROGRAM_NAME = re.compile(r"\s*([A-Za-z][\w.+-]*|/[\w./+-]+)(?=\s+[^(\s]|\s*$)")
LOOK_UP_TIMEOUT = 10.0  # seconds; without an answer by then, the program counts as found
LONGEST = 10_000  # characters of an item in the environment, whose size is limited
IMPOSSIBLE, WAIT = 3, 4  # exit codes, as the command line's own for an open list and a waiting thread
LAST_LINES = 20  # of the output, which say what is missing
KEPT = 20_000  # bytes of the output


def shell_tool(
    root: str | Path, *, ask: bool = True, timeout: float = 60, limit: int = 20_000, stop: Event | None = None
) -> BaseTool:
    """Return the tool `run_shell`, which runs command lines with `/bin/sh` in a folder.

    With `ask`, a person is asked before each command: the run stops at an `interrupt` whose value has
    LangChain's shape (`action_requests`, `review_configs`), so the agent needs a checkpointer. To answer, run
    it again with `Command(resume=answer)`, or with `Command(resume={interrupt.id: answer})` if several wait.
    The answers `{"decisions": [{"type": "approve"}]}`, `True`, `"y"`, `"yes"` and `{"approved": True}` mean
    yes. Anything else means no, and the model reads your words: a string, `{"decisions": [{"type": "reject",
    "message": …}]}`, or `{"approved": False, "message": …}`.

    The tool is not a sandbox: a command has the rights of this process. It gets the environment without
    variables that look like secrets, and no input. If a command fails, the tool does not: the result starts
    with the exit code. A `ToolException` is raised if a command is empty or cannot be started.

    Args:
        root: The folder in which commands start.
        ask: Whether to ask a person before each command.
        timeout: Seconds after which a command is killed with its process group. A process that has left the
            group is not killed.
        limit: Bytes of output to keep: the beginning and the end, half each.
        stop: When set, running commands are killed and further ones refused. Ctrl-C does not reach the thread
            that waits for a command, so let your signal handler set it.

    Returns:
        One LangChain tool.

    Example:
        >>> from wakeloop.tools import shell_tool
        >>> shell_tool(".", timeout=10).name
        'run_shell'
    """
    check_number("timeout", timeout, whole=False)
    check_number("limit", limit)
    shell = Shell(resolve_root(root), ask, timeout, limit, stop or Event())
    metadata = REVIEW.to_metadata() if ask else None
    return StructuredTool.from_function(shell.run_shell, metadata=metadata)


@dataclass(frozen=True)
class Shell:
    """The tool as a method. The model reads the text in the decorator."""

    root: Path
    ask: bool
    timeout: float
    limit: int
    stop: Event

    @describe("Run a shell command in the root folder; returns exit code and output. It gets no input.")
    def run_shell(self, command: Annotated[str, "The command line, for sh."]) -> str:
        if not command.strip() or "\0" in command:
            raise ToolException("command must not be empty.")
        if self.stop.is_set():
            raise ToolException("The run is being stopped; the command was not run.")
        if self.ask:
            decision = ask_before_effect(approval_request(command))
            if decision.kind != "approve":
                return format_refusal(decision)
        output = BoundedOutput(self.limit)
        code = run_command(command, self.root, self.timeout, output, self.stop)
        why = (
            "ended: the run was stopped"
            if self.stop.is_set()
            else f"ended after the limit of {self.timeout:g} s"
        )
        how = why if code is None else f"exit code {code}"
        return f"[{how}]\n{output.render() or '(no output)'}"


def approval_request(command: str) -> dict[str, Any]:
    """Return the request that asks a person whether a command may run."""
    return build_approval_request("run_shell", {"command": command}, REVIEW.description, REVIEW.allowed)


def format_refusal(decision: Decision) -> str:
    """Return what the model reads if the person did not approve, with the person's words."""
    return f"The user rejected this command; it was not run.{quote_words(decision)}"


def run_command(
    command: str,
    root: Path,
    timeout: float,
    output: BoundedOutput,
    stop: Event,
    more: Mapping[str, str] | None = None,
) -> int | None:
    """Run a command line with additional variables, and return its exit code; None if it was killed."""
    env = {**without_secret_variables(os.environ), **(more or {})}
    try:
        return bounded_process.run_process(
            ["/bin/sh", "-c", command], root, timeout, output, env=env, stop=stop
        )
    except (OSError, ValueError) as error:
        raise ToolException(f"The command could not be started: {error}.") from error


def without_secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that look like a key, a token or a password."""
    return {name: value for name, value in environment.items() if not is_secret_variable(name, value)}


def run_check(
    command: str, root: str | Path, timeout: float, ending: Event, more: Mapping[str, str] | None = None
) -> tuple[int | None, str]:
    """Run a command that judges, and return its exit code and output. A stopped one gives no verdict."""
    output = BoundedOutput(KEPT)
    code = run_command(command, Path(root), timeout, output, ending, more)
    if ending.is_set():
        raise KeyboardInterrupt
    return code, output.render()


def command_verifier(
    command: str, root: str | Path, *, timeout: float = 60, stop: Event | None = None
) -> Callable[[Todo, Any], str | None]:
    """Return a `verify` function that runs a command with `/bin/sh`: exit code 0 accepts the item.

    Otherwise the last line of its output that is not empty is the reason. The item is in the environment, as
    `WAKELOOP_TODO` (JSON), `WAKELOOP_TODO_ID` and `WAKELOOP_TODO_CONTENT`. It is not put into the command
    line, so write `"$WAKELOOP_TODO_CONTENT"`, in quotes. As with the tool `run_shell`, variables that look
    like secrets are left out of the environment, and the command is not sandboxed.

    Args:
        command: The command line.
        root: The folder in which it starts.
        timeout: Seconds after which it is killed with its process group, and the item refused.
        stop: When set, a running command is killed. That is not a verdict: the run stops as with Ctrl-C.

    Example:
        >>> verify = command_verifier("echo report.md is missing; false", ".")
        >>> verify({"id": 1, "content": "Write the report", "status": "in_progress"}, {})
        'report.md is missing'
    """
    ending = stop or Event()

    def verify(todo: Todo, state: Any) -> str | None:  # noqa: ARG001 - the signature of a verifier
        code, said = run_check(command, root, timeout, ending, make_environment(todo))
        if code == 0:
            return None
        if code is None:
            return f"the check took longer than {timeout:g} s"
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
        return shorten(last.strip(), 300) or f"the check ended with exit code {code}"

    return verify


def find_missing_program(command: str) -> str | None:
    """Return the program that a command line starts with, if `/bin/sh` does not find it; else None.

    A line that starts with anything but a name or an absolute path is not checked, since the agent may be
    about to write the script of a relative path. Nor is one that contains `||`.
    """
    begins = PROGRAM_NAME.match(command)
    if begins is None or "||" in command:
        return None
    name = begins.group(1)
    found = run_command(f"command -v {name}", Path(os.sep), LOOK_UP_TIMEOUT, BoundedOutput(KEPT), Event())
    return None if found in (0, None) else name


def make_environment(todo: Todo) -> dict[str, str]:
    """Return an item's variables for a command. An environment cannot hold a NUL or a lone surrogate."""
    content = todo["content"].replace("\0", " ").encode(errors="replace").decode()[:LONGEST]
    item = json.dumps({**todo, "content": todo["content"][:LONGEST]})
    return {"WAKELOOP_TODO": item, "WAKELOOP_TODO_ID": str(todo["id"]), "WAKELOOP_TODO_CONTENT": content}


def command_goal(
    command: str, root: str | Path, *, timeout: float = 300, stop: Event | None = None
) -> Callable[[Any], str | Verdict | None]:
    """Return a `done_when` function that runs a command with `/bin/sh`.

    Exit code 0 means that the goal is met, 3 that it is impossible, 4 that something else must happen first;
    any other code means that something is missing. The last lines of the output are the reason. Variables
    that look like secrets are left out of the environment, and the command is not sandboxed.

    Args:
        command: The command line.
        root: The folder in which it starts.
        timeout: Seconds after which it is killed with its process group; then the goal is not met.
        stop: When set, a running command is killed. That is not a verdict: the run stops as with Ctrl-C.

    Example:
        >>> done_when = command_goal("echo 2 failed; exit 1", ".")
        >>> done_when({})
        '2 failed'
    """
    ending = stop or Event()

    def done_when(state: Any) -> str | Verdict | None:  # noqa: ARG001 - the signature of a goal
        code, said = run_check(command, root, timeout, ending)
        if code == 0:
            return None
        if code is None:
            return f"did not finish in {timeout:g} s"
        lines = [line.rstrip() for line in said.splitlines() if line.strip()]
        last = "\n".join(lines[-LAST_LINES:])[-LONGEST_REASON:].strip()
        reason = last or f"the command ended with exit code {code}"
        if code == IMPOSSIBLE:
            return impossible(reason)
        return wait(reason) if code == WAIT else reason

    return done_when
