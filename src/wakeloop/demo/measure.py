"""Measures of one file: lines, longest part, markers, links."""

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, Literal

from wakeloop.demo.markdown import links, prose, sections

MARKER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
KINDS: dict[str, Literal["python", "markdown", "notebook"]] = {
    ".py": "python",
    ".md": "markdown",
    ".ipynb": "notebook",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PARSING = Lock()  # the filter of warnings is the process's: one thread at a time changes it
Finding = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A piece of a file in one language: all of it, or a notebook's cell (`cell` from 1)."""

    kind: Literal["python", "markdown"]
    text: str
    cell: int = 0

    def place(self, line: int) -> Finding:
        """Where a line of this part is."""
        return {"cell": self.cell, "line": line} if self.cell else {"line": line}


@dataclass(frozen=True)
class Source:
    """A file to measure: its parts, and what is odd about it in words ("" if nothing is)."""

    kind: Literal["python", "markdown", "notebook"]
    parts: tuple[Part, ...]
    odd: str = ""


def source(name: str, data: bytes) -> Source:
    """A file's parts from its name, which ends in a suffix of KINDS, and its bytes, whatever they are."""
    kind = KINDS[PurePosixPath(name).suffix.lower()]
    if b"\0" in data:
        return Source(kind, (), "it is binary, not text")
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        return Source(kind, (), "it is empty")
    odd = "it holds bytes that are not UTF-8" if "\ufffd" in text else ""
    if kind == "notebook":
        return notebook(text, odd)
    return Source(kind, (Part(kind, text),), odd)


def notebook(text: str, odd: str) -> Source:
    """The code and Markdown cells of a notebook."""
    try:
        document = json.loads(text)
        cells = document["cells"]
        parts = [part for number, cell in enumerate(cells, 1) if (part := cell_part(cell, number))]
    except (ValueError, RecursionError):
        return Source("notebook", (), "it is not valid JSON")
    except (KeyError, TypeError, AttributeError):
        return Source("notebook", (), "it has no list of cells as notebooks have")
    return Source("notebook", tuple(parts), odd if parts else "it has no code or Markdown cells")


def cell_part(cell: dict[str, Any], number: int) -> Part | None:
    """One cell's text; None for raw and empty cells."""
    lines = cell.get("source", "")
    text = lines if isinstance(lines, str) else "".join(lines)
    kind = cell.get("cell_type")
    if not text.strip() or kind not in ("code", "markdown"):
        return None
    return (
        Part("markdown", text, number) if kind == "markdown" else Part("python", without_magics(text), number)
    )


def without_magics(text: str) -> str:
    """A code cell with the notebook's own commands (%time, !ls) as `pass`, so that the rest is Python."""
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + "pass" if line.lstrip().startswith(("%", "!", "?")) else line
        for line in text.split("\n")
    )


def count_lines(of: Source) -> Finding:
    """The number of lines; for notebooks of their cells' lines, and the number of cells."""
    number = sum(len(part.text.removesuffix("\n").split("\n")) for part in of.parts)
    cells: Finding = {"cells": len(of.parts)} if of.kind == "notebook" else {}
    return {"lines": number} | cells | remark(of.odd)


def longest(of: Source) -> Finding:
    """The longest function (methods too), section, or cell: its kind, name, place and length in lines."""
    candidates: list[Finding] = []
    odd = [of.odd] if of.odd else []
    for part in of.parts:
        try:
            measured = list(functions(part.text) if part.kind == "python" else sections_of(part.text))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f"cell {part.cell}" if part.cell else "it"
            line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
            odd.append(f"{where} cannot be parsed as Python{line}")
            measured = []
        candidates += [
            {"kind": kind, "name": name[:120], **part.place(line), "length": length}
            for kind, name, line, length in measured
        ]
        if part.cell:
            length = len(part.text.removesuffix("\n").split("\n"))
            candidates.append(
                {"kind": "cell", "name": f"cell {part.cell}", **part.place(1), "length": length}
            )
    best = max(candidates, key=lambda one: one["length"], default=None)
    return {"longest": best} | remark("; ".join(odd[:3]))


def functions(code: str) -> Iterator[tuple[str, str, int, int]]:
    """Kind, dotted name, line and length of each function; raises where the code cannot be parsed."""
    with PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        waiting: list[tuple[ast.AST, str]] = [(ast.parse(code), "")]
    while waiting:
        node, prefix = waiting.pop()
        name = prefix
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}{node.name}."
            if isinstance(node, FUNCTIONS):
                yield "function", name[:-1], node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1
        waiting += [(child, name) for child in ast.iter_child_nodes(node)]


def sections_of(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Kind, heading, line and length of each section."""
    return (("section", heading.text, heading.line, length) for heading, length in sections(text))


def markers(of: Source, most: int = 20) -> Finding:
    """Open markers with their lines: in comments of Python, in prose of Markdown."""
    found: list[Finding] = []
    for part in of.parts:
        lines = part.text.split("\n")
        python = part.kind == "python"
        seen = lines if python else prose(part.text)
        for number, (line, visible) in enumerate(zip(lines, seen, strict=True), 1):
            start = len(line.partition("#")[0]) + 1 if python else 0
            found += [
                {**part.place(number), "marker": match[0], "text": line[match.start() :][:80].strip()}
                for match in MARKER.finditer(visible, start)
            ]
    return {"count": len(found), "markers": found[:most]} | remark(of.odd)


def dead_links(of: Source, why_dead: Callable[[str, Part], str], most: int = 20) -> Finding:
    """Links and images that lead nowhere; `why_dead(target, part)` says why, "" for good ones."""
    checked = 0
    dead: list[Finding] = []
    for part in of.parts:
        for line, target in links(part.text) if part.kind == "markdown" else ():
            checked += 1
            if why := why_dead(target, part):
                dead.append({**part.place(line), "link": target[:200], "why": why})
    return {"links": checked, "count": len(dead), "dead": dead[:most]} | remark(of.odd)


def remark(odd: str) -> Finding:
    """The note of a result, where there is something to say."""
    return {"note": odd} if odd else {}
