"""The journal of a run: one line a finished cell."""

import fcntl
import gzip
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from wakeloop.bench.plan import Cell
from wakeloop.errors import BenchError

Row = dict[str, Any]
OUTAGE = "outage"  # the key of a line that tells why a cell came to nothing


@dataclass
class Journal:
    """A file of JSON lines that survives a kill: its first line names the study, each further one is a cell.

    A last line that a kill cut off is dropped. A cell stands once; a line that tells of an outage is none,
    and its cell is played again. One process at a time may write, and the lock falls with it.
    """

    path: Path
    head: Mapping[str, Any]
    rows: list[Row] = field(default_factory=list)
    done: set[Cell] = field(default_factory=set)
    begun: Mapping[str, Any] = field(default_factory=dict)  # the head that stands there
    _file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Open it for writing. Raises `BenchError` where it is of another study, or is being written."""
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
        self.done = {Cell.of(row) for row in self.rows}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(
                OSError
            ):  # half a line that found no room: it was told, and is dropped the next time
                self._file.close()
            self._file = None

    def add(self, row: Row) -> None:
        """Write a finished cell, to the disk; one that is there already changes nothing."""
        cell = Cell.of(row)
        if cell not in self.done:
            self._append(row)
            self.done.add(cell)
            self.rows.append(row)

    def note_outage(self, cell: Cell, said: str) -> None:
        """Note why a cell came to nothing."""
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
    """Return the first line and the rows of a journal. Raises `BenchError` where there is none."""
    try:
        whole = path.read_bytes()
        head, rows = parse_journal(gzip.decompress(whole) if path.suffix == ".gz" else whole, path)
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror}.") from None
    if head is None:
        raise BenchError(f"{path} is empty: the run has not begun.")
    return head, rows


def parse_journal(whole: bytes, path: Path) -> tuple[dict[str, Any] | None, list[Row]]:
    """Read the lines; what stands behind the last line's end was cut off. Of a cell the first row counts.

    Of outages the last is kept, in the head.
    """
    lines = whole[: whole.rfind(b"\n") + 1].splitlines()
    read_lines = [_parse_line(line, path, number) for number, line in enumerate(lines, 1)]
    if not read_lines:
        return None, []
    outages = [line[OUTAGE] for line in read_lines[1:] if OUTAGE in line]
    rows = first_rows(line for line in read_lines[1:] if OUTAGE not in line)
    return read_lines[0] | ({OUTAGE: outages[-1]} if outages else {}), rows


def first_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the first row of each cell."""
    return list({Cell.of(row): row for row in reversed(list(rows))}.values())[::-1]


def _parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        read_line = json.loads(line)
    except ValueError:
        read_line = None
    if not isinstance(read_line, dict) or (number > 1 and not read_line.keys() >= set(Cell._fields)):
        raise BenchError(f"{path}, line {number}: not a line of a run. Remove it, or use another --out.")
    return read_line
