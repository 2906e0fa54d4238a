"""The kit's names, its captions, and what importing it costs."""

from pathlib import Path

import pytest

import wakeloop.testing as kit

FILES = sorted(Path(kit.__file__).parent.glob("*.py"))


def test_every_public_name_is_there() -> None:
    assert kit.__all__ == [
        "Knobs",
        "ScriptError",
        "ScriptedModel",
        "WeakModel",
        "awalk",
        "calls",
        "malformed_call",
        "prompt_faults",
        "says",
        "walk",
        "wire_faults",
    ]
    assert [getattr(kit, name).__name__ for name in kit.__all__] == kit.__all__
    assert set(kit.__all__) <= set(dir(kit))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'wakeloop\.testing' has no attribute 'talks'"):
        kit.talks  # noqa: B018


def test_no_file_shadows_a_name() -> None:
    assert {file.stem for file in FILES} & set(kit.__all__) == set()
