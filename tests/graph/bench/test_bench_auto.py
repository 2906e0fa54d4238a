"""`settings="auto"`: what a profile says about the agent's model."""

from __future__ import annotations

from pathlib import Path

import pytest

from wakeloop import LoopSettings, create_todo_agent
from wakeloop.bench.verdict import SETTINGS, write_profile
from wakeloop.errors import SettingsError
from wakeloop.testing import ScriptedModel, calls, says


class Named(ScriptedModel):
    """A scripted model with a name, as a server's has one."""

    model_name: str = "small"


def wakes(model: ScriptedModel) -> int:
    """Return how often an agent with these settings wakes a model that stops with an open item."""
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
def test_a_provider_before_the_name_is_the_same_model(
    profile: Path, written: str, asked: str, found: bool
) -> None:
    write_profile(profile, {written: OFF})
    assert (LoopSettings.for_model(asked) == LoopSettings()) is not found
    model = Named(*[says("Hello.")], model_name=asked)
    create_todo_agent(model, settings="auto").invoke({"messages": [("user", "go")]})
    assert (model.bound == [[]]) is found


def test_a_name_of_two_providers_is_reported(profile: Path) -> None:
    write_profile(profile, {"anthropic:small": OFF, "bedrock:small": OFF})
    for look in (
        lambda: LoopSettings.for_model("small"),
        lambda: create_todo_agent(Named(model_name="small"), settings="auto"),
    ):
        with pytest.raises(SettingsError) as caught:
            look()
        assert str(caught.value) == (
            "'small' was measured as 'anthropic:small' and 'bedrock:small': "
            "write the full name of the one you mean."
        )
    assert is_off("bedrock:small")


def is_off(model: object) -> bool:
    return LoopSettings.for_model(model) != LoopSettings()


Spelled = str | tuple[str, str | None]
ONE, TWO = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"


def openai(name: str, url: str | None) -> object:
    return pytest.importorskip("langchain_openai").ChatOpenAI(model=name, base_url=url, api_key="none")


@pytest.mark.parametrize(
    ("written", "off", "on"),
    [
        (  # a server's entry is for that server
            [f"small@{ONE}"],
            [f"small@{ONE}", f"openai:small@{ONE}/", ("small", ONE)],
            [f"small@{TWO}", ("small", TWO), ("small", None)],
        ),
        (  # as in older files, which name no server
            ["small"],
            ["small", "openai:small", f"small@{TWO}", ("small", ONE), ("small", None)],
            ["large", ("large", None)],
        ),
        (["openai:small"], ["small", "openai:small", ("small", ONE)], []),  # as only written by hand
        (  # measured nowhere else; a colon is not a provider
            [f"small:20b@{ONE}"],
            [f"openai:small:20b@{ONE}", ("small:20b", ONE)],
            ["anthropic:small:20b", "ollama:small:20b", ("small:20b", None)],
        ),
        (["anthropic:small", "bedrock:small", "small"], ["small", ("small", TWO)], []),
    ],
    ids=["a server's", "of no server", "with a prefix", "with a colon", "an exact one"],
)
def test_an_entry_is_for_its_own_server_and_one_without_is_for_all(
    profile: Path, written: list[str], off: list[Spelled], on: list[Spelled]
) -> None:
    """A pair is a client's model, by name and address."""
    write_profile(profile, dict.fromkeys(written, OFF))
    for some, expected in ((off, True), (on, False)):
        models = [openai(*one) if isinstance(one, tuple) else one for one in some]
        assert [is_off(model) for model in models] == [expected] * len(some)


def test_a_model_with_its_own_entry_does_not_use_the_one_for_all(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_profile(profile, {"small": OFF, f"small@{TWO}": {"any": {"list": "on", "settings": {}}}})
    assert (is_off(f"small@{ONE}"), is_off(f"small@{TWO}"), is_off(openai("small", TWO))) == (
        True,
        False,
        False,
    )
    monkeypatch.setenv("OPENAI_BASE_URL", TWO)
    assert (is_off("openai:small"), is_off("anthropic:small")) == (False, True)


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
@pytest.mark.parametrize("model", ["small", "gpt-oss:20b", "anthropic:small"])
def test_an_address_in_the_environment_applies_to_every_openai_compatible_name(
    profile: Path, monkeypatch: pytest.MonkeyPatch, name: str, model: str
) -> None:
    write_profile(profile, {f"{model}@{ONE}": OFF})
    monkeypatch.setenv("OPENAI_BASE_URL", TWO)
    monkeypatch.setenv(name, ONE)  # if both are set, langchain-openai uses the older one
    assert (is_off(f"openai:{model}"), is_off(openai(model, None))) == (True, True)


def test_a_name_that_was_measured_only_on_a_server_is_reported(profile: Path) -> None:
    write_profile(profile, {f"small@{ONE}": OFF})
    with pytest.raises(SettingsError, match=rf"'small' was measured as 'small@{ONE}': write"):
        LoopSettings.for_model("openai:small")


def test_without_a_profile_it_is_refused_when_the_agent_is_built(profile: Path) -> None:
    with pytest.raises(SettingsError, match=r"'wakeloop-profile\.json' cannot be read"):
        create_todo_agent(Named(), settings="auto")
