"""Takes the pictures in README and docs: a thread's page, a notebook's cells, a terminal.

`make screenshots` retakes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import terminals
import watched
from chromium import PROGRAM, THEMES, WITHOUT, chromium
from lab import Lab, jupyter_lab
from pictures import FOLDER, Picture
from processes import Shell

KEPT = Path(__file__).parents[3] / "notebooks" / "04_watch_and_compare.ipynb"
SIZE = {"width": 1400, "height": 860}
LIST, TABLE, PLOT = 12, 14, 15  # cells of the saved notebook


def audit(folder: Path) -> Path:
    """The page that `wakeloop demo` writes."""
    words = ["demo", "--quiet", "--delay", "0.3", "--db", "audit.sqlite"]
    subprocess.run([sys.executable, "-m", "wakeloop", *words], check=True, cwd=folder)
    return folder / "wakeloop-demo" / "wakeloop-report.html"


def taken(browser: Any, file: Path, theme: str) -> Picture:
    """Take a picture of a thread's page in Chromium."""
    tab = browser.new_page(viewport=SIZE, color_scheme=theme)
    tab.goto(file.as_uri())
    dots = tab.screenshot()
    tab.close()
    return Picture(f"report-{theme}", dots)


def running(lab: Lab, folder: Path) -> Iterator[Picture]:
    """Take pictures of the panel during a run, which stops after a wake."""
    lab.open("watch.ipynb")
    lab.ran(0)
    lab.begin(watched.RUN)
    watched.let_continue(folder, "letters")
    lab.shows(watched.RUN, 'read(name="ships")')
    for theme in THEMES:
        lab.themed(theme)
        yield lab.picture(f"panel-{theme}", watched.RUN)


def compared(lab: Lab) -> Iterator[Picture]:
    """Take pictures of a list and a comparison in the saved notebook, without a kernel."""
    lab.open(KEPT.name, kernel=False)
    for theme in THEMES:
        lab.themed(theme)
        yield lab.picture(f"list-{theme}", LIST)
        yield lab.picture(f"compare-{theme}", TABLE, PLOT)


@contextmanager
def laboratory(browser: Any, folder: Path) -> Iterator[tuple[Lab, Path]]:
    """Open a JupyterLab on a folder of two notebooks: one to watch, and the saved one."""
    work = folder / "notebooks"
    work.mkdir()
    watched.written(work / "watch.ipynb")
    shutil.copy(KEPT, work)
    with jupyter_lab(work, folder / "jupyter") as url:
        yield Lab(browser, url), work


def main() -> None:
    if PROGRAM is None:
        sys.exit(WITHOUT)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        folder = Path(made)
        os.environ.update(HOME=made, XDG_CONFIG_HOME=made, XDG_DATA_HOME=made)
        page = audit(folder)
        for theme in THEMES:
            taken(browser, page, theme).keep()
        for play in (terminals.run, terminals.chat):
            (folder / play.__name__).mkdir()
            for name, picture in play(Shell(folder / play.__name__, folder / "threads.sqlite")):
                file = FOLDER / f"{name}.svg"
                if not file.exists() or terminals.words(file.read_text()) != terminals.words(picture):
                    file.write_text(picture)
        with laboratory(browser, folder) as (lab, work):
            for picture in (*running(lab, work), *compared(lab)):
                picture.keep()


if __name__ == "__main__":
    main()
