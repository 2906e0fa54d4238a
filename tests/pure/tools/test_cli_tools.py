"""The file tools: results, errors, and confinement to the folder."""

import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import ToolException
from levels import examples

from wakeloop.tools.files import FileLimits, file_tools

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path):
    return make_root(tmp_path)


def make_root(base: Path) -> Path:
    root = base / "root"
    (root / "docs").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "lib" / "venv2").mkdir(parents=True)
    (root / "lib" / "venv2" / "pyvenv.cfg").write_text("home = x\n")
    (root / "lib" / "venv2" / "hidden.py").write_text("needle\n")
    (root / ".git" / "config").write_text("needle\n")
    (root / "a.py").write_text("one\nTwo needle\nthree\n")
    (root / "docs" / "b.md").write_text("# B\n\nNeedle here\n")
    (base / "outside").mkdir()
    (base / "outside" / "secret.txt").write_text(SECRET)
    (root / "link-out").symlink_to(base / "outside")
    (root / "link-file").symlink_to(base / "outside" / "secret.txt")
    (root / "link-in").symlink_to("docs")
    (root / "loop").symlink_to("loop")
    return root


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def check_sentence(text: str) -> None:
    assert "\n" not in text
    assert text.endswith(".")


def call(root, name, limits=None, hidden=(), **args):
    tools = {tool.name: tool for tool in file_tools(root, limits=limits, hidden=hidden)}
    return tools[name].invoke(args)


def test_there_are_four_tools_and_their_arguments_are_described(root):
    tools = file_tools(root)
    assert [tool.name for tool in tools] == ["list_files", "read_file", "write_file", "search_files"]
    for tool in tools:
        assert tool.description
        assert all("description" in field for field in tool.args.values()), tool.name


# -- list_files


def test_list_shows_files_in_order_and_leaves_out_caches_and_links(root):
    assert call(root, "list_files") == "Files 1 to 2 of 2 in '.':\na.py\ndocs/b.md"


def test_list_takes_several_patterns_and_paths(root):
    assert call(root, "list_files", pattern="*.md, *.rst") == "Files 1 to 1 of 1 in '.':\ndocs/b.md"
    assert call(root, "list_files", pattern="**/*.py") == "Files 1 to 1 of 1 in '.':\na.py"
    assert call(root, "list_files", pattern="*.txt") == "No files in '.' match '*.txt'."
    assert call(root, "list_files", path="link-in") == "Files 1 to 1 of 1 in 'link-in':\ndocs/b.md"


def test_list_says_that_it_is_cut_and_continues(root):
    limits = FileLimits(entries=1)
    assert call(root, "list_files", limits) == (
        "Files 1 to 1 of 2 in '.':\na.py\n(Cut here: more files follow; continue with start=2.)"
    )
    assert call(root, "list_files", limits, start=2) == "Files 2 to 2 of 2 in '.':\ndocs/b.md"
    with pytest.raises(ToolException, match=r"^start must be from 1 to 2 for the 2 files, not 3\.$"):
        call(root, "list_files", limits, start=3)


def test_list_says_where_it_stopped_looking(tmp_path):
    for number in range(30):
        (tmp_path / f"{number:02}.py").touch()
    head = call(tmp_path, "list_files", FileLimits(scanned=10)).split("\n")[0]
    assert (
        head == "Files 1 to 10 of 10 in '.' (only the first 10 entries were looked at; name a deeper folder):"
    )


def test_list_hides_what_it_should_hide(root):
    assert call(root, "list_files", hidden=["a.py"]) == "Files 1 to 1 of 1 in '.':\ndocs/b.md"


def test_list_quotes_names_that_span_lines(root):
    (root / "two\nlines.py").touch()
    assert "'two\\nlines.py'" in call(root, "list_files").split("\n")


# -- read_file


def test_read_gives_the_lines_and_their_numbers(root):
    assert call(root, "read_file", path="a.py") == "Lines 1 to 3 of 3 of 'a.py':\none\nTwo needle\nthree"
    assert call(root, "read_file", path="a.py", start=2, lines=1) == (
        "Lines 2 to 2 of 3 of 'a.py':\nTwo needle\n(Cut here: more lines follow; continue with start=3.)"
    )
    assert call(root, "read_file", path=str(root.resolve() / "a.py"), lines=1).startswith("Lines 1 to 1 of 3")
    assert call(root, "read_file", path="link-in/../docs/b.md").startswith("Lines 1 to 3 of 3")


def test_read_cuts_at_the_limits(root):
    (root / "long.txt").write_text("x" * 100 + "\n" + "y\n" * 50)
    text = call(root, "read_file", FileLimits(result=40), path="long.txt")
    assert text.split("\n")[1] == "x" * 40 + "… (line cut: 100 characters, 40 shown)"
    assert text.endswith("continue with start=2.)")
    assert len(call(root, "read_file", FileLimits(result=40), path="long.txt", start=2).split("\n")) == 22
    assert len(call(root, "read_file", FileLimits(lines=5), path="long.txt", lines=400).split("\n")) == 7


def test_read_reports_oddities(root):
    (root / "empty").touch()
    (root / "latin.txt").write_bytes(b"caf\xe9\r\nx")
    (root / "bin").write_bytes(b"a\0b")
    assert call(root, "read_file", path="empty") == "'empty' is empty."
    assert call(root, "read_file", path="latin.txt") == (
        "Lines 1 to 2 of 2 of 'latin.txt' (bytes that are not UTF-8 show as \ufffd):\ncaf\ufffd\nx"
    )
    with pytest.raises(ToolException, match=r"^'bin' is a binary file, not text\.$"):
        call(root, "read_file", path="bin")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("missing.py", "There is no 'missing.py' in the folder; list_files shows what there is."),
        ("missing/x.py", "There is no 'missing/x.py' in the folder; list_files shows what there is."),
        ("docs", "'docs' is a folder, not a file; list_files lists it."),
        (".", "'.' is a folder, not a file; list_files lists it."),
        ("", "'' is a folder, not a file; list_files lists it."),
        ("a.py/x", "'a.py/x' is not a file, or is below something that is not a folder."),
        (
            "../outside/secret.txt",
            "'../outside/secret.txt' leads outside the folder; only paths inside it are allowed.",
        ),
        ("/etc/passwd", "'/etc/passwd' leads outside the folder; only paths inside it are allowed."),
        ("link-file", "'link-file' leads outside the folder; only paths inside it are allowed."),
        (
            "link-out/secret.txt",
            "'link-out/secret.txt' leads outside the folder; only paths inside it are allowed.",
        ),
        ("loop", "'loop' could not be used: Too many levels of symbolic links."),
        ("a\0b", "'a\\x00b' is not a usable path."),
        ("a\ud800", "'a\\ud800' is not a usable path."),
        ("n" * 300, f"'{'n' * 119}…{'n' * 29}' could not be used: File name too long."),
    ],
)
def test_refusals_are_one_sentence(root, path, sentence):
    with pytest.raises(ToolException) as refusal:
        call(root, "read_file", path=path)
    assert str(refusal.value) == sentence


def test_read_refuses_what_is_too_big_or_not_a_file(root):
    os.mkfifo(root / "pipe")
    with pytest.raises(
        ToolException, match=r"^'pipe' is not a regular file \(a device, a pipe or a socket\)\.$"
    ):
        call(root, "read_file", path="pipe")
    with pytest.raises(ToolException, match=r"^'a.py' has 21 bytes, more than the 5 that can be read; "):
        call(root, "read_file", FileLimits(read=5), path="a.py")


# -- write_file


def test_write_makes_folders_and_replaces(root):
    assert (
        call(root, "write_file", path="new/deep/é.txt", content="é\n") == "Wrote 'new/deep/é.txt': 3 bytes."
    )
    assert (root / "new/deep/é.txt").read_bytes() == b"\xc3\xa9\n"
    (root / "a.py").chmod(0o750)
    assert call(root, "write_file", path="a.py", content="") == "Replaced 'a.py': 0 bytes."
    assert (root / "a.py").stat().st_mode & 0o777 == 0o750
    assert not [path for path in root.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        (
            ".git/hooks/pre-commit",
            "x",
            "'.git/hooks/pre-commit' belongs to version control, where nothing is written.",
        ),
        ("docs", "x", "'docs' is a folder, not a file; list_files lists it."),
        (".", "x", "'.' is a folder, not a file; give the name of a file."),
        ("a.py/b", "x", "'a.py/b' is not a file, or is below something that is not a folder."),
        ("kept.txt", "x", "'kept.txt' is read-only; it stays as it is."),
        ("x", "\ud800", "The content contains a lone surrogate, which UTF-8 cannot encode."),
        (
            "x",
            "12345678901",
            "The content has 11 bytes, more than the 10 that a file may have; write it as several files.",
        ),
    ],
)
def test_write_refusals(root, path, content, sentence):
    (root / "kept.txt").touch(mode=0o444)
    with pytest.raises(ToolException) as refusal:
        call(root, "write_file", FileLimits(write=10), path=path, content=content)
    assert str(refusal.value) == sentence
    assert not (root / "x").exists()


def test_a_failed_write_leaves_the_old_file_and_no_other(root, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolException, match=r"^'a.py' could not be used: No space left on device\.$"):
        call(root, "write_file", path="a.py", content="new")
    assert (root / "a.py").read_text() == "one\nTwo needle\nthree\n"
    assert not [path for path in root.iterdir() if path.name.endswith(".tmp")]


def test_readers_see_the_old_or_the_new_file_whole(root):
    old, new = "a" * 50_000, "b" * 50_000
    (root / "f").write_text(old)
    seen = set()
    writer = threading.Thread(
        target=lambda: [call(root, "write_file", path="f", content=c) for c in (new, old) * 10]
    )
    writer.start()
    while writer.is_alive():
        seen.add((root / "f").read_text())
    writer.join()
    assert seen <= {old, new}


# -- search_files


def test_search_finds_lines_whatever_their_case(root):
    assert call(root, "search_files", query="needle") == (
        "Hits 1 to 2 of 'needle':\na.py:2: Two needle\ndocs/b.md:3: Needle here"
    )
    assert (
        call(root, "search_files", query="needle", path="a.py")
        == "Hits 1 to 1 of 'needle':\na.py:2: Two needle"
    )
    assert call(root, "search_files", query="needle", pattern="*.md").endswith("docs/b.md:3: Needle here")
    assert call(root, "search_files", query="nowhere") == "No line in '.' contains 'nowhere'."


def test_search_is_cut_and_says_what_it_left_out(root):
    (root / "bin").write_bytes(b"needle\0")
    limits = FileLimits(hits=1)
    assert call(root, "search_files", limits, query="e") == (
        "Hits 1 to 1 of 'e':\na.py:1: one\n(Cut here: more hits follow; continue with start=2.)"
    )
    assert call(root, "search_files", query="nowhere").endswith(
        "(1 file was not searched: binary, too big or unreadable.)"
    )
    assert (
        call(root, "search_files", limits, query="needle", start=2).split("\n")[1]
        == "docs/b.md:3: Needle here"
    )


def test_search_refuses_an_empty_query_and_paths_outside(root):
    with pytest.raises(ToolException, match=r"^query must be"):
        call(root, "search_files", query="")
    with pytest.raises(ToolException, match="leads outside"):
        call(root, "search_files", query="secret", path="link-out")
    assert (
        "secret"
        not in call(root, "list_files") + call(root, "search_files", query="secret").split("contains")[0]
    )


# -- no path leads outside

PIECES = st.sampled_from(
    [
        "..",
        ".",
        "",
        "/",
        "docs",
        "a.py",
        "link-out",
        "link-file",
        "link-in",
        "loop",
        "secret.txt",
        "outside",
        "~",
    ]
)
PATHS = st.one_of(
    st.text(max_size=30),
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=6).map("/".join),
    st.lists(PIECES, max_size=8).map(lambda pieces: "/" + "/".join(pieces)),
)


@pytest.fixture(scope="module")
def shared():
    with tempfile.TemporaryDirectory() as base:
        yield make_root(Path(base))


@pytest.mark.slow
@examples(150, deadline=None)
@given(path=PATHS)
def test_nothing_outside_is_read_or_listed(shared, path):
    for name, args in (("read_file", {}), ("list_files", {}), ("search_files", {"query": "e"})):
        try:
            text = call(shared, name, path=path, **args)
        except ToolException as refusal:
            check_sentence(str(refusal))
        else:
            assert SECRET not in text
            assert "secret.txt" not in text.replace(path, "")


@pytest.mark.slow
@examples(150, deadline=None)
@given(path=PATHS)
def test_nothing_outside_is_written(path):
    with tempfile.TemporaryDirectory() as base:
        root = make_root(Path(base))
        try:
            call(root, "write_file", path=path, content="written")
        except ToolException as refusal:
            check_sentence(str(refusal))
        else:
            assert any(found.read_text() == "written" for found in root.rglob("*") if found.is_file())
        assert names(Path(base)) == ["outside", "root"]
        assert names(Path(base) / "outside") == ["secret.txt"]
        assert (Path(base) / "outside" / "secret.txt").read_text() == SECRET


def test_c87_a_pattern_of_a_million_characters_is_refused_at_once(root: Path) -> None:
    for name, args in (("list_files", {}), ("search_files", {"query": "needle"})):
        for pattern in ("*" * 1_000_000, "*.py," * 200_000):
            with pytest.raises(ToolException, match=r"pattern has 1,000,000 characters; at most 1,000 are"):
                call(root, name, pattern=pattern, **args)


def test_c87_a_name_that_steers_a_terminal_is_escaped_in_every_result(root: Path) -> None:
    (root / "red\x1b[31m.txt").write_text("needle")
    escaped = "'red\\x1b[31m.txt'"
    assert escaped in call(root, "list_files").splitlines()
    assert f"{escaped}:1: needle" in call(root, "search_files", query="needle").splitlines()
