"""Sessions work without the Postgres driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("psycopg", "psycopg_pool") or name == "langgraph.checkpoint.postgres":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
# DBOS itself imports psycopg even on SQLite, so it may, but nothing of ours
DBOS_ALONE = """
import builtins
real = builtins.__import__
def asked(name, globals=None, *rest, **more):
    asker = (globals or {}).get("__name__", "")
    ours = asker.startswith("wakeloop") and name.partition(".")[0] == "psycopg"
    if ours or name.startswith(("psycopg_pool", "langgraph.checkpoint.postgres")):
        raise ModuleNotFoundError(f"No module named {name!r}, for {asker}", name=name)
    return real(name, globals, *rest, **more)
builtins.__import__ = asked
"""
FILES = (
    "",
    ".dbos",
    ".dbos.database",
    ".thread_runner",
    ".mailbox",
    ".communication_tools",
    ".host_rules",
    ".host",
)


def test_the_library_is_imported() -> None:
    every = "\n".join(f"import wakeloop.sessions{file}" for file in FILES)
    subprocess.run([sys.executable, "-c", MISSING + every], check=True)


def test_sessions_are_served_and_sent_to_on_sqlite(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.md").write_text("# A\n")
    own = {"WAKELOOP_CONFIG": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    environment = {**os.environ, **own, "WAKELOOP_DB": str(tmp_path / "threads.sqlite")}
    command = [sys.executable, "-c", f"{DBOS_ALONE}\nfrom wakeloop.cli.commands.app import main; main()"]
    options = {"env": environment, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "serve", "--demo", str(tmp_path / "root")], **options) as server:  # type: ignore[call-overload]
        try:
            line = server.stdout.readline()
            assert line.startswith("Serving main; "), (line, server.communicate())
            sent = subprocess.run(
                [*command, "send", "main", "audit the folder", "--wait"], check=False, **options
            )  # type: ignore[call-overload]
            assert (sent.returncode, sent.stderr) == (0, "")
            assert "All done." in sent.stdout
            assert "1 file, 1 line." in (tmp_path / "root" / "wakeloop-report.md").read_text()
        finally:
            server.terminate()
        assert server.wait(60) == 0
