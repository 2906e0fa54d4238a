"""Importing the package opens nothing."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

IMPORTS = """
import socket, sys

class Shut(socket.socket):
    def __init__(self, *given, **more):
        raise OSError("a socket was opened")

def loaded(*names):
    return {name.split(".")[0] for name in sys.modules} & set(names)

socket.socket = Shut
import wakeloop, wakeloop.testing
assert not loaded("langgraph", "langchain_core", "openai", "pydantic")
[getattr(wakeloop, name) for name in wakeloop.__all__]
assert not loaded("openai", "langchain_openai", "langchain", "sqlite3", "typer", "dbos")
"""


def test_importing_opens_nothing() -> None:
    unmeasured = {key: v for key, v in os.environ.items() if not key.startswith("COVERAGE_")}
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, env=unmeasured)  # coverage imports, too
