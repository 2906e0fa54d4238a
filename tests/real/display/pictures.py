"""The pictures in README and docs: saved, read, compared."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "docs" / "screenshots"
ANEW = "make screenshots takes them anew: look at them"
GRID = 20  # pixels that become one: fonts and smoothing differ between machines


@dataclass(frozen=True)
class Picture:
    """What a browser shows and the words in it; a saved picture has both."""

    name: str
    dots: bytes
    words: str = ""

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.png"

    def keep(self) -> None:
        """Write the picture unless the saved one shows the same."""
        from PIL import Image, PngImagePlugin

        if self.file.exists() and len({*words_of(self)}) == 1 and apart(self) < 1:
            return
        told = PngImagePlugin.PngInfo()
        told.add_itxt("Description", self.words)
        Image.open(io.BytesIO(self.dots)).convert("RGB").save(self.file, optimize=True, pnginfo=told)


def words_of(picture: Picture) -> tuple[str, str]:
    """Return the words in the saved picture and in this one, without what differs between runs."""
    from PIL import Image

    kept = Image.open(picture.file).text.get("Description", "")
    return timeless(kept), timeless(picture.words)


def timeless(told: str) -> str:
    """Return a string without times and token counts, which change with the prompts."""
    return re.sub(r"\b\d[\d,]{2,}\b", "…", re.sub(r"\d+\.\d+ s\b", "… s", told))


def apart(picture: Picture) -> float:
    """Return how much the saved picture differs from this one at low resolution: 0 to 255."""
    from PIL import Image

    kept, now = (Image.open(source) for source in (picture.file, io.BytesIO(picture.dots)))
    size = (kept.width // GRID, kept.height // GRID)
    dots: Any = [one.convert("RGB").resize(size).tobytes() for one in (kept, now)]
    return sum(abs(a - b) for a, b in zip(*dots, strict=True)) / len(dots[0])
