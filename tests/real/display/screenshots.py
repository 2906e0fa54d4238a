"""Takes the pictures of a thread's page that README and docs show.

`python tests/real/display/screenshots.py` writes them anew.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from chromium import PROGRAM, WITHOUT, chromium, page

FOLDER = Path(__file__).parents[3] / "docs" / "screenshots"
SIZE = {"width": 1400, "height": 860}
THEMES = ("light", "dark")


def taken(browser: Any, file: Path, theme: str) -> bytes:
    """A page as Chromium shows it."""
    tab = browser.new_page(viewport=SIZE, color_scheme=theme)
    tab.goto(file.as_uri())
    picture: bytes = tab.screenshot()
    tab.close()
    return picture


def main() -> None:
    if PROGRAM is None:
        sys.exit(WITHOUT)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder) / "report.html"
        file.write_text(page(), encoding="utf-8")
        for theme in THEMES:
            (FOLDER / f"report-{theme}.png").write_bytes(taken(browser, file, theme))


if __name__ == "__main__":
    main()
