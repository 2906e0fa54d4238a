"""The files tool stays in its root, whatever is in it and whoever moves it."""

import os
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confined_folder import SECRET, call, confining
from langchain_core.tools import ToolException

from wakeloop import ArgumentError
from wakeloop.tools import shell_tool
from wakeloop.tools.files import FileLimits, file_tools
from wakeloop.tools.folder import ConfinedFolder

TRIES = 300


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return confining(tmp_path)


def untouched(root: Path) -> bool:
    """Return whether nothing outside was changed."""
    files = sorted(path for path in (root.parent / "outside").rglob("*") if path.is_file())
    return [(path.name, path.read_text()) for path in files] == [
        (name, SECRET) for name in ("a.txt", "b.txt", "only-outside.txt")
    ]


CALLS: list[tuple[str, dict[str, object]]] = [
    ("read_file", {"path": "sub/a.txt"}),
    ("read_file", {"path": "sub/deep/b.txt"}),
    ("write_file", {"path": "sub/a.txt", "content": "written"}),
    ("write_file", {"path": "sub/deep/new.txt", "content": "written"}),
    ("write_file", {"path": "sub/made/new.txt", "content": "written"}),
    ("list_files", {"path": "."}),
    ("list_files", {"path": "sub"}),
    ("search_files", {"query": "secret", "path": "."}),
    ("search_files", {"query": "secret", "path": "sub"}),
    ("search_files", {"query": "secret", "path": "sub/a.txt"}),
]


def swapped(root: Path) -> None:
    """Replace the folder by a link that leads outside."""
    with suppress(OSError):  # a write has created a new one there
        (root / "sub").rename(root / "aside")
    with suppress(FileExistsError):
        (root / "sub").symlink_to(root.parent / "outside")


def swapped_once(root: Path) -> None:
    """Do the same when nobody else is at work."""
    (root / "sub").rename(root / "aside")
    (root / "sub").symlink_to(root.parent / "outside")


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_folder_swapped_for_a_link_between_check_and_use(
    root: Path, name: str, args: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook swaps the folder at the moment when the first folder below the root is opened."""
    opened, done = os.open, []

    def late(path: object, flags: int, *more: object, dir_fd: int | None = None, **rest: object) -> int:
        if path == "sub" and not done:
            done.append(path)
            swapped_once(root)
        return opened(path, flags, *more, dir_fd=dir_fd, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", late)
    said = call(root, name, **args)
    assert done == ["sub"]
    assert SECRET not in said
    assert "only-outside" not in said
    assert untouched(root)


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_a_thread_that_keeps_swapping_folder_and_link(
    root: Path, name: str, args: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    over, swaps = threading.Event(), 0
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # the race is not with the disk

    def swap() -> None:
        nonlocal swaps
        while not over.is_set():
            swapped(root)
            with suppress(OSError):
                (root / "sub").unlink()
            with suppress(OSError):
                shutil.rmtree(root / "sub")  # a write has recreated it, inside
            with suppress(OSError):
                (root / "aside").rename(root / "sub")
            swaps += 1

    (tool,) = [tool for tool in file_tools(root) if tool.name == name]
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(TRIES):
            try:
                said = str(tool.func(**args))  # type: ignore[attr-defined]
            except ToolException as refusal:
                said = str(refusal)
            assert SECRET not in said
            assert "only-outside" not in said
    finally:
        over.set()
        swapper.join()
    assert swaps > 0
    assert untouched(root)


@pytest.mark.parametrize(
    "lead",
    [
        lambda root: root.parent / "outside",
        lambda root: Path("../outside"),
        lambda root: Path("../../../../../../../../") / str(root.parent / "outside").lstrip("/"),
        lambda root: Path("/proc/self/cwd/../../../") / str(root.parent / "outside").lstrip("/"),
    ],
)
def test_links_that_lead_outside_are_not_followed(root: Path, lead: Callable[[Path], Path]) -> None:
    (root / "out").symlink_to(lead(root))
    (root / "sub" / "out").symlink_to("../out")
    (root / "sub" / "file").symlink_to(root.parent / "outside" / "a.txt")
    (root / "dangling").symlink_to(root.parent / "outside" / "new.txt")
    for path in (
        "out/a.txt",
        "sub/out/a.txt",
        "sub/file",
        "out/../outside/a.txt",
        "dangling",
        "out/new/x.txt",
    ):
        for name, args in (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("search_files", {"query": "secret"}),
        ):
            said = call(root, name, path=path, **args)
            assert said.startswith("refused: "), (path, name, said)
            assert SECRET not in said
    listed = call(root, "list_files", path=".")
    assert listed.splitlines()[1:] == ["sub/a.txt", "sub/deep/b.txt"]
    assert untouched(root)


def test_system_folders_are_not_read_even_below_the_root() -> None:
    said = call(Path("/"), "read_file", path="proc/self/environ")
    assert said == "refused: 'proc/self/environ' is a file of the system (/proc, /sys), which is not read."
    assert call(Path("/proc/self"), "read_file", path="environ").endswith("which is not read.")
    assert "root:" in call(
        Path("/"), "read_file", path="etc/passwd"
    )  # how wide the root is, is the caller's choice


def test_a_huge_and_sparse_file_costs_no_memory(root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    said = call(root, "read_file", path="huge")
    assert said.startswith(f"refused: 'huge' has {1 << 40} bytes, more than the 5000000 that can be read")
    assert "1 file was not searched" in call(root, "search_files", query="nothing")


def test_one_byte_more_than_allowed_is_too_much(root: Path) -> None:
    (root / "big").write_bytes(b"x" * 11)
    assert ConfinedFolder(root).read("big", 11) == b"x" * 11
    with pytest.raises(ToolException, match="has 11 bytes, more than the 10"):
        ConfinedFolder(root).read("big", 10)


def test_binary_files_and_names_that_are_not_utf_8(root: Path) -> None:
    name = os.fsdecode(b"b\xffd")
    (root / name).write_bytes(b"\xff\xfe\x00")
    assert "'b\\udcffd'" in call(root, "list_files")
    assert call(root, "read_file", path=name).startswith("refused: ")
    (root / name).write_bytes(b"caf\xe9\x1b[2J")
    assert "caf\ufffd" in call(root, "read_file", path=name)
    call(root, "list_files").encode()


def test_a_hard_link_is_read_as_the_file_that_it_is_and_never_written_through(root: Path) -> None:
    os.link(root.parent / "outside" / "a.txt", root / "hard")
    assert SECRET in call(root, "read_file", path="hard")
    assert call(root, "write_file", path="hard", content="x") == "Replaced 'hard': 1 byte."
    assert untouched(root)


def test_a_written_file_gives_nobody_the_owners_rights(root: Path) -> None:
    (root / "tool").write_text("x")
    (root / "tool").chmod(0o6755)
    assert stat.S_IMODE((root / "tool").stat().st_mode) == 0o6755
    call(root, "write_file", path="tool", content="y")
    assert stat.S_IMODE((root / "tool").stat().st_mode) == 0o755


def test_a_link_that_stays_inside_is_followed_and_kept(root: Path) -> None:
    (root / "in").symlink_to("sub/a.txt")
    assert call(root, "write_file", path="in", content="new") == "Replaced 'in': 3 bytes."
    assert (root / "in").is_symlink()
    assert (root / "sub" / "a.txt").read_text() == "new"


def test_a_very_deep_folder_is_walked(root: Path) -> None:
    deep = root
    for _ in range(40):
        deep /= "d" * 50
    deep.mkdir(parents=True)
    (deep / "x").write_text("found")
    assert "1 of 3" not in call(root, "list_files", path=".")
    assert f"{'/'.join(['d' * 50] * 40)}/x" in ConfinedFolder(root).walk()[0]
    assert FileLimits().scanned == 20_000


def test_a_file_in_place_of_the_folder_is_refused_before_a_model_sees_it(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hi")
    for make in (file_tools, shell_tool):
        with pytest.raises(ArgumentError, match="`root` must be a folder, got the file "):
            make(tmp_path / "notes.md")
