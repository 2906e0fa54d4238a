"""Whether a program's functions answer right."""

import json
from functools import lru_cache
from pathlib import Path
from tempfile import gettempdir

from wakeloop.bench.world import run_python

_CHILD = """
import json, sys
source, cases = json.load(sys.stdin)
names = {"__name__": "checked"}
exec(compile(source, "program", "exec"), names)
right = all(repr(eval(asked, names)) == answer for asked, answer in cases)
print("right" if right else "wrong")
"""


@lru_cache(maxsize=4096)
def agrees(source: str, cases: tuple[tuple[str, str], ...]) -> bool:
    """Whether expressions have the values wanted, as `repr` shows them, in a process of its own."""
    asked = json.dumps([source, cases])
    code, output = run_python(["-c", _CHILD], Path(gettempdir()), asked)
    return code == 0 and output.split()[-1:] == ["right"]
