"""The shell tool: a command, asked for, bounded, ended whole."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.loop.approval import Decision, build_approval_request, quote_words
from wakeloop.text.descriptions import describe
from wakeloop.text.secrets import is_secret_variable
from wakeloop.thread.interrupts import ask_person
from wakeloop.tools import bounded_process
from wakeloop.tools.bounded_process import BoundedOutput


def shell_tool(
    root: str | Path,
    *,
    ask: bool = True,
    timeout: float = 60,
    limit: int = 20_000,
    stop: Event | None = None,
) -> BaseTool:
    """Return the tool `run_shell`, which runs a command line by `/bin/sh` in a folder.

    With `ask` each command is put to a person first: the run stops at an `interrupt` whose value is of
    LangChain's shape (`action_requests`, `review_configs`), so the agent needs a checkpointer. Answer by
    running it again with `Command(resume=answer)`, where several wait with `Command(resume={interrupt.id:
    answer})`: `{"decisions": [{"type": "approve"}]}`, `True`, `"y"`, `"yes"` or `{"approved": True}` is a
    yes, and anything else a no, which the model reads in your words (a text, `{"decisions": [{"type":
    "reject", "message": …}]}`, or `{"approved": False, "message": …}`).

    It is no sandbox: a command has the rights of this process. The environment is passed on without variables
    that look like secrets, and nothing can be typed into a command. A command that fails is no error of the
    tool: the result begins with its exit code. `ToolException` is raised for an empty command and for one
    that cannot be started.

    Args:
        root: The folder that commands begin in.
        ask: Whether each command is put to a person; without it, it runs at once.
        timeout: Seconds after which a command is ended with its process group; who has left that goes on.
        limit: Bytes of output that are kept, the first and the last half.
        stop: Ends running commands when it is set, and refuses further ones. Ctrl-C does not reach the thread
            that waits for a command, so whoever handles the signal sets it.

    Returns:
        One LangChain tool.
    """
    shell = Shell(Path(root).resolve(), ask, timeout, limit, stop or Event())
    return StructuredTool.from_function(shell.run_shell)


@dataclass(frozen=True)
class Shell:
    """The tool as a method, under what the model reads of it."""

    root: Path
    ask: bool
    timeout: float
    limit: int
    stop: Event

    @describe("Run a shell command in the root folder; returns exit code and output. No input can be typed.")
    def run_shell(self, command: Annotated[str, "The command line, for sh."]) -> str:
        if not command.strip() or "\0" in command:
            raise ToolException("command must be a command line that is not empty.")
        if self.stop.is_set():
            raise ToolException("The run is being stopped; the command was not run.")
        if self.ask:
            decision = ask_person(approval_request(command), lambda decision: decision)
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
    """What a person is asked: to let a command run as it is, or not."""
    return build_approval_request(
        "run_shell", {"command": command}, "Run this command?", ("approve", "reject")
    )


def format_refusal(decision: Decision) -> str:
    """What the model reads when the person did not say yes, with the person's own words."""
    return f"The person refused this command; it was not run.{quote_words(decision)}"


def run_command(
    command: str,
    root: Path,
    timeout: float,
    output: BoundedOutput,
    stop: Event,
    more: Mapping[str, str] | None = None,
) -> int | None:
    """Run a command line; None if it had to be ended. `more` are variables of its environment."""
    env = {**without_secret_variables(os.environ), **(more or {})}
    try:
        return bounded_process.run_process(
            ["/bin/sh", "-c", command], root, timeout, output, env=env, stop=stop
        )
    except (OSError, ValueError) as error:
        raise ToolException(f"The command could not be started: {error}.") from error


def without_secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without variables that carry what looks like a key, a token or a password."""
    return {name: value for name, value in environment.items() if not is_secret_variable(name, value)}
