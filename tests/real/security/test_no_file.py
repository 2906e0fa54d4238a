"""Anything but a regular file is left alone."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confined_folder import call, confining


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return confining(tmp_path)


@pytest.fixture
def odd(root: Path) -> Iterator[Path]:
    """A root with things that are not files."""
    os.mkfifo(root / "pipe")
    unix = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(root)  # a socket's path must be short
    try:
        unix.bind("socket")
    finally:
        os.chdir(here)
    with suppress(PermissionError, OSError):
        os.mknod(root / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    (root / "to-device").symlink_to("/dev/zero")
    (root / "to-pipe").symlink_to("pipe")
    yield root
    unix.close()


@pytest.mark.parametrize("path", ["pipe", "socket", "device", "to-device", "to-pipe"])
def test_anything_but_a_file_is_neither_read_nor_written_nor_waited_for(
    odd: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    real = os.open

    def seen(name: object, flags: int, *more: object, dir_fd: int | None = None) -> int:
        opened.append(name)
        return real(name, flags, *more, dir_fd=dir_fd)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", seen)
    assert call(odd, "read_file", path=path).startswith("refused: ")
    assert call(odd, "write_file", path=path, content="x").startswith("refused: ") or path == "device"
    assert call(odd, "search_files", query="x", path=path).startswith("refused: ")
    assert {"pipe", "socket", "device"} & set(opened) == set()
