"""The shell tool, which asks a person and has a time limit."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.loop.approval import Decision, Review, build_approval_request, quote_words
from wakeloop.text.descriptions import describe
from wakeloop.text.secrets import is_secret_variable
from wakeloop.thread.interrupts import ask_before_effect
from wakeloop.tools import bounded_process
from wakeloop.tools.bounded_process import BoundedOutput
from wakeloop.tools.folder import check_number, resolve_root

REVIEW = Review(("approve", "reject"), "Run this command?")


def shell_tool(
    root: str | Path,
    *,
    ask: bool = True,
    timeout: float = 60,
    limit: int = 20_000,
    stop: Event | None = None,
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
