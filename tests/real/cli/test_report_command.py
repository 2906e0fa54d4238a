"""`wakeloop report`: one page in a file, and no file is lost to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from processes import Shell, wakeloop
from test_looking import filled


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with the threads a, b and c, in an empty working folder."""
    path = tmp_path / "threads.sqlite"
    filled(path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("WAKELOOP_DB", str(path))
    return path


def title(file: str) -> str:
    text = Path(file).read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    assert text.rstrip().endswith("</html>")
    return text.partition("<title>")[2].partition("</title>")[0]


def test_it_writes_the_named_thread_or_the_last_one(db: Path) -> None:
    assert wakeloop("report", "a") == (0, "report-a.html\n", "")
    assert title("report-a.html") == "a – wakeloop"
    assert wakeloop("report") == (0, "report-c.html\n", "")
    assert title("report-c.html") == "c – wakeloop"
    assert wakeloop("report", "b", "-o", "b.html") == (0, "b.html\n", "")
    assert title("b.html") == "b – wakeloop"


def test_an_existing_file_is_kept_unless_it_is_meant(db: Path) -> None:
    Path("report-a.html").write_text("mine")
    code, out, err = wakeloop("report", "a")
    assert (code, out) == (2, "")
    assert err == (
        "wakeloop: The file 'report-a.html' already exists. Name another one with -o, or add --force.\n"
    )
    assert Path("report-a.html").read_text() == "mine"
    assert wakeloop("report", "a", "--force")[0] == 0
    assert title("report-a.html") == "a – wakeloop"


def test_c86_nothing_is_written_through_a_link_named_like_a_temporary_file(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Path("mine.txt")
    mine.write_text("mine")
    for name in (f".wakeloop-{os.getpid()}", ".wakeloop-taken"):
        Path(name).symlink_to(mine)
    assert wakeloop("report", "a")[0] == 0
    monkeypatch.setattr("wakeloop.cli.streams.token_hex", lambda _: "taken")
    code, _, err = wakeloop("report", "b")
    assert (code, err) == (1, "wakeloop: Cannot write the file 'report-b.html': File exists.\n")
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nobody"], 2, "Unknown thread 'nobody'"),
        (["a", "-o", "nowhere/page.html"], 1, "Cannot write the file 'nowhere/page.html': its folder "),
        (["a", "-o", ".", "--force"], 1, "Cannot write the file '.': Is a directory"),
        (["a", "-o", "/dev/full", "--force"], 1, "Cannot write the file '/dev/full': No space left"),
        (["a", "--db", "none.sqlite"], 2, "Unknown thread 'a'"),
        (["--db", "none.sqlite"], 2, "No threads in "),
    ],
)
def test_an_impossible_request_is_one_sentence(db: Path, words: list[str], code: int, told: str) -> None:
    found, out, err = wakeloop("report", *words)
    assert (found, out) == (code, "")
    assert err.startswith(f"wakeloop: {told}")
    assert err.count("\n") == 1
    assert list(Path().iterdir()) == []


@pytest.mark.slow
def test_the_demo_writes_its_own_page_again(shell: Shell, files) -> None:
    files(shell.folder, 1)
    page = shell.folder / "wakeloop-report.html"
    for _ in range(2):
        done = shell("demo", ".")
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("\nReport: wakeloop-report.html\n")
        thread = done.stdout.split()[1]
        assert title(str(page)) == f"{thread} – wakeloop"
        assert "wakeloop-report.html" not in page.read_text()  # no listing shows it to the model
    page.unlink()
    page.mkdir()
    done = shell("demo", ".")
    assert done.returncode == 1
    assert done.stdout.endswith(": Is a directory.\n")
