"""An agent of `create_agent` on `langgraph dev`, through LangGraph's JavaScript client."""

import json
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest

CLIENT = Path(__file__).parents[3] / "build" / "node"
INSTALL = "npm install --prefix build/node @langchain/langgraph-sdk"

pytest.importorskip("langgraph_api", reason="the extra `server` is not installed")
pytestmark = [
    pytest.mark.loopback,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("langgraph-dev"),
    pytest.mark.skipif(
        not (which("node") and (CLIENT / "node_modules").is_dir()), reason=f"needs node, and: {INSTALL}"
    ),
]


def item(status: str) -> dict[str, Any]:
    return {"id": 1, "content": "one", "status": status}


def test_a_front_end_sees_list_words_question_and_form(url: str) -> None:
    script = Path(__file__).with_name("client.mjs")
    ran = subprocess.run(
        ["node", str(script), str(CLIENT), url], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "lists": [[item("pending")], [item("completed")]],
        "words": "I stop here. Done.",
        "nudges": 1,
        "events": ["activated", "spent", "todos", "spent", "wake", "spent", "todos", "spent", "parked"],
        "reason": "settled",
        "todos": [item("completed")],
        "question": ["which?"],
        "answer": "read: this one",
        "form": ["todo_settings"],
    }
