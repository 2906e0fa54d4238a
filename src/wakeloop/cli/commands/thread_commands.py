"""The commands of one thread, and those about threads."""

from pathlib import Path
from typing import Annotated

import typer

from wakeloop.cli.commands.options import (
    OF_AN_AGENT,
    Agent,
    Db,
    Force,
    Given,
    Json,
    LastThread,
    Preset,
    QuietOption,
    Role,
    Set,
    Thread,
    ThreadOption,
    Todos,
    Told,
    Yes,
    ids,
    takes,
)
from wakeloop.cli.commands.sentences import sentences, write
from wakeloop.cli.output_formats import OutputOptions


@sentences()
@takes(*OF_AN_AGENT)
def run(
    *,
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="What is to be done; - reads it from stdin.")
    ],
    given: Given,
    todos: Todos = None,
    thread: ThreadOption = None,
    db: Db = None,
    json: Json = False,
    output: Told = None,
    quiet: QuietOption = False,
    yes: Yes = False,
) -> None:
    """Work on a request until its list is settled."""
    from wakeloop.cli.start import piped, start
    from wakeloop.cli.store import Place

    shown = OutputOptions.from_flags(output, json=json, quiet=quiet)
    text = piped() if request == "-" else request
    raise typer.Exit(start(text, given, Place.of(db), thread, todos, output=shown, ask=not yes))


@sentences()
@takes(*OF_AN_AGENT)
def resume(
    *,
    thread: LastThread = None,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="Answer to its question, or a new message.")
    ] = None,
    given: Given,
    db: Db = None,
    json: Json = False,
    output: Told = None,
    quiet: QuietOption = False,
    yes: Yes = False,
) -> None:
    """Go on with a thread, with the options that it was begun with."""
    from wakeloop.cli.start import resume as resume_thread
    from wakeloop.cli.store import Place

    shown = OutputOptions.from_flags(output, json=json, quiet=quiet)
    raise typer.Exit(resume_thread(thread, message, given, Place.of(db), output=shown, ask=not yes))


@sentences()
@takes(*OF_AN_AGENT)
def chat(
    *,
    thread: ThreadOption = None,
    last: Annotated[bool, typer.Option("--continue", "-c", help="Take the last thread.")] = False,
    given: Given,
    db: Db = None,
    yes: Yes = False,
) -> None:
    """Talk with one thread, line by line. Without a terminal it reads lines from stdin."""
    from wakeloop.cli.start import meant
    from wakeloop.cli.store import Place

    place = Place.of(db)
    found = meant(thread, given, place, last=last)
    from wakeloop.cli.chat.repl import chat as chat_with

    raise typer.Exit(chat_with(*found, place, ask=not yes))


@sentences()
def config(
    role: Role = None,
    agent: Agent = None,
    thread: Annotated[
        str | None,
        typer.Option(
            metavar="THREAD", help="What holds in this thread, with its own values.", autocompletion=ids
        ),
    ] = None,
    preset: Preset = None,
    settings: Set = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show every value that holds, and where it comes from."""
    from wakeloop.cli.recipe import options
    from wakeloop.cli.show_config import show_config
    from wakeloop.cli.store import Place

    given = options(preset=preset, settings=settings, role=role, agent=agent)
    write(show_config(Place.of(db), thread, given, json=json), whole=json)


@sentences()
def threads(
    everything: Annotated[
        bool, typer.Option("--all", help="List every thread, not only the latest.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """List the threads, those that changed last first."""
    from wakeloop.cli.store import Place
    from wakeloop.cli.threads import overview

    write(overview(Place.of(db), everything=everything, json=json), whole=json)


@sentences()
def show(
    thread: LastThread = None,
    history: Annotated[bool, typer.Option("--history", help="Print the whole conversation too.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show how a thread stands: list, answer, history."""
    from wakeloop.cli.show import details
    from wakeloop.cli.store import Place

    write(details(Place.of(db), thread, history=history, json=json), whole=json)


@sentences()
def todo(
    thread: LastThread = None,
    action: Annotated[
        str | None,
        typer.Argument(
            metavar="ACTION",
            help="list, add, done, start, block, cancel, reopen, remove, edit or clear; else list.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT|ID", help="Texts to add; ids; or an id and its reason or text."),
    ] = None,
    db: Db = None,
) -> None:
    """Edit by hand the list of a thread that has ended."""
    from wakeloop.cli.edit_todos import edit_todos
    from wakeloop.cli.store import Place

    typed = [word for word in (thread, action, *(words or ())) if word is not None]
    write(edit_todos(Place.of(db), typed))


@sentences()
def report(
    thread: LastThread = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page; else report-THREAD.html. - is stdout."),
    ] = None,
    force: Force = False,
    db: Db = None,
) -> None:
    """Write a thread as a page of HTML: its list over time, and its conversation."""
    from wakeloop.cli.report import written
    from wakeloop.cli.store import Place

    write(written(Place.of(db), thread, out, force=force), whole=True)


@sentences()
def rm(
    threads: Annotated[
        list[str],
        typer.Argument(metavar="THREAD…", help="Ids of the threads, or how each begins.", autocompletion=ids),
    ],
    db: Db = None,
) -> None:
    """Remove threads, with all that is stored of them."""
    from wakeloop.cli.manage_threads import remove_threads
    from wakeloop.cli.store import Place

    write(remove_threads(Place.of(db), threads))


@sentences()
def rename(
    thread: Thread,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new id.")],
    db: Db = None,
) -> None:
    """Give a thread another id."""
    from wakeloop.cli.manage_threads import rename_thread
    from wakeloop.cli.store import Place

    write(rename_thread(Place.of(db), thread, name))


@sentences()
def export(
    thread: LastThread = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="A file; else it is printed.")
    ] = None,
    force: Force = False,
    db: Db = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON instead of Markdown.")] = False,
) -> None:
    """Take a thread out as Markdown: its list and its conversation."""
    from wakeloop.cli.manage_threads import export_thread
    from wakeloop.cli.put import put
    from wakeloop.cli.store import Place

    text = export_thread(Place.of(db), thread, json=json)
    write(put(text, out, force=force) if out else text.splitlines(), whole=json or out is not None)


@sentences()
def graph(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="A file: .svg, .mmd or .txt; else it is printed."),
    ] = None,
    force: Force = False,
    ascii_: Annotated[bool, typer.Option("--ascii", help="Print it as plain text.")] = False,
    shown: Annotated[bool, typer.Option("--open", help="Show it in a browser, as an SVG.")] = False,
) -> None:
    """Draw the graph, without a network: as Mermaid text, plain text, or an SVG."""
    from wakeloop.cli.reader import drawn

    write(drawn(out, force=force, ascii_=ascii_, shown=shown).splitlines(), whole=not ascii_)


@sentences()
@takes("preset", "max_requests")
def demo(
    *,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to audit; else the current one.")
    ] = Path(),
    given: Given,
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds that each reply of the offline model takes.")
    ] = 0.0,
    db: Db = None,
    json: Json = False,
    output: Told = None,
    quiet: QuietOption = False,
) -> None:
    """Audit a folder's files with an offline stand-in for a model. The report is written into the folder."""
    from wakeloop.cli.start import rehearse
    from wakeloop.cli.store import Place

    shown = OutputOptions.from_flags(output, json=json, quiet=quiet)
    raise typer.Exit(rehearse(folder, Place.of(db), given, delay, output=shown))
