"""Access to a folder that no path, link or race leads out of."""

import os
import secrets
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from langchain_core.tools import ToolException

from wakeloop.errors import ArgumentError
from wakeloop.text.characters import is_visible, shorten
from wakeloop.text.wording import describe_type

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})
SKIPPED = VERSION_CONTROL | frozenset(
    {".venv", "venv", "node_modules", "site-packages", "__pycache__", ".cache", ".eggs", ".hypothesis"}
    | {".ipynb_checkpoints", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox"}
)
# a folder with one of these is an environment or a cache
SKIP_SIGNS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
LONGEST_NAME = 160
# NONBLOCK: opening a fifo must not wait for a writer
ANY_LINK_REFUSED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@cache
def system_devices() -> frozenset[int]:
    """Return the devices of /proc and /sys, whose files show the system's state, and keys in some of them."""
    found = set()
    for path in ("/proc", "/sys"):
        with suppress(OSError):
            found.add(Path(path).stat().st_dev)
    return frozenset(found - {Path("/").stat().st_dev})


class TooBigError(ToolException):
    """A file is larger than the limit; `args[0]` is the sentence."""


def quote_path(path: object) -> str:
    """Return a path for a sentence: quoted, on one line, and not longer than a line."""
    text = f"'{path}'" if is_visible(str(path)) else ascii(str(path))
    return text if len(text) <= LONGEST_NAME else f"{text[:120]}…{text[-30:]}"


@contextmanager
def explain_os_errors(path: str) -> Iterator[None]:
    """Turn the system's errors about a path into one sentence."""
    try:
        yield
    except OSError as error:
        raise ToolException(_describe_os_error(quote_path(path), error)) from error


def _describe_os_error(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"There is no {path} in the folder; list_files shows what there is."
    if isinstance(error, (IsADirectoryError, NotADirectoryError)):
        return f"{path} is not a file, or is below something that is not a folder."
    if isinstance(error, PermissionError):
        return f"{path} could not be opened: permission denied."
    return f"{path} could not be used: {error.strerror or type(error).__name__}."


def resolve_root(root: str | Path) -> Path:
    """Return the folder that tools work in, resolved. Raises `ArgumentError` for a file or no path."""
    if not isinstance(root, str | os.PathLike):
        raise ArgumentError(f"`root` must be a folder's path, got {describe_type(root)}.")
    real = Path(root).resolve()
    if real.is_file():
        raise ArgumentError(f"`root` must be a folder, got the file {str(root)!r}.")
    return real


def check_number(name: str, given: object, *, whole: bool = True) -> None:
    """Refuse a limit that is not a number from 0. Raises `ArgumentError`."""
    kinds = int if whole else (int, float)
    if not isinstance(given, kinds) or isinstance(given, bool) or not given >= 0:
        raise ArgumentError(f"`{name}` must be a number from 0, got {shorten(repr(given))}.")


@dataclass(frozen=True)
class ConfinedFolder:
    """The files below `root`. Errors are a `ToolException` with one sentence.

    A path is resolved first (a link inside may point inside), then opened folder by folder from the root
    without following links. A link that is slipped in between the two steps is an error, not a way out.
    `hidden` are file names that `walk` skips, and `scanned` is the number of entries after which it stops.
    Nothing is written to `protected` files, nor below such folders.
    """

    root: Path
    hidden: frozenset[str] = frozenset()
    scanned: int = 20_000
    protected: Collection[Path] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", resolve_root(self.root))

    def resolve(self, path: str) -> Path:
        """Resolve a path, with `..` and links. Raises `ToolException` if it is not the root or below it."""
        try:
            real = Path(os.path.realpath(self.root / path))
            os.fsencode(real)
        except (ValueError, TypeError, OSError) as error:
            raise ToolException(f"{quote_path(path)} is not a usable path.") from error
        if not real.is_relative_to(self.root):
            raise ToolException(
                f"{quote_path(path)} leads outside the folder; only paths inside it are allowed."
            )
        return real

    def relative_name(self, real: Path) -> str:
        """Return a resolved path relative to the root, with `/`."""
        return real.relative_to(self.root).as_posix()

    @contextmanager
    def open_parent(self, real: Path, *, make: bool = False) -> Iterator[int]:
        """Open the folder that contains `real`, without following links, and yield its descriptor."""
        with self.open_folder(real.relative_to(self.root).parts[:-1], make=make) as folder:
            yield folder

    @contextmanager
    def open_folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open a folder below the root, without following links, and yield its descriptor."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
        current = os.open(self.root, flags)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=current)
                below = os.open(part, flags, dir_fd=current)
                os.close(current)
                current = below
            yield current
        finally:
            os.close(current)

    def read(self, path: str, most: int) -> bytes:
        """Return the bytes of a regular file. Raises `TooBigError` if there are more than `most`."""
        real = self.resolve(path)
        if real == self.root:
            raise ToolException(f"{quote_path(path)} is a folder, not a file; list_files lists it.")
        with explain_os_errors(path), self.open_parent(real) as parent:
            # check before opening: opening a device or a pipe may already do something
            self.check_regular(os.stat(real.name, dir_fd=parent, follow_symlinks=False), path, links=True)
            descriptor = os.open(real.name, os.O_RDONLY | ANY_LINK_REFUSED, dir_fd=parent)
            try:
                self.check_regular(os.fstat(descriptor), path)
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    data = file.read(most + 1)
                size = max(len(data), os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        if size > most:
            raise TooBigError(f"{quote_path(path)} has {size} bytes, more than the {most} that can be read.")
        return data

    def check_regular(self, info: os.stat_result, path: str, *, links: bool = False) -> None:
        """Refuse folders, devices, pipes and sockets, and the system's own files (/proc, /sys).

        With `links`, a link passes: the system refuses it when it is opened.
        """
        if links and stat.S_ISLNK(info.st_mode):
            return
        if info.st_dev in system_devices():
            raise ToolException(
                f"{quote_path(path)} is a file of the system (/proc, /sys), which is not read."
            )
        if stat.S_ISDIR(info.st_mode):
            raise ToolException(f"{quote_path(path)} is a folder, not a file; list_files lists it.")
        if not stat.S_ISREG(info.st_mode):
            raise ToolException(f"{quote_path(path)} is not a regular file (a device, a pipe or a socket).")

    def write(self, path: str, data: bytes) -> bool:
        """Write a file in one step, and tell whether it replaced another."""
        real = self.resolve(path)
        if VERSION_CONTROL & {part.casefold() for part in real.relative_to(self.root).parts}:
            raise ToolException(f"{quote_path(path)} belongs to version control, where nothing is written.")
        if real == self.root:
            raise ToolException(f"{quote_path(path)} is a folder, not a file; give the name of a file.")
        folded = Path(str(real).casefold())  # case does not count, as on some disks
        if any(folded.is_relative_to(str(path).casefold()) for path in self.protected):
            raise ToolException(
                f"{quote_path(path)} is code or configuration of the next start, so it is not written; "
                "ask the person to change it."
            )
        with explain_os_errors(path), self.open_parent(real, make=True) as parent:
            before: os.stat_result | None = None
            with suppress(FileNotFoundError):
                before = os.stat(real.name, dir_fd=parent, follow_symlinks=False)
                self.check_regular(before, path)
                if not before.st_mode & 0o222:
                    raise ToolException(f"{quote_path(path)} is read-only; it stays as it is.")
            self.replace(real.name, data, parent, before)
        return before is not None

    def replace(self, name: str, data: bytes, parent: int, before: os.stat_result | None) -> None:
        """Write a temporary file, then rename it: readers see the old or the new content, never a part."""
        temporary = f".wakeloop-{secrets.token_hex(6)}.tmp"
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | ANY_LINK_REFUSED, 0o666, dir_fd=parent
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                if before is not None:
                    # without set-user-ID and set-group-ID: new content must not run with an owner's rights
                    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise

    def walk(self, path: str = ".") -> tuple[list[str], bool]:
        """Return the regular files below a folder, and whether these are all.

        A folder's own files come first, in alphabetical order, then those of its folders. Links are not
        followed. Environments, caches and version control are skipped.
        """
        names: list[str] = []
        waiting, left = [self.existing_folder(path).relative_to(self.root).parts], self.scanned
        while waiting and left > 0:
            parts = waiting.pop()
            try:
                with self.open_folder(parts) as folder, os.scandir(folder) as entries:
                    here = sorted(islice(entries, left), key=lambda entry: entry.name)
                    files = [entry.name for entry in here if entry.is_file(follow_symlinks=False)]
                    folders = [entry.name for entry in here if entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue  # gone, forbidden, or a link by now: list the rest
            left -= len(here)
            if parts and SKIP_SIGNS.intersection(entry.name for entry in here):
                continue
            names += ["/".join((*parts, name)) for name in files if name not in self.hidden]
            waiting += [(*parts, name) for name in reversed(folders) if name not in SKIPPED]
        return names, left > 0

    def existing_folder(self, path: str) -> Path:
        """Resolve the path of a folder that exists."""
        real = self.resolve(path)
        with explain_os_errors(path):
            if not real.is_dir():
                wrong = "is a file, not a folder" if real.exists() else "does not exist in the folder"
                raise ToolException(f"{quote_path(path)} {wrong}.")
        return real
