"""The bench on a real server: a smoke test. So small a model ranks nothing; it shows that all of it works."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import API_KEY, MODEL

pytestmark = pytest.mark.loopback

STUDY = """\
name: smoke
hypothesis: A model too small to rank anything comes to the end of every cell.
reference: plain
smallest: 0.5
agents: [plain, wakeloop]
models: ["{model}@{url}"]
tasks: [one-file]
seeds: 1
max_requests: 3
"""


def test_every_cell_ends(relay: Any, tmp_path: Path) -> None:
    (tmp_path / "smoke.yaml").write_text(STUDY.format(model=MODEL, url=relay.url))
    command = [sys.executable, "-W", "error", "-m", "wakeloop.cli.commands.app", "bench"]
    done = subprocess.run(
        [*command, "--study", "smoke.yaml", "--workers", "1", "--out", "smoke"],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": API_KEY},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "smoke" / "cells.jsonl").read_text().splitlines()[1:]]
    assert len(rows) == 2
    assert all(row["requests"] >= 1 and row["input"] > 0 for row in rows)
