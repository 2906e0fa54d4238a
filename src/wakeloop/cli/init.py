"""The first minute: what there is, and a file that says it."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote

from wakeloop.cli.around import Around, look_around
from wakeloop.cli.failures import FAILED, SETTLED, CommandError
from wakeloop.cli.typed import typed_line
from wakeloop.config.levels import config_folder
from wakeloop.display.width import tell
from wakeloop.text.characters import to_copy

USUAL = {"openai:": "gpt-5-mini"}  # a model to begin with
MENU = 12  # models of servers that are shown to choose from


def begin() -> int:
    """Say what was found; at a terminal ask which model it shall be, and write it down."""
    file, around = config_folder() / "config.yaml", look_around(say)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(*how_to_go_on(around, file))
        return SETTLED
    if not around.choices:
        say(*how_to_go_on(around, file))
        return FAILED
    if file.exists() and not agreed(f"{to_copy(file)} is there already. Write it anew?"):
        say(f"{to_copy(file)} stays as it is. Try: wakeloop doctor")
        return SETTLED
    if (chosen := choice(around)) is None:
        say("Nothing is written.")
        return SETTLED
    write(file, chosen)
    say(
        f"{to_copy(file)} is written: {', '.join(chosen.values())}",
        'Try: wakeloop run "Say what is in this folder"',
    )
    return SETTLED


def how_to_go_on(around: Around, file: Path) -> Iterator[str]:
    """What a person types next."""
    yield f"config: {to_copy(file)}" + (
        "" if file.exists() else " (not there; wakeloop init at a terminal writes it)"
    )
    for _, values in around.choices[:1]:
        address = f" --base-url {values['base_url']}" if "base_url" in values else ""
        model = values["model"] + (
            USUAL.get(values["model"], "NAME") if values["model"].endswith(":") else ""
        )
        yield f'To begin: wakeloop run "Say what is in this folder" --model {quote(model)}{address}'
    if not around.choices:
        yield "To begin: set OPENAI_API_KEY, or start a server such as Ollama, and try again."
    yield from ("Without a model: wakeloop demo DIR", "All commands: wakeloop --help")


def choice(around: Around) -> dict[str, str] | None:
    """Ask which model it shall be, or whether the only one, and its name; None for a no."""
    if len(around.choices) > 1:
        values = dict(chosen(around)[1])
    else:
        [(shown, only)] = around.choices
        if not only["model"].endswith(":") and not agreed(f"Take {shown}?", usual="y"):
            return None
        values = dict(only)
    if values["model"].endswith(":"):
        usual = USUAL.get(values["model"], "")
        name = ""
        while not name:
            name = ask(f"Name of the model{f' [Enter is {usual}]' if usual else ''}: ") or usual
        values["model"] += name
    return values


def chosen(around: Around) -> tuple[str, Mapping[str, str]]:
    """Ask which of several it shall be: by its number, or by its name, which may stand for one not shown."""
    served = [one for one in around.choices if "base_url" in one[1]]
    shown = [*served[:MENU], *around.choices[len(served) :]]
    by_name = {name: one for one in reversed(around.choices) for name in names_of(*one)}
    for number, (title, _) in enumerate(shown, 1):
        say(f"  {number} {title}")
    if more := max(len(served) - MENU, 0):
        say(f"  … and {more} more: type the name of one")
    while True:
        how = f"1-{len(shown)}{' or a name' if more else ''}, Enter is 1"
        typed = ask(f"Which one? [{how}] ") or "1"
        if typed.isdecimal() and 1 <= int(typed) <= len(shown):
            return shown[int(typed) - 1]
        if typed in by_name:
            return by_name[typed]
        say(f"There is no {typed!r}.")


def names_of(title: str, values: Mapping[str, str]) -> Iterator[str]:
    """What a person may type for a choice: as it is shown, as it is written, or the model's name alone."""
    yield from (title, values["model"], values["model"].partition(":")[2])


def ask(question: str) -> str:
    """Ask for a line."""
    tell(question, sys.stdout, end="")
    typed = typed_line(sys.stdin)
    if not typed:
        raise CommandError("Nothing was answered, and nothing written.")
    return typed.strip()


def agreed(question: str, usual: str = "n") -> bool:
    """Ask for a yes; anything else is a no, and Enter is what is usual."""
    shown = "[Y/n]" if usual == "y" else "[y/N]"
    return (ask(f"{question} {shown} ") or usual).lower().startswith("y")


def write(file: Path, values: Mapping[str, str]) -> None:
    """Write the file, whole or not at all."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items())
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"The folder {str(file.parent)!r} cannot be made ({error.strerror}).") from None
    from wakeloop.cli.put import put

    put(text, file, force=True)


def say(*lines: str) -> None:
    """Write lines."""
    for line in lines:
        tell(line, sys.stdout)
