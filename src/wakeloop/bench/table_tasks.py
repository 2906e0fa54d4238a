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

RATES = {"EUR": 1, "USD": 2, "GBP": 3, "CHF": 4}


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def random_sales(rng: Random, size: int = 5) -> list[tuple[str, int]]:
    """Return random things with their amounts."""
    return [(noun, rng.randint(2, 90)) for noun in rng.sample(NOUNS, size)]


@single_parts(
    "For every sales/NAME.csv write sums/NAME.txt: the sum of its column `amount`, alone.", "sum of {}"
)
def sum_column(rng: Random, name: str) -> Part:
    """Sum a column of each table."""
    rows = random_sales(rng)
    source = csv_text([("thing", "amount"), *rows])
    total = sum(amount for _, amount in rows)
    return Part({f"sales/{name}.csv": source}, {f"sums/{name}.txt": Expected(str(total))})


@single_parts(
    "For every sales/NAME.csv write best/NAME.txt: the thing with the highest amount, alone.", "best of {}"
)
def top_row(rng: Random, name: str) -> Part:
    """Find the highest row of each table."""
    rows = [*random_sales(rng), ("winner", rng.randint(91, 99))]
    rng.shuffle(rows)
    return Part(
        {f"sales/{name}.csv": csv_text([("thing", "amount"), *rows])},
        {f"best/{name}.txt": Expected("winner")},
    )


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
    "Convert every json/NAME.json to tables/NAME.csv with the header thing,amount, rows in the same order.",
    "convert {}",
)
def json_to_csv(rng: Random, name: str) -> Part:
    """Convert JSON to tables."""
    rows = random_sales(rng, 3)
    objects = []
    for thing, amount in rows:
        objects.append({"thing": thing, "amount": amount})
    return Part(
        {f"json/{name}.json": json.dumps(objects)},
        {f"tables/{name}.csv": Expected(csv_text([("thing", "amount"), *rows]))},
    )


@single_parts(
    "Convert every settings/NAME.ini to settings/NAME.json: an object of objects by section, all values "
    "as strings.",
    "convert {}",
)
def ini_to_json(rng: Random, name: str) -> Part:
    """Convert configurations to JSON."""
    source = ""
    sections: dict[str, dict[str, str]] = {}
    for section in ("one", "two"):
        source += f"[{section}]\n"
        sections[section] = {}
        for thing, amount in random_sales(rng, 2):
            source += f"{thing} = {amount}\n"
            sections[section][thing] = str(amount)
    want = Expected(json.dumps(sections), "json")
    return Part({f"settings/{name}.ini": source}, {f"settings/{name}.json": want})


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
    "For every orders/NAME.csv write invoices/NAME.txt: the total of quantity times price over its rows, "
    "alone.",
    "invoice {}",
)
def invoice_totals(rng: Random, name: str) -> Part:
    """Multiply and sum the rows of each order."""
    rows = [(noun, rng.randint(1, 9), rng.randint(2, 50)) for noun in rng.sample(NOUNS, 4)]
    source = csv_text([("thing", "quantity", "price"), *rows])
    total = sum(quantity * price for _, quantity, price in rows)
    return Part({f"orders/{name}.csv": source}, {f"invoices/{name}.txt": Expected(str(total))})


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


@single_parts(
    "Convert the amounts to EUR by rates.csv (EUR for one unit): for every bills/NAME.txt write "
    "euro/NAME.txt, the number alone.",
    "convert {}",
    files={"rates.csv": csv_text([("currency", "rate"), *RATES.items()])},
)
def convert_currency(rng: Random, name: str) -> Part:
    """Convert amounts by a table of rates."""
    currency, amount = rng.choice(sorted(RATES)), rng.randint(2, 900)
    return Part(
        {f"bills/{name}.txt": f"{amount} {currency}\n"},
        {f"euro/{name}.txt": Expected(str(amount * RATES[currency]))},
    )


@single_parts(
    "Keep the rows with an amount over 50: for every stock/NAME.csv write large/NAME.csv, with the "
    "header, the rows in the same order.",
    "filter {}",
)
def filter_rows(rng: Random, name: str) -> Part:
    """Keep some rows of each table."""
    rows = [*random_sales(rng), ("giant", 99)]
    large = [row for row in rows if row[1] > 50]  # noqa: PLR2004 - as the prompt says
    made = csv_text([("thing", "amount"), *large])
    return Part(
        {f"stock/{name}.csv": csv_text([("thing", "amount"), *rows])}, {f"large/{name}.csv": Expected(made)}
    )


@single_parts("Swap rows and columns of every grids/NAME.csv, in place.", "swap {}")
def transpose(rng: Random, name: str) -> Part:
    """Swap rows and columns."""
    grid = []
    for _ in range(3):
        grid.append([rng.randint(10, 99) for _ in range(4)])
    path = f"grids/{name}.csv"
    return Part({path: csv_text(grid)}, {path: Expected(csv_text([*zip(*grid, strict=True)]))})


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
