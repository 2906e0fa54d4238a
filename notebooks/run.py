"""Runs the notebooks and compares with the outputs they keep; `--write` keeps the new ones."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

HERE = Path(__file__).parent


def execute(path: Path) -> nbformat.NotebookNode:
    """Run every cell in a fresh kernel, in the notebook's own folder."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(HERE)}}
    with TemporaryDirectory() as sockets:  # files, not ports
        over = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
        options = {
            "timeout": 120,
            "kernel_name": "python3",
            "coalesce_streams": True,
        }
        NotebookClient(notebook, resources=where, config=over, **options).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day: they differ at each run
    return notebook


def timeless(shown: Any) -> Any:
    """Outputs without what differs at each run: spans of time, the room they take, how a plot is drawn."""
    if isinstance(shown, list):
        return [timeless(part) for part in shown]
    if isinstance(shown, dict):
        return {key: "a plot" if key == "image/png" else timeless(part) for key, part in shown.items()}
    if not isinstance(shown, str):
        return shown
    if "<svg" in shown and "matplotlib" in shown:
        return "a plot"
    return re.sub(r" +", " ", re.sub(r"\b\d+\.\d+ s\b", "… s", shown))


def main() -> int:
    """0 if every notebook runs and shows what it kept."""
    failed = 0
    for path in sorted(HERE.glob("*.ipynb")):
        kept, new = nbformat.read(path, as_version=4), execute(path)
        if "--write" in sys.argv:
            new.metadata = kept.metadata
            nbformat.write(new, path)
        elif timeless([c.get("outputs") for c in new.cells]) != timeless(
            [c.get("outputs") for c in kept.cells]
        ):
            failed += 1
            print(f"{path.name}: other outputs than it keeps.", file=sys.stderr)
            print("Look at them, then keep them: python notebooks/run.py --write", file=sys.stderr)
            continue
        print(f"{path.name}: {len(new.cells)} cells, as kept")
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main())
