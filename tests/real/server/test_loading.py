"""Loading the exported graph imports no provider."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_loading_imports_no_provider() -> None:
    code = "import sys, wakeloop.server as s; s.make_graph(); sys.exit('langchain_openai' in sys.modules)"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0
