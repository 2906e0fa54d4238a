"""Writes docs/effect.md and docs/effect/ from the runs of the published studies: `make effect`."""

import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from wakeloop.bench import figures as of
from wakeloop.bench.figures import Figures, group_names, group_rows
from wakeloop.bench.journal import Row
from wakeloop.bench.report import Result, draw_plots, render_details, render_legend, render_section
from wakeloop.bench.study import Study
from wakeloop.bench.tables import format_multiple, markdown_table, tables_by_size

DOCS = Path(__file__).parents[1] / "docs"
APART = DOCS / "effect"  # rows, plots, and a page for each study
TITLE = "Does it finish more work?"
CHEAPER = 0.99  # of the subject's cost: a smaller difference does not count


def habits_table(rows: Sequence[Row], study: Study) -> str:
    """Return a line for each model and a column for each agent: completed, and the cost of a completed job.

    The cost is a multiple of what the reference spends. An agent is set in bold where it completes no less
    than the subject for less.
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


def save_rows(result: Result, file: Path) -> None:
    """Write study and rows to a compressed file; the same rows give the same bytes."""
    head = {"study": result.study.model_dump(mode="json"), "hash": result.study.hash}
    lines = [head | {"cells": len(result.rows) + result.missing}, *result.rows]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def write_study(result: Result) -> list[Path]:
    """Write rows, plots and the page of one study, and return the plots."""
    name = result.study.name
    plots = draw_plots(result.rows, result.study, APART / name)
    save_rows(result, APART / f"{name}.jsonl.gz")
    links = f"{link_plots(plots, APART)}\n\n[Every row of it]({name}.jsonl.gz)"
    parts = [render_section(result), render_details(result), links, *render_legend([result])]
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
