"""The commands of sessions: serve, send, ps, cron, drain."""

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
        typer.Option("--demo", metavar="DIR", help="Serve the offline stand-in, which audits DIR."),
    ] = None,
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds that each reply of the offline stand-in takes.")
    ] = 0.0,
    grace: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="How long a server on Postgres is missed before another takes over its runs; 10.",
        ),
    ] = None,
    db: Database = None,
    yes: Yes = False,
) -> None:
    """Host sessions: what is sent to them wakes them, and they survive this process."""
    from wakeloop.cli.sessions.serve import serve_sessions
    from wakeloop.cli.sessions.storage import SessionStorage

    raise typer.Exit(serve_sessions(SessionStorage(db), given, demo, delay, ask=not yes, grace=grace))


@report_errors()
def send(
    thread: Session,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from stdin.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="human, or kick, cron and the like.")] = "human",
    key: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the event; one that was sent is dropped.")
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Id of the question that this answers, as wakeloop ps shows it."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until the session's run has ended.")] = False,
    db: Database = None,
    json: Json = False,
) -> None:
    """Send a session a message: it wakes it, or answers what it asked."""
    from wakeloop.cli.launch import read_stdin
    from wakeloop.cli.sessions.send import send_event
    from wakeloop.cli.sessions.storage import SessionStorage

    said = read_stdin() if text == "-" else text
    lines, code = send_event(SessionStorage(db), thread, said, kind, key, answers, wait=wait, json=json)
    print_lines(lines, whole=json)
    raise typer.Exit(code)


@report_errors()
def ps(db: Database = None, json: Json = False) -> None:
    """List the sessions: state, reason, open items, wakes, what they wait for."""
    from wakeloop.cli.sessions.ps import list_sessions
    from wakeloop.cli.sessions.storage import SessionStorage

    print_lines(list_sessions(SessionStorage(db), json=json), whole=json)


@report_errors()
def cron(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="add, list or remove.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="…", help="THREAD, five fields and a text; or an id.")
    ] = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Wake sessions by the clock (UTC)."""
    from wakeloop.cli.sessions.cron import manage_schedules as schedules
    from wakeloop.cli.sessions.storage import SessionStorage

    print_lines(schedules(SessionStorage(db), action, words or [], json=json), whole=json)


@report_errors()
def drain(
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the workers.")] = 60.0,
    db: Database = None,
) -> None:
    """Ask every wakeloop serve of this database to come to rest; nothing is lost."""
    from wakeloop.cli.sessions.drain import drain_workers
    from wakeloop.cli.sessions.storage import SessionStorage

    lines, code = drain_workers(SessionStorage(db), timeout)
    print_lines(lines)
    raise typer.Exit(code)
