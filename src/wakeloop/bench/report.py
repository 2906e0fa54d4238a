"""Renders the page of a study, losses first, and its plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from wakeloop.bench import figures as of
from wakeloop.bench import tables
from wakeloop.bench.figures import MIN_TASKS, group_names, group_rows
from wakeloop.bench.journal import OUTAGE, Row, read_journal
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
            overview=tables.tables_by_size(rows, study, tables.overview_table),
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


def _describe_prices(study: Study) -> str:
    if study.prices == Prices():
        return "Cost is counted in tokens of input, a cached one as a tenth, one of output as eight."
    kinds: dict[str, Any] = study.prices.model_dump()
    listed = ", ".join(f"{kind} {price:g}" for kind, price in kinds.items())
    return f"Prices per million tokens: {listed}."


def _template(name: str) -> Template:
    return Template((TEMPLATES / name).read_text(encoding="utf-8"))


Plot = Callable[[Any, Sequence[Row], Study, Path], Path]  # of pyplot, and of the folder to write it to


def draw_plots(rows: Sequence[Row], study: Study, folder: Path, more: Sequence[Plot] = ()) -> list[Path]:
    """Write the plots; the same rows give the same bytes. Raises `BenchError` without matplotlib."""
    try:
        import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - of the extra

        mpl.use("svg")
        from matplotlib import pyplot as plt  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415
    except ImportError:
        raise BenchError("Plots need matplotlib: pip install 'wakeloop[bench]'.") from None
    look: Any = {"svg.hashsalt": "wakeloop", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(look):
        return [plot(plt, rows, study, folder) for plot in (plot_completion, *more)]


def plot_completion(plt: Any, rows: Sequence[Row], study: Study, folder: Path) -> Path:
    """Plot what each agent completes, model by model, with Wilson's intervals."""
    models = group_names(rows, "model")
    by_agent = group_rows(rows, "agent")
    picture, axes = plt.subplots(figsize=(1.6 + 1.3 * max(3, len(models)), 3.8))
    for number, ((agent,), some) in enumerate(by_agent.items()):
        groups = group_rows(some, "model")
        shift = (number - (len(by_agent) - 1) / 2) * 0.8 / len(by_agent)
        places, values, below, above = [], [], [], []
        for place, model in enumerate(models):
            if (model,) in groups:
                completed = of.compute_figures(groups[model,], study).completed
                places.append(place + shift)
                values.append(100 * completed.value)
                below.append(100 * (completed.value - completed.low))
                above.append(100 * (completed.high - completed.value))
        style = line_style(number, str(agent), study)
        axes.errorbar(places, values, yerr=[below, above], fmt="o", label=str(agent), **style)
    axes.set(ylabel="completed, %", ylim=(-3, 103), title=study.name)
    axes.set_xticks(range(len(models)), labels=models, rotation=20, ha="right")
    return save_plot(plt, picture, axes, folder / "completed.svg")


def line_style(number: int, agent: str, study: Study) -> dict[str, Any]:
    """Return the style of an agent; the subject stands out."""
    style = {"color": f"C{number % 10}", "linewidth": 1.0, "markersize": 4}
    if agent == study.subject:
        style |= {"color": "#00796b", "linewidth": 2.4}
    return style


def save_plot(plt: Any, picture: Any, axes: Any, file: Path) -> Path:
    """Write a plot with its legend."""
    axes.grid(visible=True, linewidth=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=7)
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(file, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(picture)
    return file
