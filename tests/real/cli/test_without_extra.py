"""If an extra is missing: one sentence that says what to install."""

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


@pytest.mark.slow
def test_a_name_of_an_extra_says_what_to_install() -> None:
    needs = [
        ("middleware", "WakeLoopMiddleware", "langchain.agents.middleware.types", "langchain"),
        ("display", "thread_report", "jinja2", "cli"),
        ("sessions.dbos", "DbosHost", "dbos", "sessions"),
    ]
    code = "import sys; name, missing = sys.argv[1:]; sys.modules[missing] = None; exec(name)"
    for package, name, missing, extra in needs:
        order = f"from wakeloop.{package} import {name}"
        ran = subprocess.run(
            [sys.executable, "-c", code, order, missing], capture_output=True, text=True, check=False
        )
        said = f"ModuleNotFoundError: {name} needs {missing}: pip install 'wakeloop[{extra}]'."
        assert ran.stderr.splitlines()[-1] == said
