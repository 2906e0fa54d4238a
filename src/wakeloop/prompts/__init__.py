"""The prompts: Markdown files, filled by name."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

from wakeloop.errors import SettingsError
from wakeloop.text.wording import suggest

BLANKS: Mapping[str, frozenset[str]] = {
    "instructions": frozenset(),
    "automatic": frozenset(),
    "last_check": frozenset(),
    "nudge": frozenset(("open", "total", "list")),
    "nudge_again": frozenset(("open", "total", "list")),
    "unanswered_question": frozenset(),
    "still_open": frozenset(("list",)),
    "replace_or_continue": frozenset(),
    "continue_or_stop": frozenset(),
    "nudge_reply": frozenset(("peers",)),
    "second_look": frozenset(("items",)),
    "nudge_goal": frozenset(("missing",)),
    "nudge_goal_again": frozenset(("missing",)),
    "nudge_subagent": frozenset(("results",)),
    "not_come": frozenset(("waits",)),
    "work_over": frozenset(("waits",)),
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
    "audit": frozenset(("items",)),
    "nag": frozenset(("rounds", "open")),
    "repeating": frozenset(("rounds", "repeated")),
    "given_list": frozenset(("open", "total", "list")),
    "shown_again": frozenset(("list",)),
    "cleared_result": frozenset(("size", "call")),
    "cleared_rounds": frozenset(("rounds",)),
    "cut_result": frozenset(("shown", "size", "lines", "all", "tool")),
    "cut_result_by": frozenset(("shown", "size", "lines", "all", "tool", "arguments")),
    "changes": frozenset(("changes",)),
    "nothing_open": frozenset(),
    "outdated_list": frozenset(),
    "activate": frozenset(),
    "format": frozenset(),
    "format_again": frozenset(("problem",)),
    "cut_reply": frozenset(),
    "again_empty": frozenset(),
    "again_promised": frozenset(),
    "again_printed": frozenset(),
    "again_faked": frozenset(),
    "cut_call": frozenset(),
    "unanswered": frozenset(),
    "unanswered_todo": frozenset(),
    "not_run": frozenset(),
    "run_interrupted": frozenset(),
    "continued": frozenset(),
    "plan_edited": frozenset(("list",)),
    "plan_rejected": frozenset(("words",)),
    "held_edited": frozenset(),
    "held_rejected": frozenset(),
    "call_edited": frozenset(("args",)),
    "call_rejected": frozenset(("words",)),
}
"""Every prompt by name, with the blanks that it may have."""

FILLERS = ("no_text", "continued", "run_interrupted")
"""The prompts that are sent as the model's own words. A reply that equals one of them is empty."""
RESULTS = ("cut_call", "unanswered", "unanswered_todo", "not_run", "call_rejected")
"""The prompts that are sent as a tool's result."""


def check_prompt(name: str, text: str) -> None:
    """Refuse an unknown prompt, or one with a blank that nothing fills. Raises `SettingsError`."""
    if name not in BLANKS:
        raise SettingsError(f"Unknown prompt {name!r}. {suggest(name, BLANKS)}")
    template = Template(text)
    available = ", ".join(f"${blank}" for blank in sorted(BLANKS[name])) or "none"
    if not template.is_valid():
        raise SettingsError(f"Prompt {name!r} has a $ without a name. Write $$ for a dollar sign.")
    unknown = sorted(set(template.get_identifiers()) - BLANKS[name])
    if unknown:
        raise SettingsError(f"Prompt {name!r} has an unknown blank ${unknown[0]}. Available: {available}.")


@cache
def _read_prompt(folder: str, name: str) -> str:
    """Return a file's text. What a folder lacks is looked for in the one above."""
    path = files(__name__) / folder / f"{name}.md"
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
