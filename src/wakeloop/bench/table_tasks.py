"""Families of tasks on tables and numbers."""

import csv
import io
import json
from collections.abc import Sequence
from random import Random

from wakeloop.bench.family_builder import (
    Expected,
    Part,
    append_call,
    connected_parts,
    single_parts,
)
from wakeloop.bench.file_tasks import NOUNS, PEOPLE


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def random_sales(rng: Random, size: int = 5) -> list[tuple[str, int]]:
    """Return random things with their amounts."""
    return [(noun, rng.randint(2, 90)) for noun in rng.sample(NOUNS, size)]


@single_parts(
    "Convert every tables/NAME.csv to json/NAME.json: a list of objects, one a row, all values as strings.",
    "convert {}",
)
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


@single_parts(
    "Write every tables/NAME.csv as a Markdown table into pages/NAME.md, nothing else in it.", "table of {}"
)
def markdown_table(rng: Random, name: str) -> Part:
    """Write tables as Markdown."""
    head, *rows = [("thing", "amount"), *random_sales(rng, 4)]
    made = ""
    for left, right in (head, ("---", "---"), *rows):
        made += f"| {left} | {right} |\n"
    return Part(
        {f"tables/{name}.csv": csv_text([head, *rows])}, {f"pages/{name}.md": Expected(made, "table")}
    )


@single_parts(
    "For every orders/NAME.csv write totals/NAME.csv with the header customer,total: one row a customer, "
    "the sum of the amounts; rows in any order.",
    "totals of {}",
)
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


@single_parts(
    "Replace the customers' numbers by their names from customers.csv: for every orders/NAME.csv write "
    "named/NAME.csv with the header name,amount, rows in the same order.",
    "join {}",
    files={"customers.csv": csv_text([("number", "name"), *enumerate(PEOPLE, 1)])},
)
def join_tables(rng: Random, name: str) -> Part:
    """Join two tables."""
    rows: list[tuple[object, ...]] = [("number", "amount")]
    named: list[tuple[object, ...]] = [("name", "amount")]
    for _ in range(4):
        number, amount = rng.randint(1, len(PEOPLE)), rng.randint(1, 50)
        rows.append((number, amount))
        named.append((PEOPLE[number - 1], amount))
    return Part({f"orders/{name}.csv": csv_text(rows)}, {f"named/{name}.csv": Expected(csv_text(named))})


@connected_parts(
    "Enter every receipts/NAME.txt into ledger.csv: append one row NAME,amount for each, in any order, "
    "none twice.",
    "enter {}",
)
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
