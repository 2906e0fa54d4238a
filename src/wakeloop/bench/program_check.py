"""Checks the answers of a program's functions."""

import json
from functools import lru_cache
from pathlib import Path
from tempfile import gettempdir

from wakeloop.bench.world import run_python

_PROGRAM = """
import json, sys
source, asked = json.load(sys.stdin)
names = {"__name__": "checked"}
exec(compile(source, "program", "exec"), names)
print()
print(json.dumps([repr(eval(one, names)) for one in asked]))
"""


@lru_cache(maxsize=4096)
def answers_match(source: str, cases: tuple[tuple[str, str], ...]) -> bool:
    """Return whether expressions have the expected `repr`, evaluated in a process that doesn't know it."""
    asked, answers = [], []
    for expression, answer in cases:
        asked.append(expression)
        answers.append(answer)
    _, output = run_python(["-c", _PROGRAM], Path(gettempdir()), json.dumps([source, asked]))
    return output.splitlines()[-1:] == [json.dumps(answers)]
