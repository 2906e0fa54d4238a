"""The tables of a study, as Markdown."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from wakeloop.bench import figures as of
from wakeloop.bench.agents import AGENTS
from wakeloop.bench.figures import MIN_RUNS, Interval, group_names, group_rows
from wakeloop.bench.journal import Row
from wakeloop.bench.study import Study


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table: the first column is left-aligned, the others, for figures, right-aligned."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for row in rows:
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def format_percent(share: float) -> str:
    """Return a share in percent, with a decimal only next to 0 % and 100 %."""
    if math.isnan(share):
        return ""
    if share in (0, 1) or 0.01 <= share <= 0.99:  # noqa: PLR2004
        return f"{share:.0%}"
    return f"{share:.1%}"


def format_interval(interval: Interval, show: Callable[[float], str] = format_percent) -> str:
    """Return a value with its interval, if it has one."""
    if math.isinf(interval.high):
        return show(interval.value)
    return f"{show(interval.value)} [{show(interval.low)} to {show(interval.high)}]"


def format_number(value: float) -> str:
    """Return a number with three significant digits, or without decimals from 100 on."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "never"
    if abs(value) < 100:  # noqa: PLR2004 - three digits are enough
        return f"{value:.3g}"
    return f"{value:,.0f}"


def format_multiple(one: float, other: float) -> str:
    """Return `one` as a multiple of `other`; nothing where that is nothing, or without end."""
    if not other or math.isinf(other):
        return ""
    multiple = one / other
    if math.isnan(multiple):
        return ""
    if math.isinf(multiple):
        return "never"
    return f"{multiple:.2f}"


def format_points(share: float) -> str:
    """Return a difference of shares in percentage points."""
    return f"{100 * share:+.1f}"


AVERAGES: dict[str, tuple[of.Figure, Callable[[float], str]]] = {
    "checks": (lambda row: row["share"], format_percent),
    "list": (lambda row: row["listed"] > 0, format_percent),
    "early stop": (of.is_early_stop, format_percent),
    "false “done”: text": (of.is_false_claim, format_percent),
    "signal": (of.is_false_signal, format_percent),
    "damage": (of.is_damaged, format_percent),
    "failed calls": (of.is_hidden_failure, format_percent),
    "ceiling, error": (lambda row: row["end"] in ("ceiling", "error"), format_percent),
    "requests": (lambda row: row["requests"], format_number),
    "tokens in": (lambda row: row["input"], format_number),
    "cached": (lambda row: row["cached"], format_number),
    "out": (lambda row: row["output"], format_number),
    "seconds": (lambda row: row["seconds"], "{:.2f}".format),
}


def agents_table(rows: Sequence[Row], study: Study) -> str:
    """Return a table for each model, with a line for each agent."""
    head = ["agent", "cost of a completed job", "completed [95 %]", "runs", *AVERAGES, "cost of a run"]
    parts = []
    for (model,), group in group_rows(rows, "model").items():
        lines = []
        for (agent,), some in group_rows(group, "agent").items():
            found = of.compute_figures(some, study)
            cost, completed = format_number(found.cost_completed), format_interval(found.completed)
            line = [f"`{agent}`", cost, completed, str(found.runs)]
            for figure, show in AVERAGES.values():
                line.append(show(of.average(some, figure)))
            lines.append([*line, format_number(of.average(some, study.prices.cost))])
        parts.append(f"**`{model}`**\n\n" + markdown_table(head, lines))
    return "\n\n".join(parts)


def table_by(
    rows: Sequence[Row], key: str, cell: Callable[[Sequence[Row], str], str], title: str = "`{}`"
) -> str:
    """Return a table with a line for each agent and a column for each value of a key."""
    names = group_names(rows, key)
    lines = []
    for (agent,), some in group_rows(rows, "agent").items():
        groups = group_rows(some, key)
        line = [f"`{agent}`"]
        for name in names:
            line.append(cell(groups.get((name,), ()), name))
        lines.append(line)
    return markdown_table(["agent", *map(title.format, names)], lines)


def overview_table(rows: Sequence[Row], study: Study) -> str:
    """Return the cost of a job that an agent completes, what it completes, and requests, on each model.

    The cost is a multiple of what the reference spends.
    """
    groups = group_rows(rows, "model", "agent")

    def cell(some: Sequence[Row], model: str) -> str:
        theirs = groups.get((model, study.reference), ())
        if not some or not theirs:
            return ""
        found, other = of.compute_figures(some, study), of.compute_figures(theirs, study)
        cost = format_multiple(found.cost_completed, other.cost_completed)
        text = f"{cost} · {format_percent(found.completed.value)} ({format_number(found.requests)})"
        if found.false_signal:
            text += f", {format_percent(found.false_signal)} falsely done"
        if found.damage:
            text += f", {format_percent(found.damage)} damaged"
        return text

    return table_by(rows, "model", cell)


def tables_by_size(rows: Sequence[Row], study: Study, show: Callable[[Sequence[Row], Study], str]) -> str:
    """Return a table for each size of tool results, with a heading if there are several."""
    groups = sorted(group_rows(rows, "results").items())
    tables = []
    for (size,), some in groups:
        table = show(some, study)
        if len(groups) > 1:
            table = f"**Results of {size:,} tokens**\n\n{table}"
        tables.append(table)
    return "\n\n".join(tables)


SIGNS = {
    "more": "↑",
    "less": "↓",
    "a difference too small to matter": "≈",
    "no difference that matters": "=",
    "no difference shown": "?",
}


def comparison_table(rows: Sequence[Row], study: Study) -> str:
    """Return every agent against the reference on each model, including those without a difference."""
    found = of.compare_agents(rows, study.reference, of.primary_outcome(study))
    cells = {(one.agent, one.model): one for one in found}
    if not cells:
        return "There is nothing to compare."
    counts_requests = study.primary == "requests"
    unit = "requests" if counts_requests else "points"
    show = format_number if counts_requests else format_points

    def cell(some: Sequence[Row], model: str) -> str:
        one = cells.get((some[0]["agent"], model)) if some else None
        if one is None:
            return ""
        return f"{format_interval(one.difference, show)} {SIGNS[of.judge_difference(one, study)]}"

    legend = ", ".join(f"{sign} {meaning}" for meaning, sign in SIGNS.items())
    others = [row for row in rows if row["agent"] != study.reference]
    caption = f"More {unit} than `{study.reference}`, with the 95 % interval; {legend}."
    return f"{caption}\n\n{table_by(others, 'model', cell)}"


def losses_table(rows: Sequence[Row], study: Study, *, every: bool = True) -> str:
    """Return where another agent does better than the study's subject: on every model, or on the worst."""
    found = of.find_losses(rows, study)
    if max(map(len, group_rows(rows, "model", "results", "agent").values()), default=0) < MIN_RUNS:
        return "Too few runs to compare."
    if not found:
        return f"No other agent does better than `{study.subject}` in any figure beyond chance."
    models = Counter(loss.figure for loss in found)
    sizes = len(group_rows(rows, "results")) > 1
    shown = found if every else _first_of_each_figure(found)
    lines = []
    for loss in shown:
        where = f"`{loss.model}`"
        if sizes:
            where += f", results of {loss.results:,} tokens"
        if not every:
            where += _and_more(models[loss.figure] - 1)
        is_cost = loss.figure in of.COST_FIGURES
        show = format_number if is_cost else format_percent
        show_difference = format_number if is_cost else format_points
        best = f"`{loss.agent}`{_and_more(loss.others)}"
        figures = (show(loss.theirs), show(loss.ours), format_interval(loss.difference, show_difference))
        lines.append([where, loss.figure, best, *figures])
    return markdown_table(["model", "figure", "does better", "its", "ours", "difference [95 %]"], lines)


def _first_of_each_figure(losses: Sequence[of.Loss]) -> list[of.Loss]:
    """Return the first loss of each figure, in their order: losses are sorted, the largest first."""
    first: dict[str, of.Loss] = {}
    for loss in losses:
        first.setdefault(loss.figure, loss)
    return list(first.values())


def _and_more(others: int) -> str:
    return f" and {others} more" if others else ""


def agent_descriptions(rows: Sequence[Row]) -> str:
    """Return a table that describes the agents of some rows."""
    lines = []
    for (agent,) in group_rows(rows, "agent"):
        if str(agent) in AGENTS:
            lines.append([f"`{agent}`", AGENTS[str(agent)].about])
    return markdown_table(["agent", "what it is"], lines).replace("|--:|", "|---|")
