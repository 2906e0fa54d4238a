"""Session commands: serve, send, ps, cron, drain."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from wakeloop.cli.commands.console import print_lines
from wakeloop.cli.commands.options import (
    SERVED_OPTIONS,
    AgentOptions,
    Json,
    Trust,
    Yes,
    argument,
    command,
    option,
)

if TYPE_CHECKING:
    from wakeloop.cli.sessions.storage import SessionStorage


@command(*SERVED_OPTIONS)
def serve(
    given: AgentOptions,
    storage: "SessionStorage",
    demo: Annotated[
        Path | None, option("--demo", takes="DIR", text="Serve the offline demo agent, which audits DIR.")
    ] = None,
    delay: Annotated[float, option(min=0, text="Seconds per reply of the demo agent.")] = 0.0,
    grace: Annotated[
        float | None,
        option(
            min=1,
            takes="SECONDS",
            text="On Postgres: seconds without a heartbeat before another server takes over. Default: 10.",
        ),
    ] = None,
    yes: Yes = False,
    trust: Trust = False,
) -> int:
    """Host sessions, which wake up for messages and survive restarts."""
    from wakeloop.cli.sessions.serve import serve_sessions

    return serve_sessions(storage, given, demo, delay, ask=not yes, grace=grace, trust=trust)


@command()
def send(
    storage: "SessionStorage",
    thread: Annotated[str, argument("THREAD", "Session, as AGENT:NAME; NAME alone uses the agent main.")],
    text: Annotated[str, argument("TEXT", "Message to send; - reads stdin.")],
    kind: Annotated[str, option(takes="KIND", text="Kind of event: human, kick, cron, …")] = "human",
    key: Annotated[
        str | None, option("--id", takes="ID", text="Event id; an id that was sent before is ignored.")
    ] = None,
    answers: Annotated[
        str | None, option(takes="ID", text="Id of the question to answer, as wakeloop ps shows it.")
    ] = None,
    now: Annotated[
        bool, option("--now", text="Send the message into the run under way, before its next request.")
    ] = False,
    wait: Annotated[bool, option("--wait", text="Wait until the session's run has ended.")] = False,
    json: Json = False,
) -> int:
    """Send a session a message, or the answer to its question."""
    from wakeloop.cli.launch import read_stdin
    from wakeloop.cli.sessions.commands import send_event

    message = read_stdin() if text == "-" else text
    lines, code = send_event(storage, thread, message, kind, key, answers, now=now, wait=wait, json=json)
    print_lines(lines, whole=json)
    return code


@command()
def ps(storage: "SessionStorage", json: Json = False) -> None:
    """List sessions: state, reason, open items, wakes, pending questions."""
    from wakeloop.cli.sessions.commands import list_sessions

    print_lines(list_sessions(storage, json=json), whole=json)


@command()
def cron(
    storage: "SessionStorage",
    action: Annotated[str, argument("ACTION", "add, list or remove.")],
    words: Annotated[
        list[str] | None, argument("…", "For add: THREAD, five cron fields, TEXT. For remove: an id.")
    ] = None,
    json: Json = False,
) -> None:
    """Wake sessions on a schedule (UTC)."""
    from wakeloop.cli.sessions.commands import manage_schedules

    print_lines(manage_schedules(storage, action, words or [], json=json), whole=json)


@command()
def drain(
    storage: "SessionStorage",
    timeout: Annotated[float, option(min=0, text="Seconds to wait for the servers.")] = 60.0,
) -> int:
    """Stop every server of this database after its current step; nothing is lost."""
    from wakeloop.cli.sessions.commands import drain_workers

    lines, code = drain_workers(storage, timeout)
    print_lines(lines)
    return code
