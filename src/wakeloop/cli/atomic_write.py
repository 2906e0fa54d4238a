"""Atomic file writes."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE

from wakeloop.cli.failures import CommandError, usage_error

STDOUT = Path("-")


def write_atomically(text: str, file: Path, *, force: bool = False) -> list[str]:
    """Write text to a file, completely or not at all; overwrite an existing file only with `force`.

    Returns the lines to print: the file's name, or nothing when the file is stdout (`-` or any other name
    of it).
    """
    data = text.encode("utf-8", "replace")
    if is_stdout(file):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return []
    try:
        exists = file.is_symlink() or file.exists()
        if file.exists() and not (file.is_file() or file.is_dir()):  # a device or a pipe
            file.write_bytes(data)
            return [str(file)]
        if exists and not force:
            raise usage_error(
                f"The file {str(file)!r} already exists. Name another one with -o, or add --force."
            )
        target = file.resolve()  # a link stays, and the file that it points to is replaced
        temporary = target.with_name(f".wakeloop-{token_hex(8)}")
        try:
            with temporary.open("xb") as new:  # a file or link that is already there is never written through
                new.write(data)
            if target.exists():
                copy_owner_and_mode(target.stat(), temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"Cannot write the file {str(file)!r}: {error.strerror}.") from None
    return [str(file)]


def is_stdout(file: Path) -> bool:
    """Whether a file is the stdout of this process, which must not be replaced."""
    if file == STDOUT:
        return True
    with suppress(OSError, ValueError):  # the file does not exist, or stdout is not a file
        return os.path.samestat(file.stat(), os.fstat(sys.stdout.fileno()))
    return False


def copy_owner_and_mode(old: os.stat_result, file: Path) -> None:
    """Give a file the owner and the mode of the file that it replaces, as far as allowed."""
    with suppress(OSError):
        os.chown(file, old.st_uid, old.st_gid)
    file.chmod(S_IMODE(old.st_mode))
