"""Writes the tables of the docs that follow from the package: `make tables`."""

from __future__ import annotations

from pathlib import Path

from wakeloop.loop.gates import GATES, OTHER_ENDINGS
from wakeloop.settings import PRESET_SETTINGS, LoopSettings

ROOT = Path(__file__).parents[1]


def endings_table() -> str:
    """Every gate in its order, then every other ending."""
    rows = ["| | reason | state | when |", "|---|---|---|---|"]
    rows += [f"| {n} | `{one.name}` | {one.state} | {one.meaning} |" for n, one in enumerate(GATES, 1)]
    rows += [f"| | `{one.name}` | {one.state} | {one.meaning} |" for one in OTHER_ENDINGS]
    return "\n".join(rows)


def settings_table(*, for_presets: bool = True) -> str:
    """Every setting with its default and its description, if wanted also those that only presets use."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in LoopSettings.model_fields.items():
        if name in PRESET_SETTINGS and not for_presets:
            continue
        default = field.get_default(call_default_factory=True)
        assert field.description, f"{name} has no line of documentation"
        rows.append(f"| `{name}` | `{default!r}` | {' '.join(field.description.split())} |")
    return "\n".join(rows)


def replace_table(page: Path, table: str) -> None:
    """Put a table in the place of the one that begins with the same line."""
    before, head, rest = page.read_text(encoding="utf-8").partition(table.partition("\n")[0])
    after = rest.partition("\n\n")[2]
    assert head, f"{page.name} has no such table"
    page.write_text(f"{before}{table}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    replace_table(ROOT / "docs" / "rules.md", endings_table())
    replace_table(ROOT / "README.md", settings_table(for_presets=False))
    replace_table(ROOT / "docs" / "settings.md", settings_table())
