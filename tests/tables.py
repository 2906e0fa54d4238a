"""Writes the tables of the docs that are derived from the package: `make tables`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from wakeloop.loop.case import Case
from wakeloop.loop.gates import ENDINGS, GATES, OTHER_ENDINGS, Gate, choose_exit_code
from wakeloop.loop.ruling import rule
from wakeloop.settings import LoopSettings

ROOT = Path(__file__).parents[1]


def endings_table() -> str:
    """List every gate in order, then every other ending; the page itself says when each one happens."""
    head = ["| | reason | state | when |", "|---|---|---|---|"]
    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    listed = page.partition("\n".join(head))[2].partition("\n\n")[0].strip().splitlines()
    words = [row.split(" | ", 3)[3] for row in listed]
    rows = []
    for place, (one, when) in enumerate(zip((*GATES, *OTHER_ENDINGS), words, strict=True), 1):
        number = f" {place}" if isinstance(one, Gate) else ""
        rows.append(f"|{number} | `{one.name}` | {one.state} | {when}")
    return "\n".join([*head, *rows])


LISTS: dict[str, dict[str, Any]] = {
    "open items": {"open": 1},
    "nothing open, not written": {"open": 0},
    "nothing open, written": {"open": 0, "wrote": True},
    "nothing open, one given up": {"open": 0, "wrote": True, "gave_up": True},
}
SITUATIONS: dict[str, dict[str, Any]] = {
    "nothing else": {},
    "a reply is owed": {"owed": True},
    "it waits for somebody": {"waiting": True},
    "`auto_continue` is off": {"settings": LoopSettings(auto_continue=False)},
    "a drain was requested": {"drained": True},
    "few supersteps are left": {"steps_left": 4},
    "a budget is spent": {"spent_budget": "token_budget", "reported": True},
    "the wakes are spent": {"wakes": 25, "retries": 1},
    "the wakes made no progress": {"idle_wakes": 5, "retries": 1},
    "the rounds go in circles": {"end": "looping", "retries": 1},
    "the model refused": {"end": "refused"},
}


def truth_table() -> str:
    """List what follows a turn's end, by list and situation, with the exit code, after all corrections."""
    rows = ["| | " + " | ".join(LISTS) + " |", "|---|" + "---|" * len(LISTS)]
    for words, situation in SITUATIONS.items():
        cells = []
        for listed in LISTS.values():
            case = Case(**{"settings": LoopSettings(), **situation, **listed})
            ruling = rule(case)
            code = (
                f" ({choose_exit_code({'reason': ruling, 'open': case.open}):d})" if ruling in ENDINGS else ""
            )
            cells.append(f"`{ruling}`{code}")
        rows.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(rows)


def exit_code_table() -> str:
    """List the exit code of every ending: with open items, without, and when no item passed the verifier."""
    rows = ["| reason | open items | nothing open | no item passed `verify` |", "|---|---|---|---|"]
    for one in ENDINGS.values():
        with_open: Any = f"{one.exit_codes[0]:d}"
        if one.name in ("blocked", "settled", "answered"):
            with_open = ""  # they need a list without open items
        code = choose_exit_code({"reason": one.name, "open": 0, "verified": False})
        rows.append(f"| `{one.name}` | {with_open} | {one.exit_codes[1]:d} | {code:d} |")
    return "\n".join(rows)


def settings_table() -> str:
    """List every setting with its default and its description."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in LoopSettings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        assert field.description, f"{name} has no line of documentation"
        meaning = " ".join(field.description.split())
        if get_origin(field.annotation) is Literal:
            others = [f"`{value!r}`" for value in get_args(field.annotation) if value != default]
            meaning += f" Or: {', '.join(others)}."
        rows.append(f"| `{name}` | `{default!r}` | {meaning} |")
    return "\n".join(rows)


def replace_table(page: Path, table: str) -> None:
    """Replace the table that begins with the same line."""
    before, head, rest = page.read_text(encoding="utf-8").partition(table.partition("\n")[0])
    after = rest.partition("\n\n")[2]
    assert head, f"{page.name} has no such table"
    page.write_text(f"{before}{table}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    for table in (endings_table(), truth_table(), exit_code_table()):
        replace_table(ROOT / "docs" / "rules.md", table)
    replace_table(ROOT / "docs" / "settings.md", settings_table())
