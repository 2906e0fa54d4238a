"""Every statement of the saver, the mailbox and the session tools, with every class of error.

Each case is one operation on a real database, in which one statement fails once with one class of error. The
operation has to wait, try again and end as it does without the error: stored once, nothing lost. Prints the
table of docs/reliability.md, with `--all` a line for each statement. Exit code 1 if a case ended otherwise.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import postgres
from failing_databases import CLASSES, GROUPS, Case, World, open_world, try_all

from wakeloop.platform import outages


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Yield the address of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'sessions.db'}"
        return
    with postgres.running() as server, server.database() as url:
        yield url


def try_group(world: World, kind: str, group: str, *, every_statement: bool) -> int:
    """Try the cases of one group, print its row, and return how many ended otherwise."""
    statements, wrong = Counter[tuple[str, str]](), list[Case]()
    for case in try_all(world, kind, GROUPS[group]):
        statements[case.operation, case.statement] += 1
        if case.wrong:
            wrong.append(case)
    row = (len(GROUPS[group]), len(statements), len(CLASSES[kind]), f"{statements.total():,}", len(wrong))
    print(f"| {' | '.join([kind, group, *map(str, row)])} |", flush=True)
    if every_statement:
        for name, statement in statements:
            print(f"  {name}: {statement}")
    for case in wrong:
        print(f"{kind}: {case}", file=sys.stderr)
    return len(wrong)


def main() -> None:
    """Try all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="print a line for each statement")
    options = parser.parse_args()
    outages.PAUSES = (0.01,)
    for name in ("psycopg", "psycopg.pool", "dbos", "wakeloop"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    failed = 0
    print("| database | what | operations | statements | classes of error | cases | ended otherwise |")
    print("|---|---|---|---|---|---|---|")
    for kind in CLASSES:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = stack.enter_context(database(kind, folder))
            world = stack.enter_context(open_world(kind, url, folder))
            for group in GROUPS:
                failed += try_group(world, kind, group, every_statement=options.all)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
