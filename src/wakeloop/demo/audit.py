"""The demo: an audit of the reader's own files, offline."""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import unquote

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import PrivateAttr

from wakeloop.agent import create_todo_agent
from wakeloop.presets import preset
from wakeloop.testing.jobs import Call, PlainJob, Step
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.weak_model import WeakModel
from wakeloop.text.characters import is_visible, pluralize
from wakeloop.text.descriptions import describe
from wakeloop.tools.files import file_tools
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


PAGE = "wakeloop-report.html"  # the audit's thread, next to its report
REPORT_ITEM = f"Write {REPORT}"
HABITS = Knobs(stop=0.4, forget=0.5)
INTRODUCTION = """\
The model is a script that behaves like a weak model: it says "All done." too early and forgets items.
Each line "Auto-continuing" is a wake: items are open, so the graph asks the model again."""
SEED = 39  # several stops, never so many in a row that the audit would be given up


def request_text(root: Path) -> str:
    """Return the user's message that starts an audit of `root`."""
    name = quote_path(root.resolve().name or "/")
    return f"Audit the Python, Markdown and notebook files of the folder {name} and write a report, {REPORT}."


def demo_tools(root: Path) -> list[BaseTool]:
    """Return the file tools and `measure_file`, confined to `root`; listings leave out what it writes."""
    return [*file_tools(root, hidden=(REPORT, PAGE)), *audit_tools(root)]


def explain_missing_report(messages: Sequence[BaseMessage]) -> str:
    """Return why the report could not be written, "" if it was, or was not tried yet."""
    tried = [m for m in messages if isinstance(m, ToolMessage) and m.name == "write_file"]
    return tried[-1].text if tried and tried[-1].status == "error" else ""


def audit_job(root: Path, limit: int = 7) -> PlainJob:
    """Return the audit's steps: one for each file, and the report."""
    folder = ConfinedFolder(root)
    measured: dict[str, Measures | str] = {}
    steps = []
    for file in audit_files(root, limit):
        path = file.relative_to(folder.root).as_posix()
        try:
            measured[path] = measure_file(folder, path)
        except ToolException as error:
            measured[path] = str(error)
        steps.append(Step(f"Audit {path}", (Call("measure_file", {"path": path}),)))
    write = Call("write_file", {"path": REPORT, "content": render_report(measured)})
    return PlainJob((*steps, Step(REPORT_ITEM, (write,))))


def compare_with_plain_loop(root: Path, session: Mapping[str, Any], requests: int) -> str:
    """Run the same job without the loop, and return a sentence that compares the two.

    A plain loop ends with the first reply without tool calls: so does the graph without its wakes and guard.
    """
    plain = preset("wakeloop").model_copy(update={"auto_continue": False, "guard_retries": 0})
    agent = create_todo_agent(OfflineAuditor(root=root), demo_tools(root), settings=plain)
    ended = agent.invoke({"messages": [("user", request_text(root))]})["todo_session"]
    return (
        f"A plain loop stops at {ended['completed']} of {ended['items'] or session['items']} items. "
        f"Here: {session['completed']} of {session['items']}, with {pluralize(session['wakes'], 'wake')} "
        f"and {pluralize(requests, 'request')}."
    )


class OfflineAuditor(WeakModel):
    """A weak model that audits a folder offline; it is not a language model and can do nothing else.

    Its replies follow from the messages and the bound tools, so a killed run continues where it was. It stops
    early and forgets to close items on purpose. `delay` is how many seconds a reply takes.
    """

    name: str | None = "offline stand-in (not a language model)"
    root: Path
    delay: float = 0

    _audit: PlainJob | None = PrivateAttr(None)

    def __init__(self, root: Path, delay: float = 0, **fields: Any) -> None:
        super().__init__(None, SEED, HABITS, root=root, delay=delay, **fields)

    def _make_job(self, request: list[BaseMessage], functions: dict[str, Any]) -> PlainJob:  # noqa: ARG002
        # Measured once: the report must be the same call whenever it is looked for in the messages.
        if self._audit is None:
            self._audit = audit_job(self.root)
        return self._audit

    def _choose_step(self, request: list[BaseMessage]) -> AIMessage:
        time.sleep(self.delay)
        # What it counts is an estimate. Without a count, the graph estimates by itself and says so.
        return super()._choose_step(request).model_copy(update={"usage_metadata": None})
