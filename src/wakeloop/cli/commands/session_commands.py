"""Session commands: serve, send, ps, cron, drain."""

from pathlib import Path
from typing import Annotated

import typer

from wakeloop.cli.commands.console import print_lines, report_errors
from wakeloop.cli.commands.options import (
    AGENT_OPTIONS,
    AgentOptions,
    Database,
    Json,
    Session,
    Trust,
    Yes,
    takes_agent_options,
)


@report_errors()
@takes_agent_options(*(name for name in AGENT_OPTIONS if name != "agent"))
def serve(
    *,
    given: AgentOptions,
    demo: Annotated[
        Path | None,
        typer.Option("--demo", metavar="DIR", help="Serve the offline demo agent, which audits DIR."),
    ] = None,
    delay: Annotated[float, typer.Option(min=0, help="Seconds per reply of the demo agent.")] = 0.0,
    grace: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="On Postgres: seconds without a heartbeat before another server takes over. Default: 10.",
        ),
    ] = None,
    db: Database = None,
    yes: Yes = False,
    trust: Trust = False,
) -> None:
    """Host sessions, which wake up for messages and survive restarts."""
    from wakeloop.cli.sessions.serve import serve_sessions
    from wakeloop.cli.sessions.storage import SessionStorage

    raise typer.Exit(
        serve_sessions(SessionStorage(db), given, demo, delay, ask=not yes, grace=grace, trust=trust)
    )


@report_errors()
def send(
    thread: Session,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Message to send; - reads stdin.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="Kind of event: human, kick, cron, …")] = "human",
    key: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Event id; an id that was sent before is ignored."),
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Id of the question to answer, as wakeloop ps shows it."),
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Send the message into the run under way, before its next request.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the session's run has ended.")] = False,
    db: Database = None,
    json: Json = False,
) -> None:
    """Send a session a message, or the answer to its question."""
    from wakeloop.cli.launch import read_stdin
    from wakeloop.cli.sessions.commands import send_event
    from wakeloop.cli.sessions.storage import SessionStorage

    message = read_stdin() if text == "-" else text
    storage = SessionStorage(db)
    lines, code = send_event(storage, thread, message, kind, key, answers, now=now, wait=wait, json=json)
    print_lines(lines, whole=json)
    raise typer.Exit(code)


@report_errors()
def ps(db: Database = None, json: Json = False) -> None:
    """List sessions: state, reason, open items, wakes, pending questions."""
    from wakeloop.cli.sessions.commands import list_sessions
    from wakeloop.cli.sessions.storage import SessionStorage

    print_lines(list_sessions(SessionStorage(db), json=json), whole=json)


@report_errors()
def cron(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="add, list or remove.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="…", help="For add: THREAD, five cron fields, TEXT. For remove: an id."),
    ] = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Wake sessions on a schedule (UTC)."""
    from wakeloop.cli.sessions.commands import manage_schedules as schedules
    from wakeloop.cli.sessions.storage import SessionStorage

    print_lines(schedules(SessionStorage(db), action, words or [], json=json), whole=json)


@report_errors()
def drain(
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the servers.")] = 60.0,
    db: Database = None,
) -> None:
    """Stop every server of this database after its current step; nothing is lost."""
    from wakeloop.cli.sessions.commands import drain_workers
    from wakeloop.cli.sessions.storage import SessionStorage

    lines, code = drain_workers(SessionStorage(db), timeout)
    print_lines(lines)
    raise typer.Exit(code)
