"""Tool descriptions survive `python -OO`, which drops docstrings."""

import subprocess
import sys

import pytest

DESCRIBED = """
import json
from pathlib import Path
from wakeloop.demo.audit import audit_tools
from wakeloop.dialects import DIALECTS
from wakeloop.presets import preset
from wakeloop.sessions.communication_tools import session_tools
from wakeloop.tools import file_tools, shell_tool
own = [s["function"] for d in DIALECTS.values() for s in d.tool_schemas(preset("wakeloop"))]
real = [*file_tools("."), shell_tool("."), *audit_tools(Path(".")), *session_tools(lambda: None)]
print(json.dumps([[f["name"], f["description"]] for f in own] + [[t.name, t.description] for t in real]))
"""


def described(*flags: str) -> str:
    ran = subprocess.run(
        [sys.executable, *flags, "-c", DESCRIBED], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.large
def test_tools_keep_their_descriptions_without_docstrings() -> None:
    told = described("-OO")
    assert told == described()
    assert '""' not in told
    assert "null" not in told
