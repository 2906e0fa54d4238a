"""The first minute: find a model and write the configuration."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote

from wakeloop.cli.discovery import ModelSources, discover_models
from wakeloop.cli.failures import FAILED, SETTLED, CommandError
from wakeloop.cli.terminal_input import read_line
from wakeloop.config.levels import config_folder, read_global_levels
from wakeloop.display.terminal_output import write_text
from wakeloop.errors import SettingsError
from wakeloop.text.characters import quote_path

DEFAULT_MODELS = {"openai:": "gpt-5-mini"}  # suggested for a provider
MAX_MENU = 12  # models of servers shown in the menu


def run_init() -> int:
    """Show what was found; at a terminal, ask which model to use and write the configuration."""
    file, sources = config_folder() / "config.yaml", discover_models(print_lines)
    person = sys.stdin.isatty() and sys.stdout.isatty()
    if not (person and sources.choices):
        print_lines(*suggest_next_steps(sources, file, person=person))
        return FAILED if person else SETTLED
    if file.exists() and not confirm(f"{quote_path(file)} exists. Overwrite it?"):
        print_lines(f"{quote_path(file)} was left unchanged. Try: wakeloop doctor")
        return SETTLED
    if (values := choose_model(sources)) is None:
        print_lines("Nothing was written.")
        return SETTLED
    write_config(file, values)
    print_lines(
        f"Wrote {quote_path(file)}: {', '.join(values.values())}",
        'Try: wakeloop run "Say what is in this folder"',
    )
    return SETTLED


def suggest_next_steps(sources: ModelSources, file: Path, *, person: bool) -> Iterator[str]:
    """Yield the commands to type next; a `person` at a terminal has just tried to create the file."""
    how = "" if person else "; run wakeloop init at a terminal to create it"
    try:
        read_global_levels(file.parent)
    except SettingsError as error:  # no run would start
        yield from (f"config: {error}", "To start: correct that, and try again.")
        return
    yield f"config: {quote_path(file)}" + ("" if file.exists() else f" (not found{how})")
    if sources.choices:
        _, values = sources.choices[0]
        model = values["model"]
        if model.endswith(":"):
            model += DEFAULT_MODELS.get(model, "NAME")
        address = f" --base-url {values['base_url']}" if "base_url" in values else ""
        yield f'To start: wakeloop run "Say what is in this folder" --model {quote(model)}{address}'
    elif sources.silent:
        [(there, source), *_] = sources.silent
        yield f"To start: start the server at {there} or correct {source}, and try again."
    else:
        address = "set OPENAI_BASE_URL to a server's address"
        yield f"To start: set OPENAI_API_KEY, start a server such as Ollama, or {address}, and try again."
    yield from ("Without a model: wakeloop demo", "All commands: wakeloop --help")


def choose_model(sources: ModelSources) -> dict[str, str] | None:
    """Ask which model to use (or whether to use the only one) and its name; None if the user says no."""
    if len(sources.choices) > 1:
        values = dict(pick_from_menu(sources)[1])
    else:
        [(label, only)] = sources.choices
        if not only["model"].endswith(":") and not confirm(f"Use {label}?", default="y"):
            return None
        values = dict(only)
    if values["model"].endswith(":"):
        default = DEFAULT_MODELS.get(values["model"], "")
        hint = f" [Enter for {default}]" if default else ""
        name = ""
        while not name:
            name = ask_line(f"Name of the model{hint}: ") or default
        values["model"] += name
    return values


def pick_from_menu(sources: ModelSources) -> tuple[str, Mapping[str, str]]:
    """Ask which model to use, by number or by name; a name may be one that the menu leaves out."""
    served = [choice for choice in sources.choices if not choice[1]["model"].endswith(":")]
    shown = [*served[:MAX_MENU], *sources.choices[len(served) :]]
    by_name: dict[str, tuple[str, Mapping[str, str]]] = {}
    for choice in reversed(sources.choices):  # if two share a name, the first one counts
        by_name |= dict.fromkeys(accepted_names(*choice), choice)
    for number, (label, _) in enumerate(shown, 1):
        print_lines(f"  {number} {label}")
    more = len(served) - MAX_MENU
    if more > 0:
        print_lines(f"  … and {more} more: type a name")
    options = f"1-{len(shown)}{' or a name' if more > 0 else ''}, Enter for 1"
    while True:
        typed = ask_line(f"Which one? [{options}] ") or "1"
        if typed.isdecimal() and 1 <= int(typed) <= len(shown):
            return shown[int(typed) - 1]
        if typed in by_name:
            return by_name[typed]
        print_lines(f"{typed!r} is not one of them.")


def accepted_names(label: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a user may type for a choice: its label, its full name, or the model's name alone."""
    return label, values["model"], values["model"].partition(":")[2]


def ask_line(question: str) -> str:
    """Ask for a line."""
    write_text(question, sys.stdout, end="")
    typed = read_line(sys.stdin)
    if not typed:
        raise CommandError("The input ended before an answer; nothing was written.")
    return typed.strip()


def confirm(question: str, default: str = "n") -> bool:
    """Ask for a yes or no; Enter means the default, and any other answer means no."""
    shown = "[Y/n]" if default == "y" else "[y/N]"
    return (ask_line(f"{question} {shown} ") or default).lower().startswith("y")


def write_config(file: Path, values: Mapping[str, str]) -> None:
    """Write the configuration file atomically."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items())
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"Cannot create the folder {str(file.parent)!r}: {error.strerror}.") from None
    from wakeloop.cli.atomic_write import write_atomically

    write_atomically(text, file, force=True)


def print_lines(*lines: str) -> None:
    """Print lines on stdout."""
    for line in lines:
        write_text(line, sys.stdout)
