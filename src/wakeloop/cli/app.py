"""The command `wakeloop`: its options, and nothing slow."""

import os
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from wakeloop.cli.failures import FAILED, INTERRUPTED, CommandError, code_of, sentence_of

app = typer.Typer(
    name="wakeloop",
    help="A LangGraph agent whose own todo list keeps it awake.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help starts four times as fast
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 settled, 3 ended with open items, 4 waiting for an answer, 2 wrong usage, "
    "1 failure, 130 after Ctrl-C, 143 after SIGTERM.",
)

OF_SESSIONS = ("dbos", "sqlalchemy", "croniter", "psycopg", "psycopg_pool")  # top modules of that extra

Thread = Annotated[
    str, typer.Argument(metavar="THREAD", help="Id of the thread, as wakeloop threads shows it.")
]
ThreadOption = Annotated[
    str | None, typer.Option("--thread", metavar="THREAD", help="Thread to continue, or the id of a new one.")
]
Db = Annotated[
    Path | None,
    typer.Option("--db", envvar="WAKELOOP_DB", metavar="FILE", help="SQLite file of the threads."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="openai:NAME, NAME or PROVIDER:NAME; else $WAKELOOP_MODEL."),
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of an OpenAI-like server; else $OPENAI_BASE_URL.")
]
System = Annotated[Path | None, typer.Option(metavar="FILE", help="File with the system prompt.")]
Preset = Annotated[str | None, typer.Option(metavar="NAME", help="Named settings to begin with.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as max_wake_cycles=5; may be repeated."),
]
Root = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder that the tools are confined to; else the current one."),
]
Tools = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="files (the default), shell, both as files,shell, or none."),
]
Role = Annotated[
    str | None, typer.Option(metavar="NAME", help="Role from the configuration folder; null leaves it.")
]
Agent = Annotated[
    str | None, typer.Option(metavar="NAME", help="Agent file, which overrides all settings; null leaves it.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Run shell commands without asking for each.")]


def version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        from importlib.metadata import version as version_of

        typer.echo(f"wakeloop {version_of('wakeloop')}")
        raise typer.Exit


@app.callback()
def wakeloop(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A LangGraph agent whose own todo list keeps it awake."""


@app.command()
def run(
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="What is to be done; - reads it from stdin.")
    ],
    model: Model = None,
    base_url: BaseUrl = None,
    system: System = None,
    preset: Preset = None,
    settings: Set = None,
    root: Root = None,
    tools: Tools = None,
    role: Role = None,
    agent: Agent = None,
    thread: ThreadOption = None,
    db: Db = None,
    json: Json = False,
    yes: Yes = False,
) -> None:
    """Work on a request until its list is settled."""
    with sentences():
        from wakeloop.cli.recipe import options

        given = options(model, base_url, system, preset, settings or (), root, tools, role, agent)
        text = sys.stdin.read() if request == "-" else request
        from wakeloop.cli.start import start
        from wakeloop.cli.store import Place

        raise typer.Exit(start(text, given, Place.of(db), thread, as_json=json, ask=not yes))


@app.command()
def resume(
    thread: Thread,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="Answer to its question, or a new message.")
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    system: System = None,
    preset: Preset = None,
    settings: Set = None,
    root: Root = None,
    tools: Tools = None,
    role: Role = None,
    agent: Agent = None,
    db: Db = None,
    json: Json = False,
    yes: Yes = False,
) -> None:
    """Go on with a thread, with the options that it was begun with."""
    with sentences():
        from wakeloop.cli.recipe import options

        given = options(model, base_url, system, preset, settings or (), root, tools, role, agent)
        from wakeloop.cli.start import resume as resume_thread
        from wakeloop.cli.store import Place

        raise typer.Exit(resume_thread(thread, message, given, Place.of(db), as_json=json, ask=not yes))


@app.command()
def chat(
    thread: ThreadOption = None,
    model: Model = None,
    base_url: BaseUrl = None,
    system: System = None,
    preset: Preset = None,
    settings: Set = None,
    root: Root = None,
    tools: Tools = None,
    role: Role = None,
    agent: Agent = None,
    db: Db = None,
    yes: Yes = False,
) -> None:
    """Talk with one thread, line by line. Without a terminal it reads lines from stdin."""
    with sentences():
        from wakeloop.cli.recipe import options

        given = options(model, base_url, system, preset, settings or (), root, tools, role, agent)
        from wakeloop.cli.chat.repl import chat as chat_with
        from wakeloop.cli.store import Place

        raise typer.Exit(chat_with(thread, given, Place.of(db), ask=not yes))


@app.command()
def config(
    role: Role = None,
    agent: Agent = None,
    thread: Annotated[
        str | None, typer.Option(metavar="THREAD", help="What holds in this thread, with its own values.")
    ] = None,
    preset: Preset = None,
    settings: Set = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show every value that holds, and where it comes from."""
    with sentences():
        from wakeloop.cli.config import overview
        from wakeloop.cli.recipe import options
        from wakeloop.cli.store import Place

        given = options(preset=preset, settings=settings or (), role=role, agent=agent)
        write(overview(Place.of(db), thread, given, json=json))


@app.command()
def threads(
    everything: Annotated[
        bool, typer.Option("--all", help="List every thread, not only the latest.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """List the threads, those that changed last first."""
    with sentences():
        from wakeloop.cli.store import Place
        from wakeloop.cli.threads import overview

        write(overview(Place.of(db), everything=everything, json=json))


@app.command()
def show(
    thread: Thread,
    history: Annotated[bool, typer.Option("--history", help="Print the whole conversation too.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show how a thread stands: list, answer, history."""
    with sentences():
        from wakeloop.cli.show import details
        from wakeloop.cli.store import Place

        write(details(Place.of(db), thread, history=history, json=json))


@app.command()
def todo(
    thread: Thread,
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION", help="add, done, start, block, cancel, reopen, remove, edit, clear or list."
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT|ID", help="Texts to add; ids; or an id and its reason or text."),
    ] = None,
    db: Db = None,
) -> None:
    """Edit the list of a thread that has ended by hand."""
    with sentences():
        from wakeloop.cli.edit import edited
        from wakeloop.cli.store import Place

        write(edited(Place.of(db), thread, action, words or []))


@app.command()
def graph() -> None:
    """Print the graph as Mermaid text."""
    with sentences():
        from wakeloop.cli.reader import picture

        write(picture().splitlines())


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to audit; else the current one.")
    ] = Path(),
    preset: Preset = None,
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds that each reply of the offline model takes.")
    ] = 0.0,
    db: Db = None,
    json: Json = False,
) -> None:
    """Audit a folder's files with an offline stand-in for a model. The report is written into the folder."""
    with sentences():
        from wakeloop.cli.recipe import options
        from wakeloop.cli.start import rehearse
        from wakeloop.cli.store import Place

        raise typer.Exit(rehearse(folder, Place.of(db), options(preset=preset), delay, as_json=json))


Where = Annotated[
    str | None,
    typer.Option(
        "--db", envvar="WAKELOOP_DB", metavar="FILE|URL", help="SQLite file of the threads, or postgresql://…"
    ),
]
Session = Annotated[str, typer.Argument(metavar="THREAD", help="AGENT:NAME, or NAME for the agent main.")]


@app.command()
def serve(
    model: Model = None,
    base_url: BaseUrl = None,
    system: System = None,
    preset: Preset = None,
    settings: Set = None,
    root: Root = None,
    tools: Tools = None,
    role: Role = None,
    demo: Annotated[
        Path | None,
        typer.Option("--demo", metavar="DIR", help="Serve the offline stand-in, which audits DIR."),
    ] = None,
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds that each reply of the offline stand-in takes.")
    ] = 0.0,
    db: Where = None,
    yes: Yes = False,
) -> None:
    """Host sessions: what is sent to them wakes them, and they survive this process."""
    with sentences():
        from wakeloop.cli.recipe import options

        given = options(model, base_url, system, preset, settings or (), root, tools, role)
        from wakeloop.cli import sessions

        raise typer.Exit(sessions.serve(sessions.Where(db), given, demo, delay, ask=not yes))


@app.command()
def send(
    thread: Session,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from stdin.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="human, or kick, cron and the like.")] = "human",
    key: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the event; one that was sent is dropped.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until the session's turn has ended.")] = False,
    db: Where = None,
    json: Json = False,
) -> None:
    """Send a session a message: it wakes it, or answers what it asked."""
    with sentences():
        from wakeloop.cli import sessions

        said = sys.stdin.read() if text == "-" else text
        lines, code = sessions.send(sessions.Where(db), thread, said, kind, key, wait=wait, json=json)
        write(lines)
        raise typer.Exit(code)


@app.command()
def ps(db: Where = None, json: Json = False) -> None:
    """List the sessions: state, reason, open items, wakes, what they wait for."""
    with sentences():
        from wakeloop.cli import sessions

        write(sessions.overview(sessions.Where(db), json=json))


@app.command()
def cron(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="add, list or remove.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="…", help="THREAD, five fields and a text; or an id.")
    ] = None,
    db: Where = None,
    json: Json = False,
) -> None:
    """Wake sessions by the clock (UTC)."""
    with sentences():
        from wakeloop.cli import sessions

        write(sessions.cron(sessions.Where(db), action, words or [], json=json))


@app.command()
def drain(
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the workers.")] = 60.0,
    db: Where = None,
) -> None:
    """Ask every wakeloop serve of this database to come to rest; nothing is lost."""
    with sentences():
        from wakeloop.cli import sessions

        lines, code = sessions.drain(sessions.Where(db), timeout)
        write(lines)
        raise typer.Exit(code)


@contextmanager
def sentences() -> Iterator[None]:
    """Whatever goes wrong: one sentence on stderr and an exit code, never a traceback."""
    try:
        yield
    except typer.Exit:
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        os._exit(FAILED)  # nobody reads any more: the run must not go on unseen
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise typer.Exit(INTERRUPTED) from None
    except ModuleNotFoundError as error:
        missing = CommandError(missing_sentence(error.name or "a module"))
        typer.echo(f"wakeloop: {missing}", err=True)
        raise typer.Exit(FAILED) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
        typer.echo(f"wakeloop: {sentence_of(error)}", err=True)
        raise typer.Exit(code_of(error)) from None


def missing_sentence(module: str) -> str:
    """What to install for a module that is not there."""
    if module.partition(".")[0] in OF_SESSIONS or module.startswith("langgraph.checkpoint.postgres"):
        return f"This command needs {module}: pip install 'wakeloop[cli,sessions]'."
    return f"The command line needs {module}: pip install 'wakeloop[cli]'."


def write(lines: Iterable[str]) -> None:
    """Write lines to stdout without control codes; what its encoding lacks is replaced."""
    from wakeloop.display.clean import clean

    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
        typer.echo(clean(line).encode(encoding, "replace").decode(encoding))


def main() -> None:
    """Run the command."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # of libraries, to developers
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
