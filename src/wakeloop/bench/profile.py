"""Makes profiles: where a todo list pays off for a model."""

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
