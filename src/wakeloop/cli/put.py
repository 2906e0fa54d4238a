"""Writes a text to a file, whole or not at all."""

import os
from pathlib import Path

from wakeloop.cli.failures import CommandError, usage


def put(text: str, file: Path, *, force: bool = False, hint: str = "name another") -> str:
    """Write a text to a file, whole or not at all; one that is there stays, unless that is meant."""
    try:
        there = file.is_symlink() or file.exists()
        if there and not force:
            raise usage(f"The file {str(file)!r} is there already: {hint}.")
        if there and not file.is_file():  # a device; a folder says what it is
            file.write_text(text, encoding="utf-8")
            return str(file)
        place = file.resolve()
        beside = place.with_name(f".{place.name[:100]}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"The file {str(file)!r} cannot be written: {error.strerror}.") from None
    return str(file)
