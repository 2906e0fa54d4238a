"""Families of tasks on small programs."""

from random import Random

from wakeloop.bench.family_builder import Expected, Part, single_parts
from wakeloop.bench.world import program_tools

FUNCTIONS = (  # a right body, a wrong one, calls with their answers
    ("return sum(n for n in xs if n % 2 < 1)", "return sum(xs)", ("([1, 2, 4])", "6"), ("([])", "0")),
    ("return max(xs) - min(xs) if xs else 0", "return max(xs)", ("([3, 1, 9])", "8"), ("([])", "0")),
    ("return xs[::-1]", "return xs[:-1]", ("([1, 2, 3])", "[3, 2, 1]"), ("([])", "[]")),
    ("return len(set(xs))", "return len(xs)", ("([1, 1, 2])", "2"), ("([])", "0")),
    ("return [n * n for n in xs]", "return [n * 2 for n in xs]", ("([1, 3])", "[1, 9]"), ("([2])", "[4]")),
    ("return xs[1:] + xs[:1]", "return xs[1:]", ("([1, 2, 3])", "[2, 3, 1]"), ("([])", "[]")),
    ("return sorted(xs)[:2]", "return sorted(xs)[:1]", ("([3, 1, 2])", "[1, 2]"), ("([5])", "[5]")),
    ("return sum(xs) // (len(xs) or 1)", "return sum(xs) // len(xs)", ("([2, 4])", "3"), ("([])", "0")),
)
HIDDEN_CASES = (  # one call for each function that the model never sees
    *(("([3, 8])", "8"), ("([-2, 5])", "7"), ("([4, 4, 7])", "[7, 4, 4]"), ("([5, 6, 7, 5])", "3")),
    *(("([5, 0])", "[25, 0]"), ("([8, 9])", "[9, 8]"), ("([9, 7, 8, 9])", "[7, 8]"), ("([1, 2, 6, 6])", "3")),
)
DESCRIPTIONS = (
    "the sum of the even numbers in the list xs",
    "the greatest number of the list xs less the least, 0 for an empty list",
    "the list xs backwards",
    "how many different numbers the list xs holds",
    "the squares of the numbers in the list xs",
    "the list xs with its first number moved to the end",
    "the two least numbers of the list xs in order, or as many as there are",
    "the mean of the list xs rounded down, 0 for an empty list",
)


def draw_program(rng: Random, name: str) -> tuple[str, str, str, Expected]:
    """Return a function's description, a wrong version, visible tests and the expected file."""
    which = rng.randrange(len(FUNCTIONS))
    right, wrong, *asked = FUNCTIONS[which]
    tests = f"import sys; sys.path.insert(0, 'src')\nfrom {module_name(name)} import solve\n"
    cases = []
    for args, answer in asked:
        tests += f"assert solve{args} == {answer}\n"
        cases.append((f"solve{args}", answer))
    tests += "print('ok')\n"
    args, answer = HIDDEN_CASES[which]
    cases.append((f"solve{args}", answer))
    head = "def solve(xs):\n    "
    want = Expected(f"{head}{right}\n", "program", tuple(cases))
    return DESCRIPTIONS[which], f"{head}{wrong}\n", tests, want


def module_name(name: str) -> str:
    """Return the module name of a part."""
    return name.replace("-", "_")


@single_parts(
    "Every test in tests/ fails because of a fault in the program src/ that it imports. Mend the "
    "programs, leave the tests as they are. run_python runs a test.",
    "mend {}",
    tools=program_tools,
)
def mend_program(rng: Random, name: str) -> Part:
    """Fix programs whose tests fail."""
    _, wrong, tests, want = draw_program(rng, name)
    path = f"src/{module_name(name)}.py"
    return Part({path: wrong, f"tests/test_{module_name(name)}.py": tests}, {path: want})


@single_parts(
    "Write a Python program src/NAME.py for every specs/NAME.txt, with _ for - in its name: a function "
    "solve(xs) that returns what the text says.",
    "write {}",
    tools=program_tools,
)
def write_program(rng: Random, name: str) -> Part:
    """Write a function from its description."""
    told, _, _, want = draw_program(rng, name)
    return Part({f"specs/{name}.txt": f"Return {told}.\n"}, {f"src/{module_name(name)}.py": want})


@single_parts(
    "The function `solve` is to be called `answer` in every program in src/: rename it, and change "
    "nothing else.",
    "rename in {}",
    tools=program_tools,
)
def rename_function(rng: Random, name: str) -> Part:
    """Rename a function in each program."""
    _, _, _, want = draw_program(rng, name)
    path = f"src/{module_name(name)}.py"
    return Part({path: want.text}, {path: Expected(want.text.replace("solve", "answer"))})


@single_parts(
    "Make every program in src/ take an empty list: `solve([])` is to return None, everything else stays.",
    "guard {}",
    tools=program_tools,
)
def guard_program(rng: Random, name: str) -> Part:
    """Add a case to each program."""
    factor, path = rng.randint(2, 9), f"src/{module_name(name)}.py"
    body = f"    return xs[0] * {factor}\n"
    right = f"def solve(xs):\n    if not xs:\n        return None\n{body}"
    cases = (("solve([])", "None"), ("solve([3])", str(3 * factor)), ("solve([2, 7])", str(2 * factor)))
    return Part({path: f"def solve(xs):\n{body}"}, {path: Expected(right, "program", cases)})
