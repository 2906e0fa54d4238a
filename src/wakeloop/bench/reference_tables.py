"""Tables of families and knobs for the documentation."""

from collections.abc import Iterator, Sequence

from wakeloop.bench.families import FAMILIES
from wakeloop.testing.knobs import Knobs


def families_table() -> str:
    """Return a table of all families: name, kind, what is to be done, lengths."""
    rows = []
    for name, family in FAMILIES.items():
        rows.append((f"`{name}`", family.kind, family.about, ", ".join(map(str, family.lengths))))
    return "\n".join(_markdown_rows(("family", "kind", "what is to be done", "parts"), rows))


def knobs_table() -> str:
    """Return a table of all knobs: name, default, description."""
    rows = []
    for name, field in Knobs.model_fields.items():
        rows.append((f"`{name}`", f"`{field.default!r}`", " ".join((field.description or "").split())))
    return "\n".join(_markdown_rows(("knob", "default", "habit"), rows))


def _markdown_rows(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |"
