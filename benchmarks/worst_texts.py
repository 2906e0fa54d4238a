"""Every pattern on its worst texts, every rule of the list on its longest rounds: seconds, and how they grow.

`python benchmarks/worst_texts.py` measures all in a minute or two, `--tiny` checks that it runs, `--markdown`
prints the tables of RESULTS.md. CPU time counts, the least of several runs. The exponent is the slope of time
against size between the first and the last size, on logarithmic scales: 1 is linear, 2 is quadratic. The
garbage collector is off while it measures, because its passes look at everything alive, however little was
created since, and double the time of the largest rounds. Patterns are found in the package's source, not
listed here, and are used as it uses them.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import math
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage, RemoveMessage

import wakeloop
from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.parallel_agents import join_todos
from wakeloop.channels.todo_list import merge_todos
from wakeloop.dialects import get_dialect
from wakeloop.display.formatting import format_interrupt
from wakeloop.display.screen import Screen
from wakeloop.display.terminal_output import strip_controls
from wakeloop.loop.progress import has_progressed
from wakeloop.text.characters import to_one_line
from wakeloop.text.secrets import is_secret_variable, redact_text
from wakeloop.todos.changes import diff_lists
from wakeloop.todos.items import read_list
from wakeloop.todos.operations import Add, Board, Change, Draft, Replace, Rules
from wakeloop.todos.rounds import play_round

SIZES = (25_000, 50_000, 100_000, 200_000)
COUNTS = (1_250, 2_500, 5_000, 10_000)
TINY = (200, 400)
QUICK = 0.02  # seconds at the largest size; below it, noise makes the exponent
RUNS = 7
WORST = 1.35  # the smallest exponent that marks a row
# What patterns begin with, repeat and fail on: each input repeats one of these, or is a beginning, a long
# middle, and an end that does not fit.
BITS = (
    *"a0 \t\n.,:;=&?#@/\\|-_*`~[](){}<>\"'!", "\x1b", "\x9d", "\x9b", "\x07", "\r", "\u2028", "\u3164", "key",
    "://", "a://", "?a", "&key", "?key", "bearer ", "basic", "a=", "password=", "\x1b[", "\x1b]", "\x9d]",
    "``", "[a](", "](", "<a ", "<a href=", "id=", "# ", "- ", "> ", ":sub1", "TODO ", "  [1] ", ".a ", "\\*",
)  # fmt: skip
ENDS = ("", "\x00", "\n", "@", "=")


HOUSE = Path(wakeloop.__file__).parent
ONCE = ("search", "match", "fullmatch")  # the others go through a whole string
ALL_WAYS = ("sub", "split", "finditer", "findall", *ONCE)


def patterns() -> dict[str, Callable[[str], Any]]:
    """Return each pattern of the package by name, as a function that uses it as the package does."""
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(HOUSE.rglob("*.py"))}
    ways = {
        (ast.unparse(call.func.value).rpartition(".")[2], call.func.attr)
        for tree in trees.values()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    }
    found: dict[str, Callable[[str], Any]] = {}
    for file, tree in trees.items():
        where = ".".join(file.relative_to(HOUSE).with_suffix("").parts)
        for name, pattern in named(f"wakeloop.{where}", tree).items():
            used = [way for way in ALL_WAYS if (name, way) in ways]
            found[f"{where}.{name}"] = scan(pattern, used[0] if used else "finditer")
        for number, (way, pattern) in enumerate(written(tree), 1):
            found[f"{where} ({number})"] = scan(pattern, way)
    form = get_dialect("parley").result_form
    found["dialects.parley.RESULT_FORM"] = scan(re.compile(form, re.DOTALL), "fullmatch")
    return found


def named(module: str, tree: ast.Module) -> dict[str, re.Pattern[str]]:
    """Return the compiled patterns that a module names, at its top or in a class."""
    there: dict[str, re.Pattern[str]] = {}
    bodies = [([], tree.body), *(([n.name], n.body) for n in tree.body if isinstance(n, ast.ClassDef))]
    for path, body in bodies:
        for node in body:
            if isinstance(node, ast.Assign) and "re.compile(" in ast.unparse(node.value):
                name = ast.unparse(node.targets[0])
                holder: Any = importlib.import_module(module)
                value = getattr(getattr(holder, path[0]) if path else holder, name)
                if isinstance(value, re.Pattern):
                    there[name] = value
                else:  # a table of patterns, alone or in rows
                    rows = (row if isinstance(row, tuple) else (row,) for row in value)
                    parts = (part for part in chain.from_iterable(rows) if isinstance(part, re.Pattern))
                    there |= {f"{name}[{number}]": pattern for number, pattern in enumerate(parts, 1)}
    return there


def written(tree: ast.Module) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Return the patterns inside a call of `re`, with that call's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).startswith("re."):
            way, first = ast.unparse(node.func).removeprefix("re."), node.args[0]
            if way in ALL_WAYS and isinstance(first, ast.Constant):
                yield way, re.compile(str(first.value))


def scan(pattern: re.Pattern[str], way: str = "finditer") -> Callable[[str], Any]:
    """Search for a pattern once, or through a whole string."""
    if way in ONCE:
        once: Callable[[str], Any] = getattr(pattern, way)
        return once
    return lambda text: sum(1 for _ in pattern.finditer(text))


def texts(size: int) -> Iterator[tuple[str, str]]:
    """Return the worst inputs of this many characters, by what they are made of."""
    for bit in BITS:
        for end in ENDS:
            yield f"{bit!r} … {end!r}", (bit * (size // len(bit)))[: size - len(end)] + end
    for first, middle in product(
        ("\x1b[", "\x9d", "?", "://", "a://u:", "[", "<a ", "basic ", "\n[", "`", "["), "a0 .:-"
    ):
        yield f"{first!r}, {middle!r} …", first + middle * (size - len(first))


def seconds(job: Callable[[], Any]) -> float:
    """Return the CPU seconds of a job."""
    gc.disable()
    try:
        begin = time.process_time()
        job()
        return time.process_time() - begin
    finally:
        gc.enable()


def least(jobs: list[Callable[[], Any]]) -> list[float]:
    """Return the least seconds of each job in several rounds, because other load only adds to them.

    Small and large ones take turns, so that none finds its memory warm.
    """
    return [min(times) for times in zip(*([seconds(job) for job in jobs] for _ in range(RUNS)), strict=True)]


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """Return the slope between the first size and the last; 0 if all is too quick to tell."""
    if times[-1] < QUICK:
        return 0.0
    return math.log(times[-1] / max(times[0], 1e-4)) / math.log(sizes[-1] / sizes[0])


def worst_text(run: Callable[[str], Any], sizes: tuple[int, ...]) -> tuple[str, list[float]]:
    """Return the input that takes longest, and its seconds at each size."""
    tried = ((name, seconds(partial(run, text))) for name, text in texts(sizes[0] // 5))
    name, _ = max(tried, key=lambda pair: pair[1])
    worst = [next(text for of, text in texts(size) if of == name) for size in sizes]
    return name, least([partial(run, text) for text in worst])


def items(count: int, **more: Any) -> list[Any]:
    """Return this many items."""
    return [{"id": n, "content": f"item {n}", "status": "pending", **more} for n in range(1, count + 1)]


def played(board: Board, calls: list[Any], rules: Rules, verdict: str | None = None) -> Any:
    """Play a round in which all questions get the same answer."""
    play, answer = play_round(board, calls, rules), None
    try:
        while True:
            play.send(answer)
            answer = verdict
    except StopIteration as done:
        return done.value


ONE = Rules(in_progress="at_most_one")


def starts(count: int, listed: int, rules: Rules = ONE) -> Callable[[], Any]:
    """Return starts of all items but as many as may be in progress."""
    board = Board(tuple(items(listed)), next_id=listed + 1)
    return lambda: played(board, [Change(1 + n % listed, "in_progress") for n in range(count)], rules)


def closes(count: int, verdict: str | None = None) -> Callable[[], Any]:
    """Return calls that close every item of a list, one each."""
    board = Board(tuple(items(count)), next_id=count + 1)
    return lambda: played(board, [Change(n + 1, "completed") for n in range(count)], Rules(), verdict)


def told(name: str, count: int) -> Callable[[], Any]:
    """Return the results of a round in a dialect's words."""
    dialect = get_dialect(name)
    if dialect.replaces:
        calls: list[Any] = [Replace(tuple(Draft(f"t{n}", "pending") for n in range(count)))]
        board = Board()
    else:
        calls, board = [Change(n + 1, "completed") for n in range(count)], Board(tuple(items(count)))
    _, outcomes = played(board, calls, Rules())
    return lambda: [(dialect.render_result(o), dialect.shows_open_items(o)) for o in outcomes]


def join_chunks(count: int) -> Callable[[], Any]:
    """Return a reply of this many chunks."""
    screen, chunk = Screen(), AIMessageChunk("twenty characters..\n")
    return lambda: [screen.handle_token(chunk) for _ in range(count)]


def messages(count: int) -> list[Any]:
    """Return a conversation."""
    return [HumanMessage("x", id=f"m{n}") for n in range(count)]


RULES: dict[str, Callable[[int], Callable[[], Any]]] = {
    "n starts on n items": lambda n: starts(n, n),
    "n starts on 100 items": lambda n: starts(n, 100),
    "n starts where one must run": lambda n: starts(n, n, Rules(in_progress="exactly_one")),
    "n items closed, one call each": closes,
    "n completions that the verifier refuses": lambda n: closes(n, "no"),
    "n unknown ids on n items": lambda n: (
        lambda: played(Board(tuple(items(n))), [Change(f"x{k}", "completed") for k in range(n)], Rules())
    ),
    "n calls that add an item": lambda n: (
        lambda: played(Board(), [Add((f"t{k}",)) for k in range(n)], Rules(max_items=10**6))
    ),
    "one call that adds n items": lambda n: lambda: played(Board(), [Add(tuple(map(str, range(n))))], ONE),
    "a list of n in the place of one of n": lambda n: (
        lambda: played(
            Board(tuple(items(n))), [Replace(tuple(Draft(f"item {k}", "pending") for k in range(n)))], ONE
        )
    ),
    "the same, of one text": lambda n: (
        lambda: played(
            Board(tuple(items(n, content="same"))), [Replace((Draft("same", "pending"),) * n)], ONE
        )
    ),
    "the same, of one long text, by ids": lambda n: (
        lambda: played(
            Board(tuple(items(n, content="y" * 400))),
            [Replace(tuple(Draft("y" * 400, "pending", k) for k in range(n, 0, -1)))],
            ONE,
        )
    ),
    "n whole lists in one round": lambda n: (
        lambda: played(
            Board(tuple(items(100))), [Replace((Draft("a", "pending"),))] * n, Rules(one_write=True)
        )
    ),
    "the results of n calls, parley": lambda n: told("parley", n),
    "the results of n calls, loki": lambda n: told("loki", n),
    "the result of a list of n, checklist": lambda n: told("checklist", n),
    "the result of a list of n, write_todos": lambda n: told("write_todos", n),
    "progress over n items": lambda n: (
        lambda: has_progressed(items(n, status="completed"), list(range(n + 1, 2 * n)), 0, worked=False)
    ),
    "the difference of two lists": lambda n: lambda: diff_lists(items(n), items(n)[::-1]),
    "a list from outside": lambda n: lambda: merge_todos([], [read_list(items(n))]),
    "two lists joined, other contents": lambda n: lambda: join_todos(items(n), items(n, content="other")),
    "n messages taken away one by one": lambda n: (
        lambda: merge_messages(messages(n), [[RemoveMessage(f"m{k}") for k in range(n)]])
    ),
    "a reply of n chunks": join_chunks,
}

FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "clean": strip_controls,
    "to_one_line": to_one_line,
    "redact_text": redact_text,
    "is_secret_variable": lambda text: is_secret_variable("X", text),
    "question": lambda text: format_interrupt({"question": "?", "command": text}),
}


def rows(
    sizes: tuple[int, ...], counts: tuple[int, ...]
) -> Iterator[tuple[str, str, str, list[float], float]]:
    """Yield rows: what kind, which, on what, seconds at the largest size, exponent."""
    looked = {("pattern", name): run for name, run in patterns().items()}
    looked |= {("function", name): function for name, function in FUNCTIONS.items()}
    for (kind, name), run in looked.items() if sizes else ():
        text, times = worst_text(run, sizes)
        yield kind, name, text, times, exponent(sizes, times)
    for name, job in RULES.items():
        times = least([job(count) for count in counts])
        yield "rule", name, "", times, exponent(counts, times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rules", action="store_true", help="the rules of the list alone")
    parser.add_argument("--tiny", action="store_true", help="to see that it runs")
    parser.add_argument("--markdown", action="store_true", help="print tables")
    options = parser.parse_args()
    sizes, counts = (TINY, TINY) if options.tiny else (SIZES, COUNTS)
    kind, marked = "", 0
    for what, name, text, times, slope in rows(() if options.rules else sizes, counts):
        if what != kind and options.markdown:
            print(f"\n| {what} | worst | seconds | exponent |\n|---|---|--:|--:|")
        kind = what
        marked += slope > WORST
        mark = " **!**" if slope > WORST else ""
        told = f"{slope:.2f}" if slope else "–"
        cells = (name, ascii(text)[1:-1].replace("|", "\\|"), f"{times[-1]:.3f}", told + mark)
        print("| " + " | ".join(cells) + " |" if options.markdown else "  ".join(cells), flush=True)
    print(f"\n{marked} above an exponent of {WORST}")


if __name__ == "__main__":
    main()
