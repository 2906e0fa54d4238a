"""Families of tasks on files, tables and programs."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import yaml

from wakeloop.bench.family_builder import (
    Expected,
    Part,
    append_call,
    connected_parts,
    move_call,
    read_call,
    single_parts,
    write_call,
)
from wakeloop.bench.task import Call, lamp_tools, program_tools

NOUNS = [
    *("anchor", "basket", "candle", "drum", "engine", "fence", "garden"),
    *("hammer", "island", "jacket", "kettle", "ladder", "mirror", "needle"),
]
KINDS = ("invoice", "letter", "offer", "receipt")
PEOPLE = ["Ada", "Boris", "Chen", "Dora", "Emil", "Fatima", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Liam"]


def random_sentence(rng: Random, size: int = 6) -> str:
    """Return a line of random words."""
    return " ".join(rng.choices(NOUNS, k=size))


def random_lines(rng: Random, least: int = 3, most: int = 9) -> list[str]:
    """Return some lines of random words."""
    return [random_sentence(rng) for _ in range(rng.randint(least, most))]


def join_lines(*texts: str) -> str:
    """Return the text of a file with these lines."""
    return "".join(map("{}\n".format, texts))


def random_date(rng: Random) -> tuple[int, int, int]:
    """Return a random year, month and day."""
    return rng.randint(2019, 2030), rng.randint(1, 12), rng.randint(1, 28)


@single_parts()
def make_files(_rng: Random, name: str) -> Part:
    """Make a file for each name in the request."""
    return Part(wants={f"notes/{name}.txt": Expected(f"Note {name}.")})


@single_parts(tools=lamp_tools)
def switch_lamps(_rng: Random, name: str) -> Part:
    """Switch lamps on, with two tools of one argument."""
    path = f"lamps/{name}.txt"
    calls = (Call("switch_on", {"lamp": name}),)
    return Part({path: "off\n"}, {path: Expected("on")}, calls, spoil=Call("switch_off", {"lamp": name}))


@single_parts()
def rename_by_date(rng: Random, name: str) -> Part:
    """Rename reports after the date in them."""
    date = "{:04}-{:02}-{:02}".format(*random_date(rng))
    old, new = f"reports/{name}.txt", f"reports/{date}-{name}.txt"
    text = join_lines(f"Date: {date}", *random_lines(rng))
    return Part({old: text}, {old: None, new: Expected(text)}, (move_call(old, new),))


@single_parts()
def change_ending(rng: Random, name: str) -> Part:
    """Change the extension of files."""
    old, new, text = f"pictures/{name}.jpeg", f"pictures/{name}.jpg", random_sentence(rng)
    return Part({old: text}, {old: None, new: Expected(text)}, (move_call(old, new),))


@single_parts()
def sort_inbox(rng: Random, name: str) -> Part:
    """Move files into folders by the kind that each one states."""
    kind = rng.choice(KINDS)
    old, new = f"inbox/{name}.txt", f"{kind}/{name}.txt"
    text = join_lines(*random_lines(rng, 1, 3), f"kind: {kind}")
    return Part({old: text}, {old: None, new: Expected(text)}, (move_call(old, new),))


@single_parts()
def delete_obsolete(rng: Random, name: str) -> Part:
    """Delete what is obsolete, keep what is not."""
    old, kept = f"archive/{name}.txt", f"archive/{name}-b.txt"
    files = {
        old: join_lines(*random_lines(rng), "obsolete: yes"),
        kept: join_lines(*random_lines(rng), "obsolete: no"),
    }
    return Part(files, {old: None})


@single_parts()
def join_halves(rng: Random, name: str) -> Part:
    """Join two files into one."""
    left, right = join_lines(*random_lines(rng)), join_lines(*random_lines(rng))
    files = {f"left/{name}.txt": left, f"right/{name}.txt": right}
    return Part(files, {f"joined/{name}.txt": Expected(left + right)})


@single_parts()
def split_files(rng: Random, name: str) -> Part:
    """Split a file into two and delete it."""
    one, two = join_lines(*random_lines(rng)), join_lines(*random_lines(rng))
    wants = {
        f"first/{name}.txt": Expected(one),
        f"second/{name}.txt": Expected(two),
        f"both/{name}.txt": None,
    }
    return Part({f"both/{name}.txt": f"{one}---\n{two}"}, wants)


@single_parts()
def count_lines(rng: Random, name: str) -> Part:
    """Count the lines of each log."""
    found = random_lines(rng, 3, 30)
    return Part({f"logs/{name}.log": join_lines(*found)}, {f"counts/{name}.txt": Expected(str(len(found)))})


@single_parts()
def replace_word(rng: Random, name: str) -> Part:
    """Replace a name in each page."""
    text = join_lines(
        random_sentence(rng),
        f"Lantern is for {rng.choice(PEOPLE)}.",
        random_sentence(rng),
        "Buy Lantern now.",
    )
    return Part({f"pages/{name}.md": text}, {f"pages/{name}.md": Expected(text.replace("Lantern", "Beacon"))})


@single_parts(files={"index.md": "# Index\n"})
def link_index(rng: Random, name: str) -> Part:
    """Append a line to each page, once."""
    path, text = f"docs/{name}.md", join_lines(f"# {name}", *random_lines(rng))
    line = join_lines("See also: index.md")
    return Part({path: text}, {path: Expected(text + line)}, (append_call(path, line),))


@single_parts()
def raise_version(rng: Random, name: str) -> Part:
    """Raise the version of each package."""
    major, minor, patch = rng.randint(0, 20), rng.randint(0, 20), rng.randint(0, 20)
    path = f"packages/{name}/VERSION"
    return Part({path: f"{major}.{minor}.{patch}\n"}, {path: Expected(f"{major}.{minor}.{patch + 1}\n")})


@single_parts()
def set_key(rng: Random, name: str) -> Part:
    """Set a key in each JSON file."""
    path = f"services/{name}.json"
    old = {"name": name, "port": rng.randint(1000, 9999), "retries": rng.randint(0, 4)}
    return Part({path: json.dumps(old)}, {path: Expected(json.dumps({**old, "retries": 5}), "json")})


@single_parts()
def last_speaker(rng: Random, name: str) -> Part:
    """Find who speaks last; each part is one search and one new file."""
    spoken = [f"{rng.choice(PEOPLE)}: {random_sentence(rng)}" for _ in range(rng.randint(3, 8))]
    source, target = f"interviews/{name}.txt", f"answers/{name}.txt"
    last = spoken[-1].partition(":")[0]
    return Part(
        {source: join_lines(*spoken)}, {target: Expected(last)}, (read_call(source), write_call(target, last))
    )


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def random_sales(rng: Random, size: int = 5) -> list[tuple[str, int]]:
    """Return random things with their amounts."""
    return [(noun, rng.randint(2, 90)) for noun in rng.sample(NOUNS, size)]


@single_parts()
def csv_to_json(rng: Random, name: str) -> Part:
    """Convert tables to JSON."""
    rows = random_sales(rng, 3)
    objects = []
    for thing, amount in rows:
        objects.append({"thing": thing, "amount": str(amount)})
    return Part(
        {f"tables/{name}.csv": csv_text([("thing", "amount"), *rows])},
        {f"json/{name}.json": Expected(json.dumps(objects), "json")},
    )


@single_parts()
def markdown_table(rng: Random, name: str) -> Part:
    """Write tables as Markdown."""
    head, *rows = [("thing", "amount"), *random_sales(rng, 4)]
    made = ""
    for left, right in (head, ("---", "---"), *rows):
        made += f"| {left} | {right} |\n"
    return Part(
        {f"tables/{name}.csv": csv_text([head, *rows])}, {f"pages/{name}.md": Expected(made, "table")}
    )


@single_parts()
def group_totals(rng: Random, name: str) -> Part:
    """Sum by group in each table."""
    rows = []
    sums: dict[str, int] = {}
    for _ in range(6):
        who, amount = rng.choice(PEOPLE[:3]), rng.randint(1, 50)
        rows.append((who, amount))
        sums[who] = sums.get(who, 0) + amount
    made = Expected(csv_text([("customer", "total"), *sums.items()]), "rows")
    return Part(
        {f"orders/{name}.csv": csv_text([("customer", "amount"), *rows])}, {f"totals/{name}.csv": made}
    )


@single_parts(files={"customers.csv": csv_text([("number", "name"), *enumerate(PEOPLE, 1)])})
def join_tables(rng: Random, name: str) -> Part:
    """Join two tables."""
    rows: list[tuple[object, ...]] = [("number", "amount")]
    named: list[tuple[object, ...]] = [("name", "amount")]
    for _ in range(4):
        number, amount = rng.randint(1, len(PEOPLE)), rng.randint(1, 50)
        rows.append((number, amount))
        named.append((PEOPLE[number - 1], amount))
    return Part({f"orders/{name}.csv": csv_text(rows)}, {f"named/{name}.csv": Expected(csv_text(named))})


@connected_parts()
def keep_ledger(rng: Random, names: Sequence[str]) -> list[Part]:
    """Append a row for each receipt to one table; doing it again spoils the table."""
    amounts = {name: rng.randint(1, 500) for name in names}
    made = Expected(csv_text([("name", "amount"), *amounts.items()]), "rows")
    parts = []
    for name, amount in amounts.items():
        files = {f"receipts/{name}.txt": f"Paid: {amount}\n", "ledger.csv": "name,amount\n"}
        call = append_call("ledger.csv", f"{name},{amount}\n")
        parts.append(Part(files, {"ledger.csv": made}, (call,)))
    return parts


PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text(encoding="utf-8"))


def draw_program(rng: Random, name: str) -> tuple[str, str, str, Expected]:
    """Return a function's description, a wrong version, visible tests and the expected file."""
    program = PROGRAMS[rng.randrange(len(PROGRAMS))]
    tests = f"import sys; sys.path.insert(0, 'src')\nfrom {module_name(name)} import solve\n"
    for args, answer in program["tests"].items():
        tests += f"assert solve{args} == {answer}\n"
    tests += "print('ok')\n"
    asked = {**program["tests"], **program["hidden"]}
    cases = tuple((f"solve{args}", answer) for args, answer in asked.items())
    head = "def solve(xs):\n    "
    want = Expected(f"{head}{program['right']}\n", "program", cases)
    return program["about"], f"{head}{program['wrong']}\n", tests, want


def module_name(name: str) -> str:
    """Return the module name of a part."""
    return name.replace("-", "_")


@single_parts(tools=program_tools)
def mend_program(rng: Random, name: str) -> Part:
    """Fix programs whose tests fail."""
    _, wrong, tests, want = draw_program(rng, name)
    path = f"src/{module_name(name)}.py"
    return Part({path: wrong, f"tests/test_{module_name(name)}.py": tests}, {path: want})


@single_parts(tools=program_tools)
def write_program(rng: Random, name: str) -> Part:
    """Write a function from its description."""
    told, _, _, want = draw_program(rng, name)
    return Part({f"specs/{name}.txt": f"Return {told}.\n"}, {f"src/{module_name(name)}.py": want})


@single_parts(tools=program_tools)
def rename_function(rng: Random, name: str) -> Part:
    """Rename a function in each program."""
    _, _, _, want = draw_program(rng, name)
    path = f"src/{module_name(name)}.py"
    return Part({path: want.text}, {path: Expected(want.text.replace("solve", "answer"))})


@single_parts(tools=program_tools)
def guard_program(rng: Random, name: str) -> Part:
    """Add a case to each program."""
    factor, path = rng.randint(2, 9), f"src/{module_name(name)}.py"
    body = f"    return xs[0] * {factor}\n"
    right = f"def solve(xs):\n    if not xs:\n        return None\n{body}"
    cases = (("solve([])", "None"), ("solve([3])", str(3 * factor)), ("solve([2, 7])", str(2 * factor)))
    return Part({path: f"def solve(xs):\n{body}"}, {path: Expected(right, "program", cases)})
