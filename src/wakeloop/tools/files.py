"""Tools that list, read, write and search files."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.errors import ArgumentError
from wakeloop.text.characters import is_visible, pluralize
from wakeloop.text.descriptions import describe
from wakeloop.text.wording import describe_type
from wakeloop.tools.folder import (
    ConfinedFolder,
    TooBigError,
    check_number,
    explain_os_errors,
    quote_path,
    resolve_root,
)

FilePath = Annotated[str, "Path of a file, relative to the root folder."]
FolderPath = Annotated[str, "Path of a folder, relative to the root folder."]
Pattern = Annotated[str, "Names to include, such as *.py; separate several with commas."]
Start = Annotated[int, "Number of the first one to show, from 1; use it to continue where a result was cut."]

MAX_PATTERN = 1_000  # characters


@dataclass(frozen=True)
class FileLimits:
    """Limits of the file tools.

    Args:
        read: Size of the largest file that is read or searched, in bytes.
        write: Size of the largest file that is written, in bytes.
        result: Length of one result in characters. A result that is cut says how to continue.
        lines: Lines of a file per result.
        entries: Files per listing.
        hits: Hits per search.
        scanned: Folder entries that one listing or search looks at.

    Example:
        >>> from wakeloop.tools import FileLimits
        >>> FileLimits(lines=50).lines
        50
    """

    read: int = 5_000_000
    write: int = 1_000_000
    result: int = 30_000
    lines: int = 400
    entries: int = 200
    hits: int = 100
    scanned: int = 20_000

    def __post_init__(self) -> None:
        for name, given in vars(self).items():
            check_number(name, given)


def file_tools(
    root: str | Path,
    *,
    limits: FileLimits | None = None,
    hidden: Collection[str] = (),
    protected: Collection[Path] = (),
) -> list[BaseTool]:
    """Return the tools `list_files`, `read_file`, `write_file` and `search_files`, confined to a folder.

    Paths are resolved, with `..` and links, and nothing outside the folder is read or written. Nothing is
    written to version control either. The tools do not ask a person. Listings and searches skip version
    control, environments and caches. Errors are a `ToolException` with one sentence, which an agent passes to
    its model.

    Args:
        root: The folder, which should exist. Paths in calls and results are relative to it.
        limits: Sizes of files and results. Default: `FileLimits()`.
        hidden: Names of files that listings and searches skip. They can still be read.
        protected: Resolved paths of files and folders that are never written, such as the code of your tools.

    Returns:
        Four LangChain tools.

    Example:
        >>> from wakeloop.tools import file_tools
        >>> [tool.name for tool in file_tools(".")]
        ['list_files', 'read_file', 'write_file', 'search_files']
    """
    bounds = limits or FileLimits()
    if not isinstance(bounds, FileLimits):
        raise ArgumentError(f"`limits` must be FileLimits(…), got {describe_type(limits)}.")
    if isinstance(hidden, str):  # its characters would be names
        raise ArgumentError(f"`hidden` must be names of files, as in [{hidden!r}], got {hidden!r}.")
    tools = FileTools(
        ConfinedFolder(resolve_root(root), frozenset(hidden), bounds.scanned, protected), bounds
    )
    methods = (tools.list_files, tools.read_file, tools.write_file, tools.search_files)
    return [StructuredTool.from_function(method) for method in methods]


@dataclass(frozen=True)
class FileTools:
    """The tools as methods. The model reads the text in the decorator."""

    folder: ConfinedFolder
    limits: FileLimits

    @describe(
        "List the files below a folder, one path per line, without version control, environments, caches."
    )
    def list_files(self, path: FolderPath = ".", pattern: Pattern = "*", start: Start = 1) -> str:
        matches = compile_patterns(pattern)
        names, whole = self.folder.walk(path)
        names = [name for name in names if matches(name)]
        more = ""
        if not whole:
            more = f" (only the first {self.limits.scanned} entries were looked at; name a deeper folder)"
        if not names:
            return f"No files in {quote_path(path)} match {quote_path(pattern)}{more}."
        lines = [show_name(name) for name in names]
        where = f"of {len(names)} in {quote_path(path)}{more}"
        return self.show_page("file", lines, start, self.limits.entries, where)

    @describe("Read a text file, or some of its lines.")
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
        where = f"of {len(content)} of {quote_path(path)}{odd}"
        whole = f" of {quote_path(path)}"
        return self.show_page("line", content, start, min(lines, self.limits.lines), where, whole)

    @describe("Write a text file, replacing its content; missing folders are created.")
    def write_file(
        self, path: FilePath, content: Annotated[str, "The whole new content of the file."]
    ) -> str:
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise ToolException(
                "The content contains a lone surrogate, which UTF-8 cannot encode."
            ) from error
        if len(data) > self.limits.write:
            raise ToolException(
                f"The content has {len(data)} bytes, more than the {self.limits.write} that a file may have; "
                "write it as several files."
            )
        replaced = self.folder.write(path, data)
        return f"{'Replaced' if replaced else 'Wrote'} {quote_path(path)}: {pluralize(len(data), 'byte')}."

    @describe("Search the files below a folder for text; each hit is path:line: the line.")
    def search_files(
        self,
        query: Annotated[str, "The text to look for, not a pattern; case is ignored."],
        path: Annotated[str, "A folder or a file, relative to the root folder."] = ".",
        pattern: Pattern = "*",
        start: Start = 1,
    ) -> str:
        if not query or "\n" in query:
            raise ToolException("query must be one line of text and not empty.")
        matches = compile_patterns(pattern)
        names, whole = self.search_candidates(path)
        hits: list[str] = []
        unread = 0
        wanted = max(start, 1) - 1 + self.limits.hits
        for name in names:
            if not matches(name):
                continue
            try:
                text, _ = self.read_text(name)
            except ToolException:
                unread += 1
                continue
            hits += find_hits(name, text, query.lower(), wanted + 1 - len(hits))
            if len(hits) > wanted:
                break
        notes: list[str] = []
        if unread:
            were = "was" if unread == 1 else "were"
            skipped = f"{pluralize(unread, 'file')} {were} not searched"
            notes.append(f"({skipped}: binary, too big or unreadable.)")
        if not whole:
            notes.append(
                f"(Only the first {self.limits.scanned} entries were looked at; name a deeper folder.)"
            )
        if not hits:
            return "\n".join([f"No line in {quote_path(path)} contains {quote_path(query)}.", *notes])
        shown = self.show_page("hit", hits, start, self.limits.hits, f"of {quote_path(query)}")
        return "\n".join([shown, *notes])

    def search_candidates(self, path: str) -> tuple[list[str], bool]:
        """Return the names of the files to search, and whether these are all."""
        with explain_os_errors(path):
            real = self.folder.resolve(path)
            return ([self.folder.relative_name(real)], True) if real.is_file() else self.folder.walk(path)

    def read_text(self, path: str) -> tuple[str, str]:
        """Return a file's text with plain line ends, and a note if some bytes were not UTF-8."""
        try:
            data = self.folder.read(path, self.limits.read)
        except TooBigError as error:
            raise ToolException(f"{error.args[0][:-1]}; search_files and read_file leave it out.") from error
        if b"\0" in data:
            raise ToolException(f"{quote_path(path)} is a binary file, not text.")
        text = data.decode("utf-8-sig", errors="replace")
        odd = " (bytes that are not UTF-8 show as \ufffd)" if "\ufffd" in text else ""
        return text.replace("\r\n", "\n").replace("\r", "\n"), odd

    def show_page(
        self, what: str, lines: Sequence[str], start: int, most: int, where: str, whole: str = ""
    ) -> str:
        """Return the lines from number `start` that fit into one result: at least one, cut if necessary.

        The line above them says which ones they are, the one below how to continue.
        """
        if not 1 <= start <= len(lines):
            all_lines = f"{pluralize(len(lines), what)}{whole}"
            raise ToolException(f"start must be from 1 to {len(lines)} for the {all_lines}, not {start}.")
        page: list[str] = []
        room = self.limits.result
        for line in lines[start - 1 : start - 1 + most]:
            if len(line) >= room:
                if not page:
                    page.append(f"{line[:room]}… (line cut: {len(line)} characters, {room} shown)")
                break
            page.append(line)
            room -= len(line) + 1
        last = start + len(page) - 1
        if last < len(lines):
            page.append(f"(Cut here: more {what}s follow; continue with start={last + 1}.)")
        return "\n".join([f"{what.capitalize()}s {start} to {last} {where}:", *page])


def compile_patterns(pattern: str) -> Callable[[str], bool]:
    """Return a test whether a file's name or path matches one of the patterns.

    Raises `ToolException` for a pattern of more than 1,000 characters, which would take minutes.
    """
    if len(pattern) > MAX_PATTERN:
        raise ToolException(f"pattern has {len(pattern):,} characters; at most {MAX_PATTERN:,} are allowed.")
    tests = [re.compile(translate(one.strip())).match for one in pattern.split(",")]

    def matches(name: str) -> bool:
        candidates = (name.rsplit("/", 1)[-1], name, f"./{name}")
        return any(test(candidate) for test in tests for candidate in candidates)

    return matches


def show_name(name: str) -> str:
    """Return a file's name for a line of its own: escaped if it has characters that steer a terminal."""
    return name if is_visible(name) else ascii(name)


def find_hits(name: str, text: str, query: str, most: int) -> list[str]:
    """Return the lines of a file that contain the query, as `path:line: text`."""
    hits: list[str] = []
    shown = show_name(name)
    for number, line in enumerate(text.split("\n"), 1):
        if len(hits) >= most:
            break
        if query in line.lower():
            hits.append(f"{shown}:{number}: {line.strip()[:200]}")
    return hits
