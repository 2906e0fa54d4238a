"""Commands for threads, and for the first minute."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from wakeloop.cli.commands.console import print_lines
from wakeloop.cli.commands.options import (
    AGENT_OPTIONS,
    AgentOptions,
    Delay,
    Force,
    Json,
    LastThread,
    Thread,
    ThreadOption,
    Trust,
    Yes,
    argument,
    command,
    complete_thread,
    option,
)

if TYPE_CHECKING:
    from wakeloop.cli.store import DatabaseFile
    from wakeloop.cli.streams import OutputOptions


@command()
def init() -> int:
    """Find API keys and local model servers, ask which model to use, and write config.yaml."""
    from wakeloop.cli.discovery import run_init

    return run_init()


@command("model", "base_url")
def doctor(given: AgentOptions, database: "DatabaseFile") -> int:
    """Check keys, servers and models, and report what works. Sends one small request."""
    from wakeloop.cli.discovery import run_doctor

    return run_doctor(database, given, lambda line: print_lines([line]))


@command(*AGENT_OPTIONS)
def run(
    request: Annotated[str, argument("REQUEST", "What the agent should do; - reads stdin.")],
    given: AgentOptions,
    database: "DatabaseFile",
    output: "OutputOptions",
    todos: Annotated[
        Path | None,
        option(
            takes="FILE",
            text="Todo list to work through: one item per line, or a .json or .yaml file.",
            readable=False,
        ),
    ] = None,
    thread: ThreadOption = None,
    yes: Yes = False,
    trust: Trust = False,
) -> int:
    """Run a request until its todo list is settled."""
    from wakeloop.cli.launch import read_stdin, run_request

    text = read_stdin() if request == "-" else request
    return run_request(text, given, database, thread, todos, output=output, ask=not yes, trust=trust)


@command(*AGENT_OPTIONS)
def resume(
    given: AgentOptions,
    database: "DatabaseFile",
    output: "OutputOptions",
    thread: LastThread = None,
    message: Annotated[str | None, argument("MESSAGE", "Answer to its question, or a new message.")] = None,
    yes: Yes = False,
    trust: Trust = False,
) -> int:
    """Resume a thread with its original options."""
    from wakeloop.cli.launch import resume_thread

    return resume_thread(thread, message, given, database, output=output, ask=not yes, trust=trust)


@command(*AGENT_OPTIONS)
def chat(
    given: AgentOptions,
    database: "DatabaseFile",
    thread: ThreadOption = None,
    last: Annotated[bool, option("--continue", "-c", text="Continue the latest thread.")] = False,
    yes: Yes = False,
    trust: Trust = False,
) -> int:
    """Chat with a thread, line by line. Without a terminal, read lines from stdin."""
    from wakeloop.cli.agent_spec import DEFAULT_WAIT
    from wakeloop.cli.launch import prepare_chat

    found = prepare_chat(thread, given, database, last=last, trust=trust)
    from wakeloop.cli.chat.repl import run_chat  # slow: only after the first line is shown

    return run_chat(*found, database, ask=not yes, wait=given.get("wait", DEFAULT_WAIT))


@command("role", "agent", "preset", "settings")
def config(
    given: AgentOptions,
    database: "DatabaseFile",
    thread: Annotated[
        str | None,
        option(
            takes="THREAD",
            text="Show the values of this thread, with its overrides.",
            autocompletion=complete_thread,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show every configuration value and where it comes from."""
    from wakeloop.cli.show_config import show_config

    print_lines(show_config(database, thread, given, json=json), whole=json)


@command()
def threads(
    database: "DatabaseFile",
    everything: Annotated[bool, option("--all", text="List every thread, not only the latest.")] = False,
    json: Json = False,
) -> None:
    """List threads, latest first."""
    from wakeloop.cli.show import list_threads

    print_lines(list_threads(database, everything=everything, json=json), whole=json)


@command()
def show(
    database: "DatabaseFile",
    thread: LastThread = None,
    history: Annotated[bool, option("--history", text="Print the whole conversation too.")] = False,
    json: Json = False,
) -> None:
    """Show the state, list, answer or history of a thread."""
    from wakeloop.cli.show import show_thread

    print_lines(show_thread(database, thread, history=history, json=json), whole=json)


@command()
def todo(
    database: "DatabaseFile",
    thread: LastThread = None,
    action: Annotated[
        str | None,
        argument(
            "ACTION", "list, add, done, start, block, cancel, reopen, remove, edit or clear. Default: list."
        ),
    ] = None,
    words: Annotated[
        list[str] | None, argument("TEXT|ID", "Items to add, ids, or one id with its reason or new text.")
    ] = None,
) -> None:
    """Edit the todo list of a thread that is not running."""
    from wakeloop.cli.manage_threads import edit_todos

    typed = [word for word in (thread, action, *(words or ())) if word is not None]
    print_lines(edit_todos(database, typed))


@command()
def report(
    database: "DatabaseFile",
    thread: LastThread = None,
    out: Annotated[
        Path | None,
        option("--out", "-o", takes="FILE", text="File to write; - is stdout. Default: report-THREAD.html."),
    ] = None,
    force: Force = False,
) -> None:
    """Write a thread as an HTML page: its list over time and its conversation."""
    from wakeloop.cli.offline_graph import write_report

    print_lines(write_report(database, thread, out, force=force), whole=True)


@command()
def rm(
    threads: Annotated[
        list[str], argument("THREAD…", "Thread ids or their beginnings.", autocompletion=complete_thread)
    ],
    database: "DatabaseFile",
) -> None:
    """Remove threads and all their stored data."""
    from wakeloop.cli.manage_threads import remove_threads

    print_lines(remove_threads(database, threads))


@command()
def hold(database: "DatabaseFile", thread: LastThread = None) -> None:
    """Put a thread on hold: only your message or resume moves it."""
    from wakeloop.cli.manage_threads import hold_stored_thread

    print_lines(hold_stored_thread(database, thread))


@command()
def rename(
    thread: Thread, name: Annotated[str, argument("NAME", "New id.")], database: "DatabaseFile"
) -> None:
    """Rename a thread."""
    from wakeloop.cli.manage_threads import rename_thread

    print_lines(rename_thread(database, thread, name))


@command()
def export(
    database: "DatabaseFile",
    thread: LastThread = None,
    out: Annotated[
        Path | None, option("--out", "-o", takes="FILE", text="File to write instead of printing.")
    ] = None,
    force: Force = False,
    json: Annotated[bool, option("--json", text="Export as JSON instead of Markdown.")] = False,
) -> None:
    """Export a thread as Markdown."""
    from wakeloop.cli.manage_threads import export_thread
    from wakeloop.cli.streams import write_atomically

    text = export_thread(database, thread, json=json)
    lines = write_atomically(text, out, force=force) if out else text.splitlines()
    print_lines(lines, whole=json or out is not None)


@command()
def graph(
    out: Annotated[
        Path | None,
        option("--out", "-o", takes="FILE", text="File to write instead of printing: .svg, .mmd or .txt."),
    ] = None,
    force: Force = False,
    ascii_: Annotated[bool, option("--ascii", text="Draw with plain characters.")] = False,
    shown: Annotated[bool, option("--open", text="Open it in a browser, as an SVG.")] = False,
) -> None:
    """Draw the agent graph as Mermaid, plain text or SVG."""
    from wakeloop.cli.offline_graph import draw_graph

    print_lines(draw_graph(out, force=force, ascii_=ascii_, shown=shown).splitlines(), whole=not ascii_)


@command("preset", "max_requests")
def demo(
    given: AgentOptions,
    database: "DatabaseFile",
    output: "OutputOptions",
    folder: Annotated[
        Path | None, argument("DIR", "Folder to audit. Default: wakeloop-demo, filled with samples.")
    ] = None,
    delay: Delay = 0.0,
) -> int:
    """Audit a folder with an offline substitute for a model, and write a report into it."""
    from wakeloop.cli.launch import run_demo

    return run_demo(folder, database, given, delay, output=output)
