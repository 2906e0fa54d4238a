"""Commands for threads, and for the first minute."""

from pathlib import Path
from typing import Annotated

import typer

from wakeloop.cli.commands.console import print_lines, report_errors
from wakeloop.cli.commands.options import (
    AGENT_OPTIONS,
    Agent,
    AgentOptions,
    BaseUrl,
    Db,
    Force,
    Json,
    LastThread,
    Model,
    OutputOption,
    Preset,
    QuietOption,
    Role,
    Set,
    Thread,
    ThreadOption,
    Todos,
    Trust,
    Wait,
    Yes,
    complete_thread,
    takes_agent_options,
)
from wakeloop.cli.streams import OutputOptions


@report_errors()
@takes_agent_options(*AGENT_OPTIONS)
def run(
    *,
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="What the agent should do; - reads stdin.")
    ],
    given: AgentOptions,
    todos: Todos = None,
    thread: ThreadOption = None,
    db: Db = None,
    json: Json = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
    yes: Yes = False,
    trust: Trust = False,
    wait: Wait = None,
) -> None:
    """Run a request until its todo list is settled."""
    from wakeloop.cli.launch import read_stdin, run_request
    from wakeloop.cli.store import DatabaseFile

    shown = OutputOptions.from_flags(output, json=json, quiet=quiet)
    text = read_stdin() if request == "-" else request
    where = DatabaseFile.of(db)
    code = run_request(text, given, where, thread, todos, output=shown, ask=not yes, trust=trust, wait=wait)
    raise typer.Exit(code)


@report_errors()
@takes_agent_options(*AGENT_OPTIONS)
def resume(
    *,
    thread: LastThread = None,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="Answer to its question, or a new message.")
    ] = None,
    given: AgentOptions,
    db: Db = None,
    json: Json = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
    yes: Yes = False,
    trust: Trust = False,
    wait: Wait = None,
) -> None:
    """Resume a thread with its original options."""
    from wakeloop.cli.launch import resume_thread
    from wakeloop.cli.store import DatabaseFile

    shown = OutputOptions.from_flags(output, json=json, quiet=quiet)
    where = DatabaseFile.of(db)
    code = resume_thread(thread, message, given, where, output=shown, ask=not yes, trust=trust, wait=wait)
    raise typer.Exit(code)


@report_errors()
@takes_agent_options(*AGENT_OPTIONS)
def chat(
    *,
    thread: ThreadOption = None,
    last: Annotated[bool, typer.Option("--continue", "-c", help="Continue the latest thread.")] = False,
    given: AgentOptions,
    db: Db = None,
    yes: Yes = False,
    trust: Trust = False,
    wait: Wait = None,
) -> None:
    """Chat with a thread, line by line. Without a terminal, read lines from stdin."""
    from wakeloop.cli.agent_spec import parse_wait
    from wakeloop.cli.launch import prepare_chat
    from wakeloop.cli.store import DatabaseFile

    database, seconds = DatabaseFile.of(db), parse_wait(wait)
    found = prepare_chat(thread, given, database, last=last, trust=trust)
    from wakeloop.cli.chat.repl import run_chat as chat_with

    raise typer.Exit(chat_with(*found, database, ask=not yes, wait=seconds))


@report_errors()
def config(
    role: Role = None,
    agent: Agent = None,
    thread: Annotated[
        str | None,
        typer.Option(
            metavar="THREAD",
            help="Show the values of this thread, with its overrides.",
            autocompletion=complete_thread,
        ),
    ] = None,
    preset: Preset = None,
    settings: Set = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show every configuration value and where it comes from."""
    from wakeloop.cli.agent_spec import parse_options
    from wakeloop.cli.show_config import show_config
    from wakeloop.cli.store import DatabaseFile

    given = parse_options(preset=preset, settings=settings, role=role, agent=agent)
    print_lines(show_config(DatabaseFile.of(db), thread, given, json=json), whole=json)


@report_errors()
def threads(
    everything: Annotated[
        bool, typer.Option("--all", help="List every thread, not only the latest.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """List threads, latest first."""
    from wakeloop.cli.show import list_threads
    from wakeloop.cli.store import DatabaseFile

    print_lines(list_threads(DatabaseFile.of(db), everything=everything, json=json), whole=json)


@report_errors()
def show(
    thread: LastThread = None,
    history: Annotated[bool, typer.Option("--history", help="Print the whole conversation too.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show the state, list, answer or history of a thread."""
    from wakeloop.cli.show import show_thread
    from wakeloop.cli.store import DatabaseFile

    print_lines(show_thread(DatabaseFile.of(db), thread, history=history, json=json), whole=json)


@report_errors()
def todo(
    thread: LastThread = None,
    action: Annotated[
        str | None,
        typer.Argument(
            metavar="ACTION",
            help="list, add, done, start, block, cancel, reopen, remove, edit or clear. Default: list.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT|ID", help="Items to add, ids, or one id with its reason or new text."),
    ] = None,
    db: Db = None,
) -> None:
    """Edit the todo list of a thread that is not running."""
    from wakeloop.cli.manage_threads import edit_todos
    from wakeloop.cli.store import DatabaseFile

    typed = [word for word in (thread, action, *(words or ())) if word is not None]
    print_lines(edit_todos(DatabaseFile.of(db), typed))


@report_errors()
def report(
    thread: LastThread = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write; - is stdout. Default: report-THREAD.html."
        ),
    ] = None,
    force: Force = False,
    db: Db = None,
) -> None:
    """Write a thread as an HTML page: its list over time and its conversation."""
    from wakeloop.cli.offline_graph import write_report
    from wakeloop.cli.store import DatabaseFile

    print_lines(write_report(DatabaseFile.of(db), thread, out, force=force), whole=True)


@report_errors()
def rm(
    threads: Annotated[
        list[str],
        typer.Argument(
            metavar="THREAD…", help="Thread ids or their beginnings.", autocompletion=complete_thread
        ),
    ],
    db: Db = None,
) -> None:
    """Remove threads and all their stored data."""
    from wakeloop.cli.manage_threads import remove_threads
    from wakeloop.cli.store import DatabaseFile

    print_lines(remove_threads(DatabaseFile.of(db), threads))


@report_errors()
def hold(thread: LastThread = None, db: Db = None) -> None:
    """Put a thread on hold: only your message or resume moves it."""
    from wakeloop.cli.manage_threads import hold_stored_thread
    from wakeloop.cli.store import DatabaseFile

    print_lines(hold_stored_thread(DatabaseFile.of(db), thread))


@report_errors()
def rename(
    thread: Thread,
    name: Annotated[str, typer.Argument(metavar="NAME", help="New id.")],
    db: Db = None,
) -> None:
    """Rename a thread."""
    from wakeloop.cli.manage_threads import rename_thread
    from wakeloop.cli.store import DatabaseFile

    print_lines(rename_thread(DatabaseFile.of(db), thread, name))


@report_errors()
def export(
    thread: LastThread = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to write instead of printing.")
    ] = None,
    force: Force = False,
    db: Db = None,
    json: Annotated[bool, typer.Option("--json", help="Export as JSON instead of Markdown.")] = False,
) -> None:
    """Export a thread as Markdown."""
    from wakeloop.cli.manage_threads import export_thread
    from wakeloop.cli.store import DatabaseFile
    from wakeloop.cli.streams import write_atomically

    text = export_thread(DatabaseFile.of(db), thread, json=json)
    print_lines(
        write_atomically(text, out, force=force) if out else text.splitlines(), whole=json or out is not None
    )


@report_errors()
def graph(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write instead of printing: .svg, .mmd or .txt."
        ),
    ] = None,
    force: Force = False,
    ascii_: Annotated[bool, typer.Option("--ascii", help="Draw with plain characters.")] = False,
    shown: Annotated[bool, typer.Option("--open", help="Open it in a browser, as an SVG.")] = False,
) -> None:
    """Draw the agent graph as Mermaid, plain text or SVG."""
    from wakeloop.cli.offline_graph import draw_graph

    print_lines(draw_graph(out, force=force, ascii_=ascii_, shown=shown).splitlines(), whole=not ascii_)


@report_errors()
@takes_agent_options("preset", "max_requests")
def demo(
    *,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder to audit. Default: wakeloop-demo, filled with samples."),
    ] = None,
    given: AgentOptions,
    delay: Annotated[float, typer.Option(min=0, help="Seconds per reply of the offline model.")] = 0.0,
    db: Db = None,
    json: Json = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Audit a folder with an offline substitute for a model, and write a report into it."""
    from wakeloop.cli.launch import run_demo
    from wakeloop.cli.store import DatabaseFile

    shown = OutputOptions.from_flags(output, json=json, quiet=quiet)
    raise typer.Exit(run_demo(folder, DatabaseFile.of(db), given, delay, output=shown))


# -- setup commands: init, doctor ------------------------------------------------------------------------


@report_errors()
def init() -> None:
    """Find API keys and local model servers, ask which model to use, and write config.yaml."""
    from wakeloop.cli.discovery import run_init

    raise typer.Exit(run_init())


@report_errors()
def doctor(model: Model = None, base_url: BaseUrl = None, db: Db = None) -> None:
    """Check keys, servers and models, and report what works. Sends one small request."""
    from wakeloop.cli.agent_spec import parse_options
    from wakeloop.cli.doctor import run_doctor
    from wakeloop.cli.store import DatabaseFile

    given = parse_options(model=model, base_url=base_url)
    raise typer.Exit(run_doctor(DatabaseFile.of(db), given, lambda line: print_lines([line])))
