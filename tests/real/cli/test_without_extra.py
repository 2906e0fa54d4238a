"""The console script where only the library is installed: one sentence, and no traceback."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("missing", ["typer", "platformdirs"])
def test_the_script_says_what_to_install(missing: str, tmp_path: Path) -> None:
    script = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["wakeloop"]
    module, _, name = script.partition(":")
    code = f"import sys; sys.modules[{missing!r}] = None; from {module} import {name} as run; run()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "demo", str(ROOT / "docs")],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path)},
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr == f"wakeloop: The command line needs {missing}. Run: pip install 'wakeloop[cli]'\n"


def test_the_middleware_says_what_to_install() -> None:
    code = "import sys; sys.modules['langchain'] = None; import wakeloop.middleware"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = "ImportError: The middleware needs langchain: pip install 'wakeloop[langchain]'."
    assert ran.stderr.splitlines()[-1] == said
