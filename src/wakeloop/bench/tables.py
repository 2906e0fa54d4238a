"""The tables of a study, as Markdown."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from wakeloop.bench import figures as of
from wakeloop.bench.agents import AGENTS
from wakeloop.bench.figures import Figures, group_rows
from wakeloop.bench.journal import Row
from wakeloop.bench.statistics import MIN_RUNS, Interval
from wakeloop.bench.study import Study


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is words, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def format_percent(share: float) -> str:
    """A share as people write it."""
    if math.isnan(share):
        return ""
    return f"{share:.0%}" if share in (0, 1) or 0.01 <= share <= 0.99 else f"{share:.1%}"  # noqa: PLR2004


def format_interval(interval: Interval, show: Callable[[float], str] = format_percent) -> str:
    """A value with its interval, where there is one."""
    if math.isinf(interval.high):
        return show(interval.value)
    return f"{show(interval.value)} [{show(interval.low)} to {show(interval.high)}]"


def format_number(value: float) -> str:
    """A number with as many decimals as it needs."""
    if math.isinf(value) or math.isnan(value):
        return "" if math.isnan(value) else "never"
    size = abs(value)
    return f"{value:.3g}" if size < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits are enough


def format_multiple(one: float, other: float) -> str:
    """A multiple, of whatever there is a multiple of."""
    if not other or math.isnan(each := one / other):
        return ""
    return "never" if math.isinf(each) else f"{each:.2f}"


def format_points(share: float) -> str:
    """A difference of shares, in points of a hundred."""
    return f"{100 * share:+.1f}"


COLUMNS: dict[str, Callable[[Figures], str]] = {
    "runs": lambda f: str(f.runs),
    "completed [95 %]": lambda f: format_interval(f.completed),
    "checks": lambda f: format_percent(f.share),
    "list": lambda f: format_percent(f.listed),
    "early stop": lambda f: format_percent(f.early),
    "false “done”: text": lambda f: format_percent(f.false_text),
    "signal": lambda f: format_percent(f.false_signal),
    "damage": lambda f: format_percent(f.damage),
    "failed calls": lambda f: format_percent(f.failed),
    "ceiling, error": lambda f: format_percent(f.stopped),
    "requests": lambda f: format_number(f.requests),
    "tokens in": lambda f: format_number(f.input),
    "of it cached": lambda f: format_number(f.cached),
    "out": lambda f: format_number(f.output),
    "seconds": lambda f: f"{f.seconds:.2f}",
    "cost": lambda f: format_number(f.cost),
    "a completed job": lambda f: format_number(f.cost_completed),
}


def agents_table(rows: Sequence[Row], study: Study) -> str:
    """A table for each model: a line an agent."""
    parts = []
    for (model,), group in group_rows(rows, "model").items():
        lines = [
            [f"`{agent}`", *(show(of.compute_figures(some, study)) for show in COLUMNS.values())]
            for (agent,), some in group_rows(group, "agent").items()
        ]
        parts.append(f"**`{model}`**\n\n" + markdown_table(["agent", *COLUMNS], lines))
    return "\n\n".join(parts)


def table_by_model(rows: Sequence[Row], cell: Callable[[Sequence[Row], str], str]) -> str:
    """A line for each agent, a column for each model."""
    models = [str(model) for (model,) in group_rows(rows, "model")]
    lines = []
    for (agent,), some in group_rows(rows, "agent").items():
        groups = group_rows(some, "model")
        lines.append([f"`{agent}`", *(cell(groups.get((model,), ()), model) for model in models)])
    return markdown_table(["agent", *(f"`{model}`" for model in models)], lines)


def overview_table(rows: Sequence[Row], study: Study) -> str:
    """What each agent completes on each model, and its requests a run."""

    def cell(some: Sequence[Row], _model: str) -> str:
        found = of.compute_figures(some, study)
        harm = f", {format_percent(found.damage)} damaged" if found.damage else ""
        return (
            f"{format_percent(found.completed.value)} ({format_number(found.requests)}){harm}" if some else ""
        )

    return table_by_model(rows, cell)


BUDGETS = (1, 1.1, 1.25, 1.5, 2)  # times what the reference spends on average


def tables_by_size(rows: Sequence[Row], study: Study, show: Callable[[Sequence[Row], Study], str]) -> str:
    """A table for each size of the tools' results."""
    sizes = sorted(group_rows(rows, "results").items())
    heads = (f"**Results of {size:,} tokens**\n\n" if len(sizes) > 1 else "" for (size,), _ in sizes)
    return "\n\n".join(head + show(some, study) for head, (_, some) in zip(heads, sizes, strict=True))


def equal_spend_table(rows: Sequence[Row], study: Study) -> str:
    """What the reference and ours complete within the same budgets: a line for each model."""
    groups, lines = group_rows(rows, "model", "agent"), []
    for (model,) in group_rows(rows, "model"):
        theirs, ours = (groups.get((model, agent), ()) for agent in (study.reference, study.subject))
        if theirs and ours:
            budgets = of.average_budgets(theirs, study)
            shares = [
                [
                    format_percent(of.completed_within(some, study, budgets, times).value)
                    for some in (theirs, ours)
                ]
                for times in BUDGETS
            ]
            lines.append([f"`{model}`", *(f"{its} · **{own}**" for its, own in shares)])
    return markdown_table(["model", *(f"× {times:g}" for times in BUDGETS)], lines)


def spending_table(rows: Sequence[Row], study: Study) -> str:
    """What a run of each agent spends, and a completed job, beside the reference's."""
    groups = group_rows(rows, "model", "agent")

    def cell(some: Sequence[Row], model: str) -> str:
        theirs = groups.get((model, study.reference), ())
        if not some or not theirs:
            return ""
        mine, other = of.compute_figures(some, study), of.compute_figures(theirs, study)
        both = (mine.cost, other.cost), (mine.cost_completed, other.cost_completed)
        return " · ".join(filter(None, (format_multiple(*one) for one in both)))

    return table_by_model(rows, cell)


SIGNS = {
    "more": "↑",
    "less": "↓",
    "a difference too small to matter": "≈",
    "no difference that matters": "=",
    "no difference shown": "?",
}


def comparison_table(rows: Sequence[Row], study: Study) -> str:
    """Every agent beside the reference on each model; those without a difference, too."""
    found = of.compare_agents(rows, study.reference, of.primary_outcome(study))
    cells = {(one.agent, one.model): one for one in found}
    if not cells:
        return "There is nothing to compare with."

    def cell(some: Sequence[Row], model: str) -> str:
        one = cells.get((some[0]["agent"], model)) if some else None
        return (
            f"{format_interval(one.difference, show)} {SIGNS[of.judge_difference(one, study)]}" if one else ""
        )

    told = ", ".join(f"{sign} {says}" for says, sign in SIGNS.items())
    others = [row for row in rows if row["agent"] != study.reference]
    unit, show = ("Requests", format_number) if study.primary == "requests" else ("Points", format_points)
    return f"{unit} more than `{study.reference}`, with 95 %; {told}.\n\n{table_by_model(others, cell)}"


def tables_by_length(rows: Sequence[Row], study: Study) -> str:
    """A table for each model: completed, requests, spent, by the number of parts and size of results."""
    if len(group_rows(rows, "parts")) < 2:  # noqa: PLR2004 - nothing to set side by side
        return ""
    agents_of = [str(agent) for (agent,) in group_rows(rows, "agent")]
    parts = []
    for (model,), group in group_rows(rows, "model").items():
        cells = group_rows(group, "parts", "results", "agent")
        lines = []
        for length, size in sorted({(row["parts"], row["results"]) for row in group}):
            shown = [_length_cell(cells.get((length, size, agent), ()), study) for agent in agents_of]
            lines.append([f"{length}", f"{size:,}", *shown])
        head = ["parts", "results", *(f"`{agent}`" for agent in agents_of)]
        parts.append(f"**`{model}`**: completed · requests · spent\n\n" + markdown_table(head, lines))
    return "\n\n".join(parts)


def _length_cell(some: Sequence[Row], study: Study) -> str:
    if not some:
        return ""
    found = of.compute_figures(some, study)
    shown = format_percent(found.completed.value), format_number(found.requests), format_number(found.cost)
    return " · ".join(shown)


def table_by_kind(rows: Sequence[Row], study: Study) -> str:
    """What each agent completes of each kind of task, over all models."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    if len(kinds) < 2:  # noqa: PLR2004 - nothing to set side by side
        return ""
    lines = []
    for (agent,), some in group_rows(rows, "agent").items():
        groups = group_rows(some, "kind")
        found = [of.compute_figures(groups[kind,], study) if (kind,) in groups else None for kind in kinds]
        lines.append([f"`{agent}`", *(format_percent(one.completed.value) if one else "" for one in found)])
    return markdown_table(["agent", *kinds], lines)


def losses_table(rows: Sequence[Row], study: Study, *, every: bool = True) -> str:
    """Where another agent does better than the study's subject: on every model, or on the worst for it."""
    found = of.find_losses(rows, study)
    if max(map(len, group_rows(rows, "model", "results", "agent").values()), default=0) < MIN_RUNS:
        return "There are too few runs to say."
    if not found:
        return (
            f"In nothing that was measured does another agent do better than `{study.subject}` beyond chance."
        )
    lines = []
    models = Counter(loss.figure for loss in found)
    sizes = len(group_rows(rows, "results")) > 1
    shown = found if every else list({loss.figure: loss for loss in reversed(found)}.values())[::-1]
    for loss in shown:
        others = "" if every or models[loss.figure] == 1 else f" and {models[loss.figure] - 1} more"
        show = format_number if loss.figure in of.COST_FIGURES else format_percent
        more = format_number if loss.figure in of.COST_FIGURES else format_points
        best = f"`{loss.agent}`" + (f" and {loss.others} more" if loss.others else "")
        size = f", results of {loss.results:,} tokens" if sizes else ""
        words = (f"`{loss.model}`{size}{others}", loss.figure, best, show(loss.theirs), show(loss.ours))
        lines.append([*words, format_interval(loss.difference, more)])
    return markdown_table(["model", "figure", "does better", "its", "ours", "difference [95 %]"], lines)


def agent_descriptions(rows: Sequence[Row]) -> str:
    """What the agents of some rows are."""
    names = dict.fromkeys(row["agent"] for row in rows)
    lines = [[f"`{name}`", AGENTS[name].about] for name in names if name in AGENTS]
    return markdown_table(["agent", "what it is"], lines).replace("|--:|", "|---|")
