"""Writes a text to a file, whole or not at all."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE

from wakeloop.cli.failures import CommandError, usage_error

STDOUT = Path("-")


def write_atomically(text: str, file: Path, *, force: bool = False) -> list[str]:
    """Write a text to a file, whole or not at all; one that is there stays, unless that is meant.

    Returns what is said of it: its name, and nothing of the output itself, `-` or by whatever name.
    """
    written = text.encode("utf-8", "replace")
    if is_stdout(file):
        sys.stdout.flush()
        sys.stdout.buffer.write(written)
        return []
    try:
        there = file.is_symlink() or file.exists()
        if file.exists() and not (file.is_file() or file.is_dir()):  # a device or a pipe
            file.write_bytes(written)
            return [str(file)]
        if there and not force:
            raise usage_error(
                f"The file {str(file)!r} is there already: name another with -o, or add --force."
            )
        place = file.resolve()
        beside = place.with_name(f".wakeloop-{os.getpid()}")
        try:
            beside.write_bytes(written)
            if place.exists():
                copy_owner_and_mode(place.stat(), beside)
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"The file {str(file)!r} cannot be written: {error.strerror}.") from None
    return [str(file)]


def is_stdout(file: Path) -> bool:
    """Whether a file is what this command writes to: replaced, it would lose what stands in it."""
    if file == STDOUT:
        return True
    with suppress(OSError, ValueError):  # nothing is there; no file is behind the output
        return os.path.samestat(file.stat(), os.fstat(sys.stdout.fileno()))
    return False


def copy_owner_and_mode(before: os.stat_result, file: Path) -> None:
    """Give a file the owner and the rights of the one that it replaces, as far as that is allowed."""
    with suppress(OSError, AttributeError):  # Windows has no owners
        os.chown(file, before.st_uid, before.st_gid)
    file.chmod(S_IMODE(before.st_mode))
