"""Start of the commands run, resume, chat and demo."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from wakeloop.cli.agent_spec import AgentSpec, read_option_file, refuse_non_utf8, resolve_folder
from wakeloop.cli.failures import usage_error
from wakeloop.cli.spec_builder import RunSpec, build_spec
from wakeloop.cli.store import DatabaseFile, ThreadRecord
from wakeloop.cli.streams import OutputOptions, read_all
from wakeloop.cli.thread_lookup import find_thread, new_thread_id, resolve_thread_option
from wakeloop.cli.trusted_files import confirm_files
from wakeloop.display.terminal_output import clean_line, write_text
from wakeloop.todos.items import OperationRefused, read_list

BYTE_ORDER_MARK = "\ufeff"
TEXT_OUTPUT = OutputOptions()
SAMPLE_FOLDER = Path("wakeloop-demo")


def run_request(
    request: str,
    given: Mapping[str, Any],
    database: DatabaseFile,
    thread: str | None,
    todos: Path | None = None,
    *,
    output: OutputOptions,
    ask: bool,
    trust: bool = False,
) -> int:
    """Run a request on a new thread, or as the next message of an existing one.

    `todos` is a file with the list to work through. Returns the exit code, like all commands here.
    """
    check_text(request, "The request is empty. Say what the agent shall do.")
    items = None if todos is None else read_todo_file(todos)
    name, known = resolve_thread_option(database, thread)
    spec = build_trusted_spec(known, given, trust=trust)
    return launch(RunSpec(database, name, spec, request, request, given, output=output, ask=ask, todos=items))


def resume_thread(
    thread: str | None,
    message: str | None,
    given: Mapping[str, Any],
    database: DatabaseFile,
    *,
    output: OutputOptions,
    ask: bool,
    trust: bool = False,
) -> int:
    """Resume a thread, by default the latest.

    Answers its question, finishes its run, sends it a message, or continues its list.
    """
    if message is not None:
        check_text(message, "The message is empty. Leave it out to resume without one.")
    known = find_thread(database, thread)
    spec = build_trusted_spec(known, given, trust=trust)
    return launch(
        RunSpec(database, known.id, spec, known.request, message, given, resumes=True, output=output, ask=ask)
    )


def prepare_chat(
    thread: str | None, given: Mapping[str, Any], database: DatabaseFile, *, last: bool, trust: bool = False
) -> tuple[str, ThreadRecord | None, AgentSpec]:
    """Return id, record and spec of the thread that a chat starts with: new, by id, or the latest."""
    if last and thread is not None:
        raise usage_error("--continue takes the latest thread, --thread names one. Use only one of them.")
    known: ThreadRecord | None
    if last:
        known = find_thread(database, None)
        name = known.id
    else:
        name, known = resolve_thread_option(database, thread)
    spec = build_trusted_spec(known, given, trust=trust)
    announce_start(spec, name)
    return name, known, spec


def build_trusted_spec(known: ThreadRecord | None, given: Mapping[str, Any], *, trust: bool) -> AgentSpec:
    """Build a thread's spec, after asking about files that start code and have changed."""
    before = known.spec if known else None
    spec = build_spec(before, given)
    reread = "role" in given or "agent" in given
    return confirm_files(spec, before.trusted if before else None, trust=trust, configured=reread)


def run_demo(
    root: Path | None,
    database: DatabaseFile,
    given: Mapping[str, Any],
    delay: float,
    *,
    output: OutputOptions,
) -> int:
    """Run the demo: the offline model audits the files in `root`, or sample files of the package."""
    if root is None:
        root = SAMPLE_FOLDER
        write_samples(root)
    spec = build_spec(AgentSpec(root=resolve_folder(root, "Name another one"), demo=True, delay=delay), given)
    name = new_thread_id("demo")
    announce_start(spec, name, output)
    from wakeloop.demo.audit import audit_files, request_text

    where = Path(spec.root)
    if not audit_files(where):
        raise usage_error(f"{str(where)!r} has no Python, Markdown or notebook files. Name another folder.")
    request = request_text(where)
    return launch(RunSpec(database, name, spec, request, request, output=output))


def write_samples(folder: Path) -> None:
    """Write the sample files of the package into a folder; files that are there stay as they are.

    In the package each one ends with `.txt`, so that none is taken for a part of the program.
    """
    from importlib.resources import files

    try:
        folder.mkdir(exist_ok=True)
        for sample in files("wakeloop.demo").joinpath("sample").iterdir():
            file = folder / sample.name.removesuffix(".txt")
            if not file.exists():
                file.write_bytes(sample.read_bytes())
    except OSError as error:
        raise usage_error(f"Cannot write the sample files into {str(folder)!r}: {error.strerror}.") from None


def launch(run: RunSpec) -> int:
    """Run; the slow imports happen only here, so that usage errors come at once."""
    if not run.spec.demo:  # `run_demo` has announced it
        announce_start(run.spec, run.thread, run.output)
    try:
        from wakeloop.cli.run_thread import run_thread
    except KeyboardInterrupt:
        write_text("Stopped before the run started; nothing is stored.", sys.stderr)
        raise
    return run_thread(run)


def announce_start(spec: AgentSpec, thread: str, output: OutputOptions = TEXT_OUTPUT) -> None:
    """Say at a terminal that a run starts, because the imports take a moment."""
    if output.shows_progress and sys.stderr.isatty():
        write_text(f"Starting {clean_line(spec.model_title)} on thread {thread} …", sys.stderr)


def check_text(text: str, empty: str) -> None:
    """Refuse an empty text (with the error `empty`), and text that is not UTF-8."""
    if not text.strip():
        raise usage_error(empty)
    refuse_non_utf8(text)


def read_stdin(source: TextIO | None = None) -> str:
    """Read all of stdin, without a byte order mark."""
    return read_all(source or sys.stdin).removeprefix(BYTE_ORDER_MARK)


# -- todo files: lists as plain text, JSON or YAML -------------------------------------------------------


STRUCTURED_SUFFIXES = (".json", ".yaml", ".yml")


def read_todo_file(path: Path) -> list[Mapping[str, Any]]:
    """Read the items of a file: one per line, or a JSON or YAML list of strings and items.

    Raises `CommandError` for a file without items or with invalid ones.
    """
    text = read_option_file(path, "--todos")
    which = f"The file {str(path)!r} for --todos"
    items: list[Mapping[str, Any]]
    if path.suffix.lower() in STRUCTURED_SUFFIXES:
        listed = _parse_structured(path.suffix.lower(), text, which)
        if not isinstance(listed, list):
            raise usage_error(f"{which} must contain a list of strings or items.")
        items = [{"content": item} if isinstance(item, str) else item for item in listed]
    else:
        items = [{"content": line.strip()} for line in text.splitlines() if line.strip()]
    if not items:
        raise usage_error(f"{which} contains no items.")
    try:
        read_list(items)
    except OperationRefused as refusal:
        raise usage_error(f"{which} is not a valid list: {refusal}.") from None
    return items


def _parse_structured(suffix: str, text: str, which: str) -> Any:
    try:
        if suffix == ".json":
            return json.loads(text)
        import yaml

        return yaml.safe_load(text)
    except Exception as error:  # noqa: BLE001 - a parser's errors are of many kinds
        why = str(error).partition("\n")[0]
        raise usage_error(f"{which} cannot be parsed: {why}.") from None
