"""Families and knobs as tables, for the page about them."""

from collections.abc import Iterator, Sequence

from wakeloop.bench.families import FAMILIES
from wakeloop.testing.knobs import Knobs


def families_table() -> str:
    """Every family: its name, what it is there to show, what is to be done, its lengths."""
    rows = (
        (f"`{name}`", family.kind, family.about, ", ".join(map(str, family.lengths)))
        for name, family in FAMILIES.items()
    )
    return "\n".join(_markdown_rows(("family", "kind", "what is to be done", "parts"), rows))


def knobs_table() -> str:
    """Every knob: its name, its default, its line of documentation."""
    rows = (
        (f"`{name}`", f"`{field.default!r}`", " ".join((field.description or "").split()))
        for name, field in Knobs.model_fields.items()
    )
    return "\n".join(_markdown_rows(("knob", "default", "habit"), rows))


def _markdown_rows(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |"
