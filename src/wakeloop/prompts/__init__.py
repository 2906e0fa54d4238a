"""The prompts: Markdown files, filled by name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

from wakeloop.errors import SettingsError
from wakeloop.text.wording import suggest

FOLDER = Path(__file__).parent
FILES = tuple(sorted(FOLDER.rglob("*.md")))  # listed now: a server's event loop may not list folders
FILLERS = ("no_text", "continued", "run_interrupted")
"""The prompts that are sent as the model's own words. A reply that equals one of them is empty."""
RESULTS = ("cut_call", "unanswered", "unanswered_todo", "not_run", "call_rejected")
"""The prompts that are sent as a tool's result."""


@cache
def list_prompts() -> frozenset[str]:
    """Return the name of every prompt."""
    return frozenset(path.stem for path in FILES)


@cache
def find_blanks(name: str) -> frozenset[str]:
    """Return the blanks that a prompt may have: those of its files."""
    texts = [path.read_text(encoding="utf-8") for path in FILES if path.stem == name]
    return frozenset(Template("\n".join(texts)).get_identifiers())


def check_prompt(name: str, text: str) -> None:
    """Refuse an unknown prompt, or one with a blank that nothing fills. Raises `SettingsError`."""
    if name not in list_prompts():
        raise SettingsError(f"Unknown prompt {name!r}. {suggest(name, sorted(list_prompts()))}")
    template, blanks = Template(text), find_blanks(name)
    if not template.is_valid():
        raise SettingsError(f"Prompt {name!r} has a $ without a name. Write $$ for a dollar sign.")
    if unknown := sorted(set(template.get_identifiers()) - blanks):
        available = ", ".join(f"${blank}" for blank in sorted(blanks)) or "none"
        raise SettingsError(f"Prompt {name!r} has an unknown blank ${unknown[0]}. Available: {available}.")


@cache
def _read_prompt(folder: str, name: str) -> str:
    """Return a file's text. What a folder lacks is looked for in the one above."""
    path = FOLDER / folder / f"{name}.md"
    if folder and not path.is_file():
        return _read_prompt(folder.rpartition("/")[0], name)
    return path.read_text(encoding="utf-8").strip()


@cache
def _read_plain_prompt(folder: str, name: str) -> str:
    """Return a prompt without blanks. Each request needs about five, so they are made once."""
    return Template(_read_prompt(folder, name)).substitute()


def fill_prompt(name: str, folder: str, replaced: Mapping[str, str], /, **blanks: object) -> str:
    """Return a prompt with its blanks filled: the caller's own, else the dialect's, else the package's.

    An unfilled blank raises `KeyError`, which the package's tests would find.
    """
    if not blanks and name not in replaced:
        return _read_plain_prompt(folder, name)
    text = replaced[name] if name in replaced else _read_prompt(folder, name)
    return Template(text).substitute(blanks)
