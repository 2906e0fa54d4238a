"""The first minute: what there is, and a file that says it."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote

from wakeloop.cli.discovery import ModelSources, discover_models
from wakeloop.cli.failures import FAILED, SETTLED, CommandError
from wakeloop.cli.terminal_input import read_line
from wakeloop.config.levels import config_folder
from wakeloop.display.width import tell
from wakeloop.text.characters import quote_path

DEFAULT_MODELS = {"openai:": "gpt-5-mini"}  # a model to begin with
MAX_MENU = 12  # models of servers that are shown to choose from


def run_init() -> int:
    """Say what was found; at a terminal ask which model it shall be, and write it down."""
    file, around = config_folder() / "config.yaml", discover_models(print_lines)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_lines(*suggest_next_steps(around, file))
        return SETTLED
    if not around.choices:
        print_lines(*suggest_next_steps(around, file))
        return FAILED
    if file.exists() and not confirm(f"{quote_path(file)} is there already. Write it anew?"):
        print_lines(f"{quote_path(file)} stays as it is. Try: wakeloop doctor")
        return SETTLED
    if (chosen := choose_model(around)) is None:
        print_lines("Nothing is written.")
        return SETTLED
    write_config(file, chosen)
    print_lines(
        f"{quote_path(file)} is written: {', '.join(chosen.values())}",
        'Try: wakeloop run "Say what is in this folder"',
    )
    return SETTLED


def suggest_next_steps(around: ModelSources, file: Path) -> Iterator[str]:
    """What a person types next."""
    yield f"config: {quote_path(file)}" + (
        "" if file.exists() else " (not there; wakeloop init at a terminal writes it)"
    )
    for _, values in around.choices[:1]:
        address = f" --base-url {values['base_url']}" if "base_url" in values else ""
        model = values["model"] + (
            DEFAULT_MODELS.get(values["model"], "NAME") if values["model"].endswith(":") else ""
        )
        yield f'To begin: wakeloop run "Say what is in this folder" --model {quote(model)}{address}'
    if not around.choices:
        yield "To begin: set OPENAI_API_KEY, or start a server such as Ollama, and try again."
    yield from ("Without a model: wakeloop demo DIR", "All commands: wakeloop --help")


def choose_model(around: ModelSources) -> dict[str, str] | None:
    """Ask which model it shall be, or whether the only one, and its name; None for a no."""
    if len(around.choices) > 1:
        values = dict(pick_from_menu(around)[1])
    else:
        [(shown, only)] = around.choices
        if not only["model"].endswith(":") and not confirm(f"Take {shown}?", usual="y"):
            return None
        values = dict(only)
    if values["model"].endswith(":"):
        usual = DEFAULT_MODELS.get(values["model"], "")
        name = ""
        while not name:
            name = ask_line(f"Name of the model{f' [Enter is {usual}]' if usual else ''}: ") or usual
        values["model"] += name
    return values


def pick_from_menu(around: ModelSources) -> tuple[str, Mapping[str, str]]:
    """Ask which of several it shall be: by its number, or by its name, which may stand for one not shown."""
    served = [one for one in around.choices if "base_url" in one[1]]
    shown = [*served[:MAX_MENU], *around.choices[len(served) :]]
    by_name = {name: one for one in reversed(around.choices) for name in accepted_names(*one)}
    for number, (title, _) in enumerate(shown, 1):
        print_lines(f"  {number} {title}")
    if more := max(len(served) - MAX_MENU, 0):
        print_lines(f"  … and {more} more: type the name of one")
    while True:
        how = f"1-{len(shown)}{' or a name' if more else ''}, Enter is 1"
        typed = ask_line(f"Which one? [{how}] ") or "1"
        if typed.isdecimal() and 1 <= int(typed) <= len(shown):
            return shown[int(typed) - 1]
        if typed in by_name:
            return by_name[typed]
        print_lines(f"There is no {typed!r}.")


def accepted_names(title: str, values: Mapping[str, str]) -> Iterator[str]:
    """What a person may type for a choice: as it is shown, as it is written, or the model's name alone."""
    yield from (title, values["model"], values["model"].partition(":")[2])


def ask_line(question: str) -> str:
    """Ask for a line."""
    tell(question, sys.stdout, end="")
    typed = read_line(sys.stdin)
    if not typed:
        raise CommandError("Nothing was answered, and nothing written.")
    return typed.strip()


def confirm(question: str, usual: str = "n") -> bool:
    """Ask for a yes; anything else is a no, and Enter is what is usual."""
    shown = "[Y/n]" if usual == "y" else "[y/N]"
    return (ask_line(f"{question} {shown} ") or usual).lower().startswith("y")


def write_config(file: Path, values: Mapping[str, str]) -> None:
    """Write the file, whole or not at all."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items())
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"The folder {str(file.parent)!r} cannot be made ({error.strerror}).") from None
    from wakeloop.cli.atomic_write import write_atomically

    write_atomically(text, file, force=True)


def print_lines(*lines: str) -> None:
    """Write lines."""
    for line in lines:
        tell(line, sys.stdout)
