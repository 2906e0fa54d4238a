"""From a run's rows to a profile: where a model's list pays."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wakeloop.bench.figures import completion, group_rows, paired_differences, smallest_margin
from wakeloop.bench.journal import Row
from wakeloop.bench.models import profile_key
from wakeloop.bench.statistics import Interval, bootstrap_mean
from wakeloop.bench.study import Study
from wakeloop.platform.model_profile import ANY_LENGTH, read_profile

OFF, ON, GIVEN = "plain", "wakeloop", "list given"  # the agents that are compared
SETTINGS: Mapping[str, dict[str, Any]] = {  # loki's todo tools exist only while auto_continue is on
    "off": {"dialect": "loki", "auto_continue": False},
    "on": {},
    "given": {},
}
Profile = dict[str, dict[str, dict[str, Any]]]


def make_profile(rows: Sequence[Row], study: Study) -> Profile:
    """Return for each model and length whether the list is `off`, `on` or `given`, and what says so.

    It is on where that completes more than the plain loop, by at least what matters and beyond chance; given
    where that does as much again to the list of the model's own. A model without both rows is left out.
    """
    found: Profile = {}
    for (model,), group in group_rows(rows, "model").items():
        lengths = {ANY_LENGTH: group} | {
            str(parts): some for (parts,), some in group_rows(group, "parts").items()
        }
        entries = {length: entry for length, some in lengths.items() if (entry := _entry(some, study))}
        if entries:
            found[profile_key(str(model))] = entries
    return found


def _entry(rows: Sequence[Row], study: Study) -> dict[str, Any] | None:
    agents = {str(agent): some for (agent,), some in group_rows(rows, "agent").items()}
    if OFF not in agents or ON not in agents:
        return None
    choice = "on" if _is_better(agents[ON], agents[OFF], study) else "off"
    if GIVEN in agents and _is_better(agents[GIVEN], agents[ON if choice == "on" else OFF], study):
        choice = "given"
    shares = {
        name: round(sum(row["completed"] for row in agents[agent]) / len(agents[agent]), 4)
        for name, agent in (("off", OFF), ("on", ON), ("given", GIVEN))
        if agent in agents
    }
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
    """Write a profile; what the file says of other models stays."""
    before = read_profile(file) if file.exists() else {}
    text = json.dumps({"models": before | found}, indent=1)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(file)  # whole, or not at all: it holds other models, too
