"""The file tools: list, read, write, search, below one root."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.text.characters import is_visible, pluralize
from wakeloop.text.descriptions import describe
from wakeloop.tools.folder import ConfinedFolder, TooBigError, explain_os_errors, quote_path

FilePath = Annotated[str, "Path of a file, relative to the root folder."]
FolderPath = Annotated[str, "Path of a folder, relative to the root folder."]
Pattern = Annotated[str, "Names to include, such as *.py; several are separated by commas."]
Start = Annotated[int, "Number of the first one to show, from 1; used to go on where a result was cut."]


@dataclass(frozen=True)
class FileLimits:
    """How much the file tools take and give.

    Args:
        read: Bytes of the biggest file that is read or searched.
        write: Bytes of the biggest file that is written.
        result: Characters of one result; it says how to go on where it was cut.
        lines: Lines of a file that one result shows.
        entries: Files that one listing shows.
        hits: Hits that one search shows.
        scanned: Entries of folders that one listing or search looks at.
    """

    read: int = 5_000_000
    write: int = 1_000_000
    result: int = 30_000
    lines: int = 400
    entries: int = 200
    hits: int = 100
    scanned: int = 20_000


def file_tools(
    root: str | Path, *, limits: FileLimits | None = None, hidden: Collection[str] = ()
) -> list[BaseTool]:
    """Return the tools `list_files`, `read_file`, `write_file` and `search_files`, confined to a folder.

    Paths are resolved with `..` and links, and nothing outside is read or written; nothing is written into
    version control either. Nobody is asked. Listing and search leave out version control, environments and
    caches. Each tool refuses by a `ToolException` of one sentence, which an agent hands to its model.

    Args:
        root: The folder, which should exist; paths in calls and results are relative to it.
        limits: Sizes of files and results; by default those of `Limits()`.
        hidden: Names of files that listing and search leave out; they can be read all the same.

    Returns:
        Four LangChain tools.
    """
    bounds = limits or FileLimits()
    tools = FileTools(ConfinedFolder(Path(root), frozenset(hidden), bounds.scanned), bounds)
    methods = (tools.list_files, tools.read_file, tools.write_file, tools.search_files)
    return [StructuredTool.from_function(method) for method in methods]


@dataclass(frozen=True)
class FileTools:
    """The tools as methods; what the model reads stands over each."""

    folder: ConfinedFolder
    limits: FileLimits

    @describe(
        "List the files below a folder, one path a line, without version control, environments, caches."
    )
    def list_files(self, path: FolderPath = ".", pattern: Pattern = "*", start: Start = 1) -> str:
        names, whole = self.folder.walk(path)
        names = [name for name in names if matches_pattern(name, pattern)]
        more = (
            ""
            if whole
            else f" (the first {self.limits.scanned} entries were looked at; name a deeper folder)"
        )
        if not names:
            return f"No files in {quote_path(path)} match {quote_path(pattern)}{more}."
        lines = [name if is_visible(name) else ascii(name) for name in names]
        page = self.cut_page(lines, start, self.limits.entries, f"the {pluralize(len(names), 'file')}")
        last = start + len(page) - 1
        head = f"Files {start} to {last} of {len(names)} in {quote_path(path)}{more}:"
        return "\n".join([head, *page, *format_continuation(last, len(names), "files")])

    @describe("Read a text file, whole or some lines of it.")
    def read_file(
        self,
        path: FilePath,
        start: Start = 1,
        lines: Annotated[int, "How many lines to show at most."] = FileLimits.lines,
    ) -> str:
        text, odd = self.read_text(path)
        content = text.split("\n")
        if content[-1] == "":
            content.pop()
        if not content:
            return f"{quote_path(path)} is empty."
        if lines < 1:
            raise ToolException(f"lines must be at least 1, not {lines}.")
        page = self.cut_page(
            content,
            start,
            min(lines, self.limits.lines),
            f"the {pluralize(len(content), 'line')} of {quote_path(path)}",
        )
        last = start + len(page) - 1
        head = f"Lines {start} to {last} of {len(content)} of {quote_path(path)}{odd}:"
        return "\n".join([head, *page, *format_continuation(last, len(content), "lines")])

    @describe("Write a text file, replacing what it held; missing folders are made.")
    def write_file(
        self, path: FilePath, content: Annotated[str, "The whole new content of the file."]
    ) -> str:
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise ToolException(
                "The content holds half of a character pair, which no file can hold."
            ) from error
        if len(data) > self.limits.write:
            raise ToolException(
                f"The content has {len(data)} bytes, more than the {self.limits.write} that a file may have; "
                "write it as several files."
            )
        replaced = self.folder.write(path, data)
        return f"{'Replaced' if replaced else 'Wrote'} {quote_path(path)}: {pluralize(len(data), 'byte')}."

    @describe("Find a text in the files below a folder; each hit is path:line: the line.")
    def search_files(
        self,
        query: Annotated[str, "The text to look for, as it stands; upper and lower case count as the same."],
        path: Annotated[str, "A folder or a file, relative to the root folder."] = ".",
        pattern: Pattern = "*",
        start: Start = 1,
    ) -> str:
        if not query or "\n" in query:
            raise ToolException("query must be a text of one line that is not empty.")
        names, whole = self.search_candidates(path)
        hits: list[str] = []
        unread = 0
        wanted = start - 1 + self.limits.hits
        for name in (name for name in names if matches_pattern(name, pattern)):
            try:
                text, _ = self.read_text(name)
            except ToolException:
                unread += 1
                continue
            hits += find_hits(name, text, query.lower(), wanted + 1 - len(hits))
            if len(hits) > wanted:
                break
        unsearched = f"({pluralize(unread, 'file')} {'was' if unread == 1 else 'were'} not searched"
        notes = [f"{unsearched}: binary, too big or unreadable.)"] if unread else []
        if not whole:
            notes.append(
                f"(Only the first {self.limits.scanned} entries were looked at; name a deeper folder.)"
            )
        if not hits:
            return "\n".join([f"No line in {quote_path(path)} holds {quote_path(query)}.", *notes])
        page = self.cut_page(hits, start, self.limits.hits, f"the {pluralize(len(hits), 'hit')}")
        last = start + len(page) - 1
        return "\n".join(
            [
                f"Hits {start} to {last} of {quote_path(query)}:",
                *page,
                *format_continuation(last, len(hits), "hits"),
                *notes,
            ]
        )

    def search_candidates(self, path: str) -> tuple[list[str], bool]:
        """The names a search goes through: a file alone, or all below a folder."""
        with explain_os_errors(path):
            real = self.folder.resolve(path)
            return ([self.folder.relative_name(real)], True) if real.is_file() else self.folder.walk(path)

    def read_text(self, path: str) -> tuple[str, str]:
        """A file's text with plain line ends, and a remark where bytes were not UTF-8."""
        try:
            data = self.folder.read(path, self.limits.read)
        except TooBigError as error:
            raise ToolException(f"{error.args[0][:-1]}; search_files and read_file leave it out.") from error
        if b"\0" in data:
            raise ToolException(f"{quote_path(path)} is a binary file, not text.")
        text = data.decode("utf-8-sig", errors="replace")
        odd = " (bytes that are not UTF-8 show as \ufffd)" if "\ufffd" in text else ""
        return text.replace("\r\n", "\n").replace("\r", "\n"), odd

    def cut_page(self, lines: Sequence[str], start: int, most: int, whole: str) -> list[str]:
        """The lines from number `start` on that fit into one result: at least one, cut where need be."""
        if not 1 <= start <= len(lines):
            raise ToolException(f"start must be from 1 to {len(lines)} for {whole}, not {start}.")
        page: list[str] = []
        room = self.limits.result
        for line in lines[start - 1 : start - 1 + most]:
            if len(line) >= room:
                if not page:
                    page.append(f"{line[:room]}… (line cut: {len(line)} characters, {room} shown)")
                break
            page.append(line)
            room -= len(line) + 1
        return page


def matches_pattern(name: str, pattern: str) -> bool:
    """Whether a file's name or path fits one of the patterns."""
    candidates = (name.rsplit("/", 1)[-1], name, f"./{name}")
    return any(fnmatchcase(candidate, one.strip()) for one in pattern.split(",") for candidate in candidates)


def find_hits(name: str, text: str, query: str, most: int) -> list[str]:
    """The lines of a file that hold the query, as `path:line: text`."""
    numbered = enumerate(text.split("\n"), 1)
    found = (f"{name}:{number}: {line.strip()[:200]}" for number, line in numbered if query in line.lower())
    return list(islice(found, most))


def format_continuation(last: int, total: int, what: str) -> list[str]:
    """The line that says a result was cut, and how to go on."""
    return [f"(Cut here: more {what} follow; go on with start={last + 1}.)"] if last < total else []
