"""What the README shows of the package is what the package is."""

import re
from pathlib import Path

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


def test_the_picture_is_the_compiled_graph() -> None:
    shown = re.search(r"```mermaid\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert shown[1].strip() == create_todo_agent(ScriptedModel([])).get_graph().draw_mermaid().strip()
