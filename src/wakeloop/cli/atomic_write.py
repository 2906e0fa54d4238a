"""Atomic file writes."""

import sys
from pathlib import Path
from secrets import token_hex
from shutil import copymode

from wakeloop.cli.failures import CommandError, usage_error

STDOUT = Path("-")


def write_atomically(text: str, file: Path, *, force: bool = False) -> list[str]:
    """Write text to a file, completely or not at all; overwrite an existing file only with `force`.

    Returns the lines to print: the file's name, or nothing when the file is stdout (`-`).
    """
    data = text.encode("utf-8", "replace")
    if file == STDOUT:
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
                copymode(target, temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = "its folder does not exist" if isinstance(error, FileNotFoundError) else error.strerror
        raise CommandError(f"Cannot write the file {str(file)!r}: {reason}.") from None
    return [str(file)]
