"""The verdict of a run: whether this model needs a list."""

from collections.abc import Iterator, Mapping, Sequence

from wakeloop.bench.agents import AGENTS, run_plain_loop
from wakeloop.bench.figures import Figures, compute_figures, group_rows, smallest_margin
from wakeloop.bench.journal import Row
from wakeloop.bench.study import Prices, Study
from wakeloop.bench.tables import format_number, format_percent
from wakeloop.text.characters import pluralize


def describe_verdict(rows: Sequence[Row], study: Study) -> Iterator[str]:
    """Yield a line for each agent and a sentence, for each model. Costs are those of a completed job."""
    for (model,), group in group_rows(rows, "model").items():
        found = _compute_by_agent(group, study)
        yield f"{model}:"
        for agent, figures in found.items():
            yield f"  {_describe(agent, figures, study)} ({pluralize(figures.runs, 'run')})"
        yield judge_model(str(model), found, study)


def describe_partial_verdict(rows: Sequence[Row], study: Study) -> Iterator[str]:
    """Yield a sentence for each model of a run that ended early.

    A job that only some agents have finished would count for those alone, so it is left out.
    """
    agents = {agent for agent in study.agents if AGENTS[agent].exists}
    for (model,), group in group_rows(rows, "model").items():
        compared: list[Row] = []
        for job in group_rows(group, "family", "parts", "seed", "results").values():
            if len(job) == len(agents):
                compared += job
        if not compared:
            yield f"No verdict on {model} yet: no job was finished by every agent."
            continue
        found = _compute_by_agent(compared, study)
        runs = pluralize(len(compared) // len(agents), "run")
        yield f"Partial verdict on {model}, {runs} per agent: {judge_model(str(model), found, study)}"


def judge_model(model: str, found: Mapping[str, Figures], study: Study) -> str:
    """Return one sentence: whether the study's subject pays for this model."""
    if not any(figures.completed.value for figures in found.values()):
        return f"{model} completes none of these jobs under any agent: try shorter ones, or another model."
    ours = found.get(study.subject)
    controls = {agent: figures for agent, figures in found.items() if _is_plain(agent)}
    if ours is None or not controls:
        return f"To learn whether {model} needs a list, compare {study.subject} with plain or asked 3."
    enough = {}
    least = ours.completed.value - smallest_margin(study)
    for agent, figures in controls.items():
        if figures.completed.value and figures.completed.value >= least:
            enough[agent] = figures
    mine = _describe(study.subject, ours, study)
    if enough:
        agent = min(enough, key=lambda name: enough[name].cost_completed)
        pair = f"{_describe(agent, enough[agent], study)}, {mine}"
        if enough[agent].cost_completed <= ours.cost_completed:
            return f"{pair}: you do not need a list."
        return f"{pair}: a list costs less."
    agent = max(controls, key=lambda name: controls[name].completed.value)
    pair = f"{mine}, {_describe(agent, controls[agent], study)}"
    if ours.completed.low <= controls[agent].completed.high:
        return f"{pair}: too few runs to tell."
    return f"{pair}: a list pays."


def format_cost(cost: float, study: Study) -> str:
    """Return a cost: in dollars if the study has prices, otherwise in tokens."""
    if study.prices == Prices():
        return f"{format_number(cost)} token{'' if cost == 1 else 's'}"
    return f"${format_number(cost)}"


def _compute_by_agent(rows: Sequence[Row], study: Study) -> dict[str, Figures]:
    found = {}
    for (agent,), group in group_rows(rows, "agent").items():
        found[str(agent)] = compute_figures(group, study)
    return found


def _describe(agent: str, figures: Figures, study: Study) -> str:
    completed = f"{agent} completes {format_percent(figures.completed.value)}"
    if not figures.completed.value:
        return completed
    return f"{completed} for {format_cost(figures.cost_completed, study)}"


def _is_plain(agent: str) -> bool:
    """Return whether an agent is a loop without a list."""
    return getattr(AGENTS[agent].run, "func", AGENTS[agent].run) is run_plain_loop
