"""Renders the page of a study, losses first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from wakeloop.bench import tables
from wakeloop.bench.journal import OUTAGE, Row, read_journal
from wakeloop.bench.statistics import MIN_TASKS
from wakeloop.bench.study import Prices, Study, parse_study
from wakeloop.errors import BenchError
from wakeloop.text.characters import pluralize

JOURNAL = "cells.jsonl"
TEMPLATES = Path(__file__).parent
OUTCOMES = {
    "completed": "the share of jobs completed",
    "share": "the share of checks that hold",
    "requests": "requests",
}


@dataclass(frozen=True)
class Result:
    """A study, its rows, and how many cells are missing."""

    study: Study
    rows: Sequence[Row]
    missing: int = 0
    outage: str = ""  # the last outage

    @classmethod
    def load(cls, path: Path) -> "Result":
        """Read the result of a run from its folder, or from the file of its rows. Raises `BenchError`."""
        file = path / JOURNAL if path.is_dir() else path
        head, rows = read_journal(file)
        study = parse_study(head.get("study", {}), str(file))
        if head.get("hash") != study.hash:
            raise BenchError(f"{file}: its first line has been changed since the run began.")
        missing = max(0, head["cells"] - len(rows))
        return cls(study, sort_rows(rows, study), missing, head.get(OUTAGE, "") if missing else "")


def sort_rows(rows: Sequence[Row], study: Study) -> list[Row]:
    """Return the rows in the study's order."""

    def place(row: Row) -> tuple[Any, ...]:
        who = study.models.index(row["model"]), study.agents.index(row["agent"])
        return *who, row["family"], row["parts"], row["results"], row["seed"]

    return sorted(rows, key=place)


def render_page(results: Sequence[Result], *, shown: Mapping[str, str] | None = None) -> str:
    """Return a page about some studies; `shown` is Markdown for the end of each study, such as its plots."""
    parts = ["# What was measured"]
    for result in results:
        parts.append(render_section(result, "\n" + render_details(result).replace("## ", "### ")))
        if end := (shown or {}).get(result.study.name):
            parts.append(end)
    return "\n\n".join([*parts, *render_legend(results)]) + "\n"


def render_legend(results: Sequence[Result]) -> list[str]:
    """Return what the figures mean, and who the agents are."""
    rows: list[Row] = []
    for result in results:
        rows += result.rows
    who = tables.agent_descriptions(rows)
    return [_template("legend.md").template.strip(), "## Who is who", who]


def render_details(result: Result) -> str:
    """Return the results for each model: comparisons, losses, figures."""
    study, rows = result.study, result.rows
    unit = "whole tasks"
    if _count_tasks(rows) < MIN_TASKS:
        unit = "single runs (there are few tasks, so the result holds for these only)"
    return (
        _template("details.md")
        .substitute(
            reference=study.reference,
            subject=study.subject,
            unit=unit,
            comparisons=tables.comparison_table(rows, study),
            every=tables.losses_table(rows, study),
            agents=tables.agents_table(rows, study),
        )
        .strip()
    )


def render_section(result: Result, more: str = "") -> str:
    """Return the section of one study, with `more` at its end."""
    study, rows = result.study, result.rows
    missing = ""
    if result.missing:
        missing = f", {result.missing:,} still missing"
        if result.outage:
            missing += f" (the last outage: {result.outage})"
    return (
        _template("page.md")
        .substitute(
            name=study.name,
            hash=study.hash,
            cells=pluralize(len(rows), "cell"),
            missing=missing,
            hypothesis=study.hypothesis,
            primary=OUTCOMES[study.primary],
            reference=study.reference,
            subject=study.subject,
            smallest=_describe_margin(study),
            runs=f"{pluralize(_count_tasks(rows), 'task')}, {pluralize(study.seeds, 'seed')}; "
            f"at most {pluralize(study.max_requests, 'request')} a run.",
            prices=_describe_prices(study),
            losses=tables.losses_table(rows, study, every=False),
            details=more,
            prices_range=tables.tables_by_size(rows, study, tables.price_range_table),
            overview=tables.tables_by_size(rows, study, tables.overview_table),
            lengths=_titled(
                "By length, and size of the tools' results", tables.tables_by_length(rows, study)
            ),
            kinds=_titled("By kind of task", tables.table_by_kind(rows)),
        )
        .strip()
    )


def _count_tasks(rows: Sequence[Row]) -> int:
    return len({(row["family"], row["parts"], row["results"]) for row in rows})


def _describe_margin(study: Study) -> str:
    size, unit = 100 * study.smallest, "point"
    if study.primary == "requests":
        size, unit = study.smallest, "request"
    if size != 1:
        unit += "s"
    return f"{size:g} {unit}"


def _titled(title: str, text: str) -> str:
    return f"\n### {title}\n\n{text}\n" if text else ""


def _describe_prices(study: Study) -> str:
    if study.prices == Prices():
        return "Cost is counted in tokens of input, a cached one as a tenth, one of output as eight."
    kinds: dict[str, Any] = study.prices.model_dump()
    listed = ", ".join(f"{kind} {price:g}" for kind, price in kinds.items())
    return f"Prices per million tokens: {listed}."


def _template(name: str) -> Template:
    return Template((TEMPLATES / name).read_text(encoding="utf-8"))
