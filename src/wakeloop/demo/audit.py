"""The demo's audit: its files, measures and report."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import unquote

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.text.characters import is_visible, pluralize
from wakeloop.text.descriptions import describe
from wakeloop.tools.folder import ConfinedFolder, quote_path

REPORT = "wakeloop-report.md"
KINDS = (".py", ".md", ".ipynb")
MOST_BYTES = 1_000_000
MOST_FINDINGS = 20
LONGEST = 80  # characters of a finding
MARKER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b.*")
ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|/|#|$")  # another site, the site's root, this page


@dataclass(frozen=True)
class Measures:
    """What was found in a file: its lines, open markers and dead links, each with its line."""

    lines: int
    markers: tuple[str, ...] = ()
    dead_links: tuple[str, ...] = ()
    note: str = ""


def audit_files(root: Path, limit: int = 7) -> list[Path]:
    """Return at most `limit` files below `root` that an audit takes, as absolute paths."""
    folder = ConfinedFolder(root, frozenset({REPORT}))
    names, _ = folder.walk()
    files = []
    for name in names:
        if PurePosixPath(name).suffix in KINDS and PurePosixPath(name).name != REPORT and is_visible(name):
            files.append(folder.root / name)
    return files[:limit]


def audit_tools(root: Path) -> list[BaseTool]:
    """Return the tool `measure_file`, confined to `root`; its result is JSON."""
    tools = AuditTools(ConfinedFolder(root, frozenset({REPORT})))
    return [StructuredTool.from_function(tools.measure_file)]


@dataclass(frozen=True)
class AuditTools:
    """The audit's tool as a method, with the description that the model reads."""

    folder: ConfinedFolder

    @describe("Count lines, open markers (TODO, FIXME, XXX, HACK) and dead links of a file.")
    def measure_file(
        self, path: Annotated[str, "Path of a .py, .md or .ipynb file, relative to the root folder."]
    ) -> str:
        """Return the measures of a file as JSON."""
        if PurePosixPath(path).suffix not in KINDS:
            raise ToolException(f"{quote_path(path)} is not a .py, .md or .ipynb file.")
        return json.dumps(vars(measure_file(self.folder, path)), ensure_ascii=False)


def measure_file(folder: ConfinedFolder, path: str) -> Measures:
    """Measure a file. Raises ToolException if it cannot be read."""
    data = folder.read(path, MOST_BYTES)
    if b"\0" in data:
        return Measures(0, note="it is binary, not text")
    text = data.decode("utf-8", errors="replace")
    if path.endswith(".ipynb"):
        try:
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return Measures(0, note="it is not a notebook")
    lines = text.splitlines()
    found = [(number, MARKER.search(line)) for number, line in enumerate(lines, 1)]
    markers = [f"{number}: {match[0].strip()[:LONGEST]}" for number, match in found if match]
    dead = list(_dead_links(folder, path, text)) if path.endswith(".md") else []
    return Measures(len(lines), tuple(markers[:MOST_FINDINGS]), tuple(dead[:MOST_FINDINGS]))


def _dead_links(folder: ConfinedFolder, path: str, text: str) -> Iterator[str]:
    """Yield links and images that lead to no file of the folder; headings are not followed."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - of the extra `cli`

    for block in MarkdownIt().parse(text):
        for token in block.children or ():
            target = str(token.attrs.get("href") or token.attrs.get("src") or "")
            if ELSEWHERE.match(target) or not block.map:
                continue
            name = unquote(re.split(r"[#?]", target)[0])
            try:
                exists = folder.resolve(str(PurePosixPath(path).parent / name)).exists()
            except (ToolException, OSError, ValueError):
                continue  # outside the folder, or no path: nothing that can be said of it
            if not exists:
                yield f"{block.map[0] + 1}: {target[:LONGEST]}"


def render_report(measured: Mapping[str, Measures | str]) -> str:
    """Return the report as Markdown, from each file's measures, or the reason why it has none."""
    rows = ["| file | lines | open markers | dead links |", "|---|--:|--:|--:|"]
    findings = []
    total = 0
    for path, found in measured.items():
        if isinstance(found, str):
            findings.append(f"- {_code(path)}: {found}")
            continue
        total += found.lines
        rows.append(f"| {_code(path)} | {found.lines} | {len(found.markers)} | {len(found.dead_links)} |")
        findings += [f"- {_code(path)}: {found.note}"] if found.note else []
        findings += [f"- {_code(path)}, line {marker}" for marker in map(_code, found.markers)]
        findings += [f"- {_code(path)}, dead link in line {link}" for link in map(_code, found.dead_links)]
    totals = f"{pluralize(len(measured), 'file')}, {pluralize(total, 'line')}."
    listed = "\n".join(findings or ["None."])
    return f"# Audit of this folder\n\n{chr(10).join(rows)}\n\n## Findings\n\n{listed}\n\n{totals}\n"


def _code(text: str) -> str:
    """Return `text` as a code span that fits into a table's cell."""
    return f"`{text.replace('`', chr(39)).replace('|', '/')}`"
