"""What a run says of a model: verdict and profile."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wakeloop.bench.agents import AGENTS, run_plain_loop
from wakeloop.bench.figures import (
    Figures,
    Interval,
    bootstrap_mean,
    completion,
    compute_figures,
    group_rows,
    paired_differences,
    smallest_margin,
)
from wakeloop.bench.journal import Row
from wakeloop.bench.models import profile_key
from wakeloop.bench.study import Prices, Study
from wakeloop.bench.tables import format_number, format_percent
from wakeloop.platform.model_profile import ANY_LENGTH, read_profile
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
    return AGENTS[agent].run.func is run_plain_loop


OFF, ON, GIVEN = "plain", "wakeloop", "list given"  # the agents that are compared
SETTINGS: Mapping[str, dict[str, Any]] = {  # loki's todo tools exist only while auto_continue is on
    "off": {"dialect": "loki", "auto_continue": False},
    "on": {},
    "given": {},
}
Profile = dict[str, dict[str, dict[str, Any]]]


def make_profile(rows: Sequence[Row], study: Study) -> Profile:
    """Recommend a list for each model and length: `off`, `on` or `given`, with the evidence.

    `on` means that the agent with a list completes more jobs than the plain loop, by a margin that matters
    and is not chance. `given` means the same for a list that comes with the task, against the better
    of those two. A model without rows for both is left out.
    """
    found: Profile = {}
    for (model,), group in group_rows(rows, "model").items():
        lengths = {ANY_LENGTH: group}
        for (parts,), some in group_rows(group, "parts").items():
            lengths[str(parts)] = some
        entries = {}
        for length, some in lengths.items():
            entry = _entry(some, study)
            if entry:
                entries[length] = entry
        if entries:
            found[profile_key(str(model))] = entries
    return found


def _entry(rows: Sequence[Row], study: Study) -> dict[str, Any] | None:
    agents = {str(agent): some for (agent,), some in group_rows(rows, "agent").items()}
    if OFF not in agents or ON not in agents:
        return None
    choice, best = "off", agents[OFF]
    if _is_better(agents[ON], best, study):
        choice, best = "on", agents[ON]
    if GIVEN in agents and _is_better(agents[GIVEN], best, study):
        choice = "given"
    shares = {}
    for name, agent in (("off", OFF), ("on", ON), ("given", GIVEN)):
        if agent in agents:
            share = sum(map(completion, agents[agent])) / len(agents[agent])
            shares[name] = round(share, 4)
    runs = len(agents[ON])
    return {
        "list": choice,
        "settings": SETTINGS[choice],
        "completed": shares,
        "runs": runs,
        "study": study.hash,
    }


def _is_better(some: Sequence[Row], others: Sequence[Row], study: Study) -> bool:
    more: Interval = bootstrap_mean(paired_differences(some, others, completion))
    return more.low > 0 and more.value >= smallest_margin(study)


def write_profile(file: Path, found: Profile) -> None:
    """Write a profile into a file; its entries for other models stay."""
    before = read_profile(file) if file.exists() else {}
    text = json.dumps({"models": before | found}, indent=1)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(file)  # atomic, because the file has other models, too
