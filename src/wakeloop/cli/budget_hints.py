"""Say which budget ended a run, and how to raise it."""

from collections.abc import Mapping
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.final_state import resume_command
from wakeloop.cli.spec_builder import LIMIT_OPTIONS, settings_from_spec
from wakeloop.cli.store import DatabaseFile
from wakeloop.errors import SettingsError
from wakeloop.loop.gates import LIMITS
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.settings import resolve_aliases


def format_raise_hint(
    session: Mapping[str, Any],
    spec: AgentSpec | None,
    own: Mapping[str, Any],
    thread: str,
    database: DatabaseFile,
) -> str | None:
    """Return the command that raises the budget which ended the last run; None if no budget did."""
    name, limit = find_spent_budget(session, spec, own)
    if name is None or spec is None:
        return None
    goes_on = session["open"] or session["state"] == "idle"  # idle with nothing open: a goal is not met
    message = [] if goes_on else ["your message"]  # a settled list needs a new request
    if spec.agent:
        command = resume_command(thread, database, *message, "--agent", spec.agent)
        return f"To raise the budget: change {name} in the agent's file, then {command}"
    if limit is None:
        return None
    command = resume_command(thread, database, *message, LIMIT_OPTIONS[name], format_limit(2 * limit))
    return f"To raise the budget: {command}"


def format_set_hint(session: Mapping[str, Any], spec: AgentSpec, own: Mapping[str, Any]) -> str | None:
    """Return the same hint for a chat, where the command is `.set`."""
    name, limit = find_spent_budget(session, spec, own)
    if name is None or limit is None:
        return None
    if spec.agent:
        return f"To raise the budget: change {name} in the agent's file"
    return f"To raise the budget: .set {name} {format_limit(2 * limit)}"


def describe_budget(
    session: Mapping[str, Any], spec: AgentSpec, own: Mapping[str, Any], typed: Mapping[str, Any]
) -> str | None:
    """Say how much this run has of the budget that ended the last one; None if no budget did."""
    name, limit = find_spent_budget(session, spec, own)
    if name is None:
        return None
    has = "no limit" if limit is None else format_limit(limit)
    hint = ""
    if limit is not None and name not in typed and not spec.agent:
        hint = f"; {LIMIT_OPTIONS[name]} {format_limit(2 * limit)} raises it"
    return f"The last run used up its {name}. This run has {has}{hint}."


def find_spent_budget(
    session: Mapping[str, Any], spec: AgentSpec | None, own: Mapping[str, Any]
) -> tuple[str | None, Any]:
    """Return the setting whose budget ended the last run, and its value now, with the thread's own values."""
    name = LIMITS.get(str(session.get("reason")))
    if name is None or spec is None:
        return name, None
    try:
        base = settings_from_spec(spec)
        return name, getattr(apply_overrides(base, check_overrides(base, own)), name)
    except SettingsError:  # stored by a newer release
        return name, None


def format_limit(limit: float) -> str:
    """Format a budget the way a user would type it."""
    return f"{limit:.12f}".rstrip("0").rstrip(".")


def merge_typed_settings(typed: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the thread's own values updated by the typed ones; {} if it sets none of them itself."""
    own = resolve_aliases(own)
    over = {key: value for key, value in typed.items() if key in own}
    return {**own, **over} if over else {}
