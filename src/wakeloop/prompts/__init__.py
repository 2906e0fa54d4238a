"""The words that the model reads: .md files, filled by name."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

from wakeloop.errors import SettingsError

BLANKS: Mapping[str, frozenset[str]] = {
    "instructions": frozenset(),
    "last_check": frozenset(),
    "nudge": frozenset(("open", "total", "list")),
    "nudge_reply": frozenset(("peers",)),
    "nudge_subagent": frozenset(("results",)),
    "no_text": frozenset(),
    "subagent_early": frozenset(("text", "open", "reason")),
    "failed": frozenset(("problem",)),
    "more": frozenset(("hidden", "open", "blocked")),
    "cut_text": frozenset(),
    "correction": frozenset(("open", "list")),
    "looping": frozenset(("rounds", "repeated", "open", "list")),
    "explain": frozenset(("open", "list")),
    "report": frozenset(("open", "list")),
    "no_list": frozenset(),
    "nag": frozenset(("rounds", "open")),
    "repeating": frozenset(("rounds", "repeated")),
    "given_list": frozenset(("open", "total", "list")),
    "shown_again": frozenset(("list",)),
    "activate": frozenset(),
    "format": frozenset(),
    "format_again": frozenset(("problem",)),
    "cut_reply": frozenset(),
    "cut_call": frozenset(),
    "unanswered": frozenset(),
    "unanswered_todo": frozenset(),
    "not_run": frozenset(),
    "run_interrupted": frozenset(),
    "empty_reply": frozenset(),
    "plan_edited": frozenset(("list",)),
    "plan_rejected": frozenset(("words",)),
    "held_edited": frozenset(),
    "held_rejected": frozenset(),
    "call_edited": frozenset(("args",)),
    "call_rejected": frozenset(("words",)),
}
"""Every text by name, with the blanks that it may leave to be filled."""


def check_prompt(name: str, text: str) -> None:
    """Refuse a replacement for a text that is not there, or with a blank that nothing fills."""
    if name not in BLANKS:
        raise SettingsError(f"There is no prompt {name!r}; there are {', '.join(BLANKS)}.")
    template = Template(text)
    if not template.is_valid() or (wrong := sorted(set(template.get_identifiers()) - BLANKS[name])):
        allowed = ", ".join(f"${blank}" for blank in sorted(BLANKS[name])) or "none"
        bad = f"has the blank ${wrong[0]}" if template.is_valid() else "has a $ that is no blank (write $$)"
        raise SettingsError(f"The prompt {name!r} {bad}; allowed are: {allowed}.")


@cache
def _read_prompt(dialect: str, name: str) -> str:
    path = files(__name__) / dialect / f"{name}.md"
    if dialect and not path.is_file():
        return _read_prompt(dialect.rpartition("/")[0], name)
    return path.read_text(encoding="utf-8").strip()


@cache
def _read_plain_prompt(dialect: str, name: str) -> str:
    """Return a text without blanks; five are asked for in each request."""
    return Template(_read_prompt(dialect, name)).substitute()


def fill_prompt(name: str, dialect: str, replaced: Mapping[str, str], /, **blanks: object) -> str:
    """Return a text with its blanks filled: the caller's own, else the dialect's, else the package's.

    An unfilled blank raises `KeyError`: a fault of the package, found by its tests.
    """
    if not blanks and name not in replaced:
        return _read_plain_prompt(dialect, name)
    text = replaced[name] if name in replaced else _read_prompt(dialect, name)
    return Template(text).substitute(blanks)
