"""The audit's tools, and which files there are to audit."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import unquote

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.demo.markdown import anchors
from wakeloop.demo.measure import (
    KINDS,
    Finding,
    Part,
    Source,
    count_lines,
    dead_links,
    longest,
    markers,
    source,
)
from wakeloop.text.characters import is_visible
from wakeloop.text.descriptions import describe
from wakeloop.tools.folder import ConfinedFolder, TooBigError, quote_path

REPORT = "wakeloop-report.md"
PATTERN = ", ".join(f"*{suffix}" for suffix in KINDS)
MOST_BYTES = 1_000_000
GENERATED = re.compile(r"^::: ", re.MULTILINE)  # API documentation that is filled in when a site is built
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")

AuditPath = Annotated[str, "Path of a Python, Markdown or notebook file, relative to the root folder."]


def auditable(name: str) -> bool:
    """Whether the audit takes a file of this name: a suffix it knows, and not its own report."""
    path = PurePosixPath(name)
    return path.suffix in KINDS and path.name != REPORT and is_visible(name)


def audit_files(root: Path, limit: int = 12) -> list[Path]:
    """The files below `root` that an audit takes: absolute, in the listing's order, at most `limit`."""
    folder = ConfinedFolder(root, frozenset({REPORT}))
    names, _ = folder.walk()
    return [folder.root / name for name in names if auditable(name)][:limit]


def audit_tools(root: Path) -> list[BaseTool]:
    """measure_lines, measure_longest, measure_markers, measure_links, below `root`; results are JSON."""
    tools = AuditTools(ConfinedFolder(root, frozenset({REPORT})))
    methods = (tools.measure_lines, tools.measure_longest, tools.measure_markers, tools.measure_links)
    return [StructuredTool.from_function(method) for method in methods]


@dataclass(frozen=True)
class AuditTools:
    """The tools as methods; what the model reads stands over each."""

    folder: ConfinedFolder

    @describe("Count the lines of a Python, Markdown or notebook file.")
    def measure_lines(self, path: AuditPath) -> str:
        return written(count_lines(self.source(path)))

    @describe("Find the longest function (Python), section (Markdown), cell or function (notebook).")
    def measure_longest(self, path: AuditPath) -> str:
        return written(longest(self.source(path)))

    @describe("Find open markers (TODO, FIXME, XXX, HACK) with their lines.")
    def measure_markers(self, path: AuditPath) -> str:
        return written(markers(self.source(path)))

    @describe("Find Markdown links and images that lead to files or headings missing in the folder.")
    def measure_links(self, path: AuditPath) -> str:
        return written(dead_links(self.source(path), Links(self.folder, path).why_dead))

    def source(self, path: str) -> Source:
        """The file's parts; one that is too big has none and says so."""
        kind = KINDS.get(PurePosixPath(path).suffix)
        if kind is None:
            raise ToolException(
                f"{quote_path(path)} is neither a Python (.py), Markdown (.md) nor notebook (.ipynb) file."
            )
        try:
            return source(path, self.folder.read(path, MOST_BYTES))
        except TooBigError:
            return Source(kind, (), f"it is bigger than {MOST_BYTES} bytes and was not measured")


@dataclass(frozen=True)
class Links:
    """Where the links of the file `at` lead inside the folder."""

    folder: ConfinedFolder
    at: str

    def why_dead(self, target: str, part: Part) -> str:
        """Why a link leads nowhere; "" if it does not, or leaves the folder and so is not followed."""
        if not target or target.startswith("/") or SCHEME.match(target):
            return ""
        way, _, anchor = target.partition("#")
        way = unquote(way.partition("?")[0])
        anchor = unquote(anchor).lower()
        if not way:
            return self.missing_anchor(anchor, part.text) if anchor and not part.cell else ""
        try:
            real = self.folder.resolve(str(PurePosixPath(self.at).parent / way))
        except ToolException:
            return ""
        if not os.path.exists(real):  # noqa: PTH110 - Path.exists raises for names too long
            return "no such file or folder"
        return self.missing_anchor(anchor, self.text_of(real)) if anchor and real.suffix == ".md" else ""

    def missing_anchor(self, anchor: str, text: str | None) -> str:
        """Why an anchor leads nowhere in a text; "" if it is there, or the text alone cannot tell."""
        if text is None or GENERATED.search(text):
            return ""
        return "" if anchor in anchors(text) | {"top"} else "no such heading"

    def text_of(self, real: Path) -> str | None:
        """The text of a linked Markdown file, None where it cannot be read."""
        try:
            parts = source("linked.md", self.folder.read(self.folder.relative_name(real), MOST_BYTES)).parts
        except ToolException:
            return None
        return parts[0].text if parts else ""


def written(finding: Finding) -> str:
    """A result as short JSON."""
    return json.dumps(finding, ensure_ascii=False)
