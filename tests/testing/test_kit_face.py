"""The kit's names, its captions, and what importing it costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wakeloop.testing as kit

FILES = sorted(Path(kit.__file__).parent.glob("*.py"))


def test_every_public_name_is_there() -> None:
    assert kit.__all__ == [
        "ScriptError",
        "ScriptedModel",
        "UnreliableModel",
        "awalk",
        "calls",
        "malformed",
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


def test_no_file_takes_the_place_of_a_name() -> None:
    assert {file.stem for file in FILES} & set(kit.__all__) == set()


def test_names_survive_an_import_of_their_file_first() -> None:
    code = (
        "import wakeloop.testing.walking, wakeloop.testing.wire; "
        "from wakeloop.testing import walk, wire_faults; "
        "assert callable(walk) and wire_faults([]) == []"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_kit_imports_neither_langgraph_nor_the_core() -> None:
    code = (
        "import sys, wakeloop.testing; "
        "late = [m for m in sys.modules if m.partition('.')[0] in ('langgraph', 'langchain_core')]; "
        "assert late == [], late; "
        "from wakeloop.testing import ScriptedModel, UnreliableModel, walk; "
        "from wakeloop.testing import wire_faults, prompt_faults, says; "
        "names = [m.split('.') for m in sys.modules if m.startswith('wakeloop.')]; "
        "core = [n for n in names if n[1] != 'testing']; "
        "assert core == [], core"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_opens_with_a_caption(file: Path) -> None:
    caption = (ast.get_docstring(ast.parse(file.read_text())) or "").splitlines()[0]
    assert 0 < len(caption) <= 60
