"""The tables of a study, as Markdown."""

import math
from collections.abc import Callable, Iterable, Sequence

from wakeloop.bench import figures as of
from wakeloop.bench.agents import AGENTS
from wakeloop.bench.figures import Figures, split
from wakeloop.bench.journal import Row
from wakeloop.bench.statistics import Interval
from wakeloop.bench.study import Study

MOST_LOSSES = 40
FAR = 10.0  # from here on a figure has no decimals


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is words, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def percent(share: float) -> str:
    """A share as people write it."""
    if math.isnan(share):
        return ""
    return f"{share:.0%}" if share in (0, 1) or 0.01 <= share <= 0.99 else f"{share:.1%}"  # noqa: PLR2004


def between(interval: Interval, show: Callable[[float], str] = percent) -> str:
    """A value with its interval."""
    return f"{show(interval.value)} [{show(interval.low)} to {show(interval.high)}]"


def number(value: float) -> str:
    """A number with as many decimals as it needs."""
    if math.isinf(value):
        return "never"
    return "" if math.isnan(value) else f"{value:,.0f}" if abs(value) >= FAR else f"{value:.3g}"


def points(share: float) -> str:
    """A difference of shares, in points of a hundred."""
    return f"{100 * share:+.1f}"


COLUMNS: dict[str, Callable[[Figures], str]] = {
    "runs": lambda f: str(f.runs),
    "completed [95 %]": lambda f: between(f.completed),
    "checks": lambda f: percent(f.share),
    "list": lambda f: percent(f.listed),
    "early stop": lambda f: percent(f.early),
    "false “done”: text": lambda f: percent(f.false_text),
    "signal": lambda f: percent(f.false_signal),
    "damage": lambda f: percent(f.damage),
    "failed calls": lambda f: percent(f.failed),
    "ceiling, error": lambda f: percent(f.stopped),
    "requests": lambda f: number(f.requests),
    "tokens in": lambda f: number(f.input),
    "of it cached": lambda f: number(f.cached),
    "out": lambda f: number(f.output),
    "seconds": lambda f: f"{f.seconds:.2f}",
    "cost": lambda f: number(f.cost),
    "a completed job": lambda f: number(f.cost_completed),
}


def agents(rows: Sequence[Row], study: Study) -> str:
    """A table for each model: a line an agent."""
    parts = []
    for (model,), group in split(rows, "model").items():
        lines = [
            [f"`{agent}`", *(show(of.figures(some, study)) for show in COLUMNS.values())]
            for (agent,), some in split(group, "agent").items()
        ]
        parts.append(f"**`{model}`**\n\n" + table(["agent", *COLUMNS], lines))
    return "\n\n".join(parts)


def comparisons(rows: Sequence[Row], study: Study) -> str:
    """Every agent beside the reference, model by model; those without a difference, too."""
    lines = [
        [
            f"`{one.model}`, `{one.agent}`",
            str(one.pairs),
            between(one.difference, points),
            f"{one.chance:.3f}" if one.chance >= 0.001 else "< 0.001",  # noqa: PLR2004
            of.verdict(one, study),
        ]
        for one in of.compared(rows, study.reference, of.primary(study))
    ]
    head = ["model, agent", "pairs", "points more [95 %]", "chance (Holm)", "verdict"]
    return table(head, lines) if lines else "There is nothing to compare with."


def at_equal_spend(rows: Sequence[Row], study: Study) -> str:
    """What each agent completes for so many times what the reference spends on the same tasks."""
    parts = []
    for (model,), group in split(rows, "model").items():
        by_agent = split(group, "agent")
        budgets = of.budgets_of(by_agent.get((study.reference,), []), study)
        if not budgets:
            continue
        lines = [
            [f"`{agent}`", *(percent(of.within(some, study, budgets, times).value) for times in of.BUDGETS)]
            for (agent,), some in by_agent.items()
        ]
        parts.append(
            f"**`{model}`**\n\n" + table(["agent", *(f"{times:g} ×" for times in of.BUDGETS)], lines)
        )
    return "\n\n".join(parts)


def by_length(rows: Sequence[Row], study: Study) -> str:
    """A table for each model: completed, requests, tokens in, by the number of parts and size of results."""
    parts = []
    for (model,), group in split(rows, "model").items():
        sizes = sorted({(row["results"], row["parts"]) for row in group})
        lines = [
            [f"`{agent}`", *_cells(some, sizes, study)] for (agent,), some in split(group, "agent").items()
        ]
        head = [f"{parts} parts" + (f", {results} tokens" if results else "") for results, parts in sizes]
        parts.append(f"**`{model}`**: completed · requests · tokens in\n\n" + table(["agent", *head], lines))
    return "\n\n".join(parts)


def _cells(rows: Sequence[Row], sizes: Sequence[tuple[int, int]], study: Study) -> Iterable[str]:
    groups = split(rows, "results", "parts")
    for size in sizes:
        some = groups.get(size)
        if some is None:
            yield ""
            continue
        found = of.figures(some, study)
        yield f"{percent(found.completed.value)} · {number(found.requests)} · {number(found.input)}"


def by_kind(rows: Sequence[Row], study: Study) -> str:
    """What each agent completes of each kind of task, over all models."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = []
    for (agent,), some in split(rows, "agent").items():
        groups = split(some, "kind")
        found = [of.figures(groups[kind,], study) if (kind,) in groups else None for kind in kinds]
        lines.append([f"`{agent}`", *(percent(one.completed.value) if one else "" for one in found)])
    return table(["agent", *kinds], lines)


def losses(rows: Sequence[Row], study: Study) -> str:
    """Where another agent does better than the study's subject."""
    found = of.losses(rows, study)
    if not found:
        return (
            f"In nothing that was measured does another agent do better than `{study.subject}` beyond chance."
        )
    lines = []
    for loss in found[:MOST_LOSSES]:
        show = percent if loss.figure in ("completed", "damage after completion") else number
        more = points if show is percent else number
        words = (f"`{loss.model}`", loss.figure, f"`{loss.agent}`", show(loss.theirs), show(loss.ours))
        lines.append([*words, between(loss.difference, more)])
    head = ["model", "figure", "does better", "its", "ours", "difference [95 %]"]
    rest = f"\n\n… and {len(found) - MOST_LOSSES} more." if len(found) > MOST_LOSSES else ""
    return table(head, lines) + rest


def who(rows: Sequence[Row]) -> str:
    """What the agents of some rows are."""
    names = dict.fromkeys(row["agent"] for row in rows)
    lines = [[f"`{name}`", AGENTS[name].about] for name in names if name in AGENTS]
    return table(["agent", "what it is"], lines).replace("|--:|", "|---|")
