"""The test kit, imported in a new process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_names_survive_an_import_of_their_file_first() -> None:
    code = (
        "import wakeloop.testing.walks, wakeloop.testing.wire_check; "
        "from wakeloop.testing import walk, wire_faults; "
        "assert callable(walk) and wire_faults([]) == []"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_kit_imports_neither_langgraph_nor_the_core() -> None:
    code = (
        "import sys, wakeloop.testing; "
        "late = [m for m in sys.modules if m.partition('.')[0] in ('langgraph', 'langchain_core')]; "
        "assert late == [], late; "
        "from wakeloop.testing import Knobs, ScriptedModel, WeakModel, walk; "
        "from wakeloop.testing import wire_faults, prompt_faults, says; "
        "names = [m.split('.') for m in sys.modules if m.startswith('wakeloop.')]; "
        "core = [n for n in names if n[1] not in ('testing', 'text', 'platform')]; "
        "assert core == [], core"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
