"""The journal of a run: one line for each finished cell."""

import fcntl
import gzip
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from wakeloop.bench.study import Cell
from wakeloop.errors import BenchError

Row = dict[str, Any]
OUTAGE = "outage"  # the key of a line that says why a cell has no result


@dataclass
class Journal:
    """A file of JSON lines that survives a kill: the first line names the study, each other one is a cell.

    A last line that a kill cut off is dropped. Each cell counts once. A line about an outage is not a result,
    so its cell is played again. Only one process may write at a time; its lock ends with the process.
    """

    path: Path
    head: Mapping[str, Any]
    rows: list[Row] = field(default_factory=list)
    done: set[Cell] = field(default_factory=set)
    begun: Mapping[str, Any] = field(default_factory=dict)  # the first line of the file
    _file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Open it for writing. Raises `BenchError` if it has another study, or another process writes it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            whole = file.read()
            head, self.rows = parse_journal(whole, self.path)
        except BlockingIOError:
            file.close()
            raise BenchError(
                f"Another run is writing {self.path}: wait for it, or use another --out."
            ) from None
        except BaseException:
            file.close()
            raise
        self._file = file
        if head is not None and head.get("hash") != self.head["hash"]:
            self.__exit__(None, None, None)
            raise BenchError(
                f"{self.path} holds the run of another study ({head.get('hash')}): "
                "a study cannot change once its run has begun. Use another --out."
            )
        file.truncate(whole.rfind(b"\n") + 1)
        if head is None:
            self._append(self.head)
        self.begun = self.head if head is None else head
        self.done = set(map(Cell.of, self.rows))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._file is not None:
            # A full disk was reported already; half a line is dropped the next time.
            with suppress(OSError):
                self._file.close()
            self._file = None

    def add(self, row: Row) -> None:
        """Write a finished cell to the disk, unless it is there already."""
        cell = Cell.of(row)
        if cell not in self.done:
            self._append(row)
            self.done.add(cell)
            self.rows.append(row)

    def note_outage(self, cell: Cell, said: str) -> None:
        """Write why a cell has no result."""
        self._append({**cell._asdict(), OUTAGE: said})

    def _append(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            raise BenchError(f"{self.path} is not open.")
        try:
            self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None


def read_journal(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Return the first line and the rows of a journal. Raises `BenchError` without one."""
    try:
        whole = path.read_bytes()
        if path.suffix == ".gz":
            whole = gzip.decompress(whole)
        head, rows = parse_journal(whole, path)
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror}.") from None
    if head is None:
        raise BenchError(f"{path} is empty: the run has not begun.")
    return head, rows


def parse_journal(whole: bytes, path: Path) -> tuple[dict[str, Any] | None, list[Row]]:
    """Return the first line and the rows. Text after the last line break was cut off, and is ignored.

    The first row of a cell counts. The last outage is added to the first line.
    """
    lines = whole[: whole.rfind(b"\n") + 1].splitlines()
    head: dict[str, Any] | None = None
    rows: dict[Cell, Row] = {}
    for number, line in enumerate(lines, 1):
        parsed = _parse_line(line, path, number)
        if head is None:
            head = parsed
        elif OUTAGE in parsed:
            head[OUTAGE] = parsed[OUTAGE]
        else:
            rows.setdefault(Cell.of(parsed), parsed)
    return head, list(rows.values())


def _parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        read_line = json.loads(line)
    except ValueError:
        read_line = None
    if not isinstance(read_line, dict) or (number > 1 and not read_line.keys() >= set(Cell._fields)):
        raise BenchError(f"{path}, line {number}: not a line of a run. Remove it, or use another --out.")
    return read_line
