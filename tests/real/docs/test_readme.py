"""What the README shows of the package is what the package is."""

import re
from pathlib import Path

from wakeloop import LoopSettings, create_todo_agent
from wakeloop.settings import PRESET_SETTINGS
from wakeloop.testing import ScriptedModel

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


def test_the_picture_is_the_compiled_graph() -> None:
    shown = re.search(r"```mermaid\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert shown[1].strip() == create_todo_agent(ScriptedModel([])).get_graph().draw_mermaid().strip()


def test_the_settings_table_has_every_setting_but_those_of_presets() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.*?) \|$", README, re.MULTILINE)
    assert rows == [
        (name, repr(field.get_default(call_default_factory=True)), field.description)
        for name, field in LoopSettings.model_fields.items()
        if name not in PRESET_SETTINGS
    ]


def test_every_link_to_a_file_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    assert [link for link in links if not (Path(__file__).parents[3] / link).exists()] == []
