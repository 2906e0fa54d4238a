"""`settings="auto"`: what a profile says of the agent's model."""

from __future__ import annotations

from pathlib import Path

import pytest

from wakeloop import LoopSettings, create_todo_agent
from wakeloop.bench.profile import SETTINGS, write_profile
from wakeloop.errors import SettingsError
from wakeloop.testing import ScriptedModel, calls, says


class Named(ScriptedModel):
    """A scripted model with a name, as a server's has one."""

    model_name: str = "small"


def wakes(model: ScriptedModel) -> int:
    """How often an agent of these settings wakes a model that stops with an open item."""
    state = create_todo_agent(model, settings="auto").invoke({"messages": [("user", "go")]})
    return int(state["todo_session"]["wakes"])


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "wakeloop-profile.json"


def test_off_is_an_agent_without_a_list(profile: Path) -> None:
    write_profile(profile, {"small": {"any": {"list": "off", "settings": SETTINGS["off"]}}})
    model = Named(says("Hello."))
    assert wakes(model) == 0
    assert (model.bound, [message.type for message in model.requests[0]]) == ([[]], ["human"])


@pytest.mark.parametrize("name", ["small", "other"])
def test_on_and_unknown_are_the_default(profile: Path, name: str) -> None:
    write_profile(profile, {name: {"any": {"list": "on", "settings": SETTINGS["on"]}}})
    model = Named(calls(("todo_write", {"items": ["a"]})), *[says("Later.")] * 7)
    assert wakes(model) == 5


OFF = {"any": {"list": "off", "settings": SETTINGS["off"]}}


@pytest.mark.parametrize(
    ("written", "asked", "found"),
    [
        ("anthropic:small", "small", True),  # measured by name, and built from a model object
        ("small", "models/small", True),
        ("anthropic:small", "anthropic:small", True),
        ("anthropic:small", "mall", False),
        ("small", "smaller", False),
    ],
)
def test_a_provider_before_the_name_makes_no_other_model(
    profile: Path, written: str, asked: str, found: bool
) -> None:
    write_profile(profile, {written: OFF})
    assert (LoopSettings.for_model(asked) == LoopSettings()) is not found
    model = Named(*[says("Hello.")], model_name=asked)
    create_todo_agent(model, settings="auto").invoke({"messages": [("user", "go")]})
    assert (model.bound == [[]]) is found


def test_a_name_of_two_providers_is_none(profile: Path) -> None:
    write_profile(profile, {"anthropic:small": OFF, "bedrock:small": OFF})
    assert LoopSettings.for_model("small") == LoopSettings()


def test_without_a_profile_it_is_refused_when_the_agent_is_built(profile: Path) -> None:
    with pytest.raises(SettingsError, match=r"'wakeloop-profile\.json' cannot be read"):
        create_todo_agent(Named(), settings="auto")
