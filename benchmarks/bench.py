"""The suite: this package compared with a loop, handwritten graphs, and its peers.

`python benchmarks/bench.py` measures everything in twelve minutes, `--quick` a little of everything in one;
given names of parts, it measures only those. Figures are kept in build/bench.json: a part that is not
measured stays as it was, and the targets are judged on everything there. CPU time counts, agents take turns
inside one run, and only ratios mean something on another machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from parts import crowd, grid, page, plots, pool, reading, rounds, starting, summary, talk, targets

ROOT = Path(__file__).parents[1]
PARTS: dict[str, Any] = {
    "grid": grid,
    "reading": reading,
    "rounds": rounds,
    "starting": starting,
    "crowd": crowd,
    "pool": pool,
    "talk": talk,
}
PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "langchain-core", "langchain", "deepagents")


def versions() -> dict[str, str]:
    """Return the versions that were measured."""
    there = {name: version(name) for name in PACKAGES if find_spec(name.replace("-", "_")) or "-" in name}
    return {"python": platform.python_version(), **there}


def size_of(name: str, size: str) -> str:
    """Return the size of a part: `--targets` leaves out only something of the grid."""
    return "full" if size == "targets" and name != "grid" else size


def load_figures(file: Path, size: str) -> dict[str, Any]:
    """Return the previous figures, if they are for jobs of the same size."""
    found = json.loads(file.read_text()) if file.exists() else {}
    return found if found.get("size") == size else {"size": size}


def main() -> None:
    """Measure, save, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; without: all")
    parser.add_argument("--quick", dest="size", action="store_const", const="quick", default="full")
    parser.add_argument(
        "--targets", dest="size", action="store_const", const="targets", help="only their rows"
    )
    parser.add_argument("--tiny", dest="size", action="store_const", const="tiny", help="to see that it runs")
    parser.add_argument("--json", type=Path, default=ROOT / "build/bench.json", help="where figures are kept")
    parser.add_argument("--plots", type=Path, help="a folder for the plots, such as docs/plots")
    parser.add_argument("--page", type=Path, action="append", help="a page whose tables are to be these")
    parser.add_argument("--show", action="store_true", help="measure nothing: what is kept already")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {min(unknown)!r}; choose from {', '.join(PARTS)}")
    found = load_figures(options.json, "full" if options.size == "targets" else options.size)
    for name in () if options.show else options.parts or PARTS:
        start = time.monotonic()
        print(f"{name} …", file=sys.stderr, flush=True)
        found |= {name: PARTS[name].measure(size_of(name, options.size)), "versions": versions()}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    show(found, options.page or [])
    if options.plots and "grid" in found:
        print(*plots.draw(found["grid"], options.plots), sep="\n")


def show(found: dict[str, Any], shown: list[Path]) -> None:
    """Print every table, and put it into the pages that have a place for it."""
    _, middle, large = grid.SIZES[found["size"]]
    told = {name: part.tables(found[name]) for name, part in PARTS.items() if name in found}
    told["targets"] = targets.table(found, middle, large)
    told["summary"] = summary.table(found, middle, large)
    told["versions"] = ", ".join(f"{name} {number}" for name, number in found.get("versions", {}).items())
    for name, text in told.items():
        print(f"## {name}\n\n{text}\n")
        for each in shown:
            page.fill(each, name, text)


if __name__ == "__main__":
    main()
