"""The plots of a study, as SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wakeloop.bench import figures as of
from wakeloop.bench.figures import group_names, group_rows
from wakeloop.bench.journal import Row
from wakeloop.bench.study import Study
from wakeloop.errors import BenchError

BUDGETS = [n / 10 for n in range(1, 41)]  # multiples of the reference's spending


def draw_plots(rows: Sequence[Row], study: Study, folder: Path) -> list[Path]:
    """Write the plots; the same rows give the same bytes. Raises `BenchError` without matplotlib."""
    try:
        import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - of the extra

        mpl.use("svg")
        from matplotlib import pyplot as plt  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415
    except ImportError:
        raise BenchError("Plots need matplotlib: pip install 'wakeloop[bench]'.") from None
    look: Any = {"svg.hashsalt": "wakeloop", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(look):
        return [
            plot_completion(plt, rows, study, folder / "completed.svg"),
            plot_spending(plt, rows, study, folder / "spend.svg"),
        ]


def plot_completion(plt: Any, rows: Sequence[Row], study: Study, file: Path) -> Path:
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
        style = _line_style(number, str(agent), study)
        axes.errorbar(places, values, yerr=[below, above], fmt="o", label=str(agent), **style)
    axes.set(ylabel="completed, %", ylim=(-3, 103), title=study.name)
    axes.set_xticks(range(len(models)), labels=models, rotation=20, ha="right")
    return _save(plt, picture, axes, file)


def plot_spending(plt: Any, rows: Sequence[Row], study: Study, file: Path) -> Path:
    """Plot what each agent completes within a budget, over all models; 1 is what the reference spends."""
    by_agent = group_rows(rows, "agent")
    budgets = of.average_budgets(by_agent.get((study.reference,), []), study)
    picture, axes = plt.subplots(figsize=(6.4, 3.8))
    for number, ((agent,), some) in enumerate(by_agent.items()):
        percents = [100 * of.completed_within(some, study, budgets, times) for times in BUDGETS]
        style = _line_style(number, str(agent), study)
        look = {"color": style["color"], "linewidth": style["linewidth"]}
        axes.step(BUDGETS, percents, where="post", label=str(agent), **look)
    axes.set(
        xlabel=f"spent, in what {study.reference} spends",
        ylabel="completed, %",
        ylim=(-3, 103),
        title=study.name,
    )
    return _save(plt, picture, axes, file)


def _line_style(number: int, agent: str, study: Study) -> dict[str, Any]:
    style = {"color": f"C{number % 10}", "linewidth": 1.0, "markersize": 4}
    if agent == study.subject:
        style |= {"color": "#00796b", "linewidth": 2.4}
    return style


def _save(plt: Any, picture: Any, axes: Any, file: Path) -> Path:
    axes.grid(visible=True, linewidth=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=7)
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(file, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(picture)
    return file
