"""Figures in a page: everything between two marks is replaced."""

from __future__ import annotations

import re
from pathlib import Path


def fill(page: Path, name: str, text: str) -> bool:
    """Put a table between `<!-- figures: NAME -->` and `<!-- end -->`; return whether the page has them."""
    place = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    new, count = place.subn(
        lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page.read_text(encoding="utf-8")
    )
    page.write_text(new, encoding="utf-8")
    return bool(count)
