"""Writes the command's old threads: `python write_command.py FOLDER`, as `write.py` does the library's."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from old_command import REPLIES, Row, Shell, resumed, served, stood
from write import laid_out, packed

WHERE = {"ended": "--tools files", "asked": "--tools files,shell", "killed": "--tools files,shell --yes"}


def begun(shell: Shell, thread: str) -> None:
    """Begin a thread; the process of one of them is killed while a command of its round runs."""
    with served(REPLIES[thread][0]) as server:
        options = f"--model small --base-url {server.url} --thread {thread} {WHERE[thread]}"
        budget = ["--set", "max_wake_cycles=1", "--set", "guard_retries=0"]
        process = shell.start("run", "look around", *options.split(), *budget)
        if thread == "killed":
            while not (shell.folder / "flag").exists():
                time.sleep(0.05)
            time.sleep(1)  # what ended beside it is stored by then
            process.kill()
        print(thread, process.wait())
        process.communicate()


def main() -> None:
    """Write the database and the figures."""
    folder, scratch = Path(sys.argv[1]), Path(tempfile.mkdtemp())
    (scratch / "folder").mkdir()
    shell = Shell(scratch / "folder", scratch / "threads.sqlite")
    for thread in REPLIES:
        begun(shell, thread)
    packed(shell.db, folder / "command.sqlite.gz")
    os.environ.update(WAKELOOP_DB=str(shell.db), OPENAI_API_KEY="sk-loopback-secret")
    figures: Row = {"stood": stood(), "brought": {}}
    for thread in REPLIES:
        figures["brought"][thread] = resumed(thread, shell.folder)
    (folder / "command.json").write_text(f"{laid_out(figures)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
