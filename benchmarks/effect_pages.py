"""Writes docs/effect.md and docs/effect/ from the runs of the published studies: `make effect`."""

import gzip
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from wakeloop.bench import figures as of
from wakeloop.bench.figures import Figures, group_names, group_rows
from wakeloop.bench.journal import Row
from wakeloop.bench.report import (
    Result,
    draw_plots,
    line_style,
    render_details,
    render_legend,
    render_section,
    save_plot,
)
from wakeloop.bench.study import Study
from wakeloop.bench.tables import (
    format_multiple,
    format_number,
    format_percent,
    markdown_table,
    table_by,
    tables_by_size,
)

DOCS = Path(__file__).parents[1] / "docs"
APART = DOCS / "effect"  # rows, plots, and a page for each study
TITLE = "Does it finish more work?"
BUDGETS = [n / 10 for n in range(1, 41)]  # multiples of the reference's spending
CHEAPER = 0.99  # of the subject's cost: a smaller difference does not count


def habits_table(rows: Sequence[Row], study: Study) -> str:
    """Return a row per model and a column per agent: completed, and the cost of a completed job.

    The cost is a multiple of the reference's. An agent is set in bold if it completes no less than the
    subject for less.
    """
    agents = [agent for agent in study.agents if group_rows(rows, "agent").get((agent,))]
    groups = group_rows(rows, "model", "agent")
    lines = []
    for model in group_names(rows, "model"):
        figures = {}
        for agent in agents:
            if (model, agent) in groups:
                figures[agent] = of.compute_figures(groups[model, agent], study)
        line = [study.habits.get(model, f"`{model}`")]
        for agent in agents:
            line.append(_habit_cell(figures, agent, study))
        lines.append(line)
    return markdown_table(["habit", *map("`{}`".format, agents)], lines)


def _habit_cell(figures: Mapping[str, Figures], agent: str, study: Study) -> str:
    found, ours = figures.get(agent), figures.get(study.subject)
    reference = figures.get(study.reference)
    if found is None or reference is None:
        return ""
    multiple = format_multiple(found.cost_completed, reference.cost_completed)
    cell = " · ".join(filter(None, (f"{100 * found.completed.value:.0f}", multiple)))
    if ours is None or found.completed.value < ours.completed.value:
        return cell
    is_cheaper = found.cost_completed < CHEAPER * ours.cost_completed
    return f"**{cell}**" if is_cheaper else cell


OUTPUT_PRICES = (1, 4, 8)  # multiples of the price of input
CACHED_SHARES = (0.1, 1)  # of the price of input; 1 is a server without a cache


def price_range_table(rows: Sequence[Row], study: Study) -> str:
    """Return what the subject pays for a completed job, as a multiple of the reference, at other prices."""
    groups = group_rows(rows, "model", "agent")
    models = group_names(rows, "model")
    lines = []
    for cached in CACHED_SHARES:
        for output in OUTPUT_PRICES:
            prices = {"input": 1e6, "cached": cached * 1e6, "output": output * 1e6}
            varied = study.with_changes(prices=prices)
            line = [f"output {output} times, cached {cached:g} times"]
            for model in models:
                pair = [groups.get((model, agent), ()) for agent in (study.subject, study.reference)]
                ours, theirs = (of.compute_figures(some, varied).cost_completed for some in pair)
                line.append(format_multiple(ours, theirs))
            lines.append(line)
    return markdown_table(["price, as multiples of input", *map("`{}`".format, models)], lines)


def tables_by_length(rows: Sequence[Row], study: Study) -> str:
    """Return a table for each model by number of parts and size of results."""
    if len(group_rows(rows, "parts")) < 2:  # noqa: PLR2004 - nothing to compare
        return ""
    agents = group_names(rows, "agent")
    head = ["parts", "results", *map("`{}`".format, agents)]
    tables = []
    for (model,), group in group_rows(rows, "model").items():
        cells = group_rows(group, "parts", "results", "agent")
        lines = []
        for length, size in sorted({(row["parts"], row["results"]) for row in group}):
            line = [f"{length}", f"{size:,}"]
            for agent in agents:
                line.append(_length_cell(cells.get((length, size, agent), ()), study))
            lines.append(line)
        title = f"**`{model}`**: cost of a completed job · completed (requests)"
        tables.append(f"{title}\n\n{markdown_table(head, lines)}")
    return "\n\n".join(tables)


def _length_cell(some: Sequence[Row], study: Study) -> str:
    if not some:
        return ""
    found = of.compute_figures(some, study)
    cost = format_number(found.cost_completed)
    return f"{cost} · {format_percent(found.completed.value)} ({format_number(found.requests)})"


def table_by_kind(rows: Sequence[Row]) -> str:
    """Return what each agent completes of each kind of task, over all models."""
    if len(group_names(rows, "kind")) < 2:  # noqa: PLR2004 - nothing to compare
        return ""

    def cell(some: Sequence[Row], _kind: str) -> str:
        return format_percent(of.average(some, of.completion))

    return table_by(rows, "kind", cell, title="{}")


def other_tables(result: Result) -> str:
    """Return what a study brings at other prices, by length, and by kind."""
    rows, study = result.rows, result.study
    parts = {
        "At other prices": f"What `{study.subject}` spends on a completed job, as a multiple of what "
        f"`{study.reference}` spends.\n\n{tables_by_size(rows, study, price_range_table)}\n",
        "By length, and size of the tools' results": tables_by_length(rows, study),
        "By kind of task": table_by_kind(rows),
    }
    return "\n".join(f"### {title}\n\n{text}\n" for title, text in parts.items() if text)


TASK_OF_MODEL = ("model", "family", "parts", "results")  # what a budget is for


def completed_within(
    rows: Sequence[Row], study: Study, budgets: Mapping[tuple[object, ...], float], times: float
) -> float:
    """Return the share of runs that were completed for at most `times` the budget of their model's task."""
    hits = runs = 0
    for key, some in group_rows(rows, *TASK_OF_MODEL).items():
        if key in budgets:
            runs += len(some)
            hits += sum(row["completed"] and study.prices.cost(row) <= times * budgets[key] for row in some)
    return hits / runs if runs else math.nan


def average_budgets(rows: Sequence[Row], study: Study) -> dict[tuple[object, ...], float]:
    """Return an agent's average spending on each task with each model."""
    groups = group_rows(rows, *TASK_OF_MODEL)
    return {key: of.average(some, study.prices.cost) for key, some in groups.items()}


def plot_spending(plt: Any, rows: Sequence[Row], study: Study, folder: Path) -> Path:
    """Plot what each agent completes within a budget, over all models; 1 is what the reference spends."""
    by_agent = group_rows(rows, "agent")
    budgets = average_budgets(by_agent.get((study.reference,), []), study)
    picture, axes = plt.subplots(figsize=(6.4, 3.8))
    for number, ((agent,), some) in enumerate(by_agent.items()):
        percents = [100 * completed_within(some, study, budgets, times) for times in BUDGETS]
        style = line_style(number, str(agent), study)
        look = {"color": style["color"], "linewidth": style["linewidth"]}
        axes.step(BUDGETS, percents, where="post", label=str(agent), **look)
    axes.set(
        xlabel=f"spent, in what {study.reference} spends",
        ylabel="completed, %",
        ylim=(-3, 103),
        title=study.name,
    )
    return save_plot(plt, picture, axes, folder / "spend.svg")


def save_rows(result: Result, file: Path) -> None:
    """Write study and rows to a compressed file; the same rows give the same bytes."""
    head = {"study": result.study.model_dump(mode="json"), "hash": result.study.hash}
    lines = [head | {"cells": len(result.rows) + result.missing}, *result.rows]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def write_study(result: Result) -> list[Path]:
    """Write rows, plots and the page of one study, and return the plots."""
    name = result.study.name
    plots = draw_plots(result.rows, result.study, APART / name, [plot_spending])
    save_rows(result, APART / f"{name}.jsonl.gz")
    links = f"{link_plots(plots, APART)}\n\n[Every row of it]({name}.jsonl.gz)"
    parts = [
        render_section(result, other_tables(result)),
        render_details(result),
        links,
        *render_legend([result]),
    ]
    text = "\n\n".join(parts).replace("## ", "# ", 1) + "\n"
    (APART / f"{name}.md").write_text(text, encoding="utf-8")
    return plots


def link_plots(plots: Sequence[Path], folder: Path) -> str:
    """Return a page's links to its plots."""
    return "\n\n".join(f"![{plot.stem}]({plot.relative_to(folder).as_posix()})" for plot in plots)


def main() -> None:
    """Write a page for each study, and one with the habits of the first."""
    results = [Result.load(Path(folder)) for folder in sys.argv[1:]]
    plots = [write_study(result) for result in results]
    table = tables_by_size(results[0].rows, results[0].study, habits_table)
    intro = Template((APART / "head.txt").read_text(encoding="utf-8").strip()).substitute(table=table)
    page = f"# {TITLE}\n\n{intro}\n\n{link_plots(plots[0], DOCS)}\n"
    (DOCS / "effect.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
