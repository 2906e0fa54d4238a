"""Which budget ended a run, and how to raise it."""

from collections.abc import Mapping
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.final_state import resume_command
from wakeloop.cli.recipe_builder import LIMIT_OPTIONS, settings_from_recipe
from wakeloop.cli.store import DatabaseFile
from wakeloop.errors import SettingsError
from wakeloop.loop.gates import LIMITS
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.settings import canonical


def format_raise_hint(
    session: Mapping[str, Any],
    recipe: AgentSpec | None,
    own: Mapping[str, Any],
    thread: str,
    place: DatabaseFile,
) -> str | None:
    """The line that says how to raise the budget which ended the last run; None where none did."""
    name, limit = find_spent_budget(session, recipe, own)
    if name is None or recipe is None:
        return None
    message = [] if session["open"] else ["your message"]  # a settled list is not gone on with
    if recipe.agent:
        command = resume_command(thread, place, *message, "--agent", recipe.agent)
        return f"To give it more: raise {name} in the agent's file, then {command}"
    if limit is None:
        return None
    command = resume_command(thread, place, *message, LIMIT_OPTIONS[name], format_limit(2 * limit))
    return f"To give it more: {command}"


def format_set_hint(session: Mapping[str, Any], recipe: AgentSpec, own: Mapping[str, Any]) -> str | None:
    """The same in a chat."""
    name, limit = find_spent_budget(session, recipe, own)
    if name is None or limit is None:
        return None
    way = f"raise {name} in the agent's file" if recipe.agent else f".set {name} {format_limit(2 * limit)}"
    return f"To give it more: {way}"


def describe_budget(
    session: Mapping[str, Any], recipe: AgentSpec, own: Mapping[str, Any], typed: Mapping[str, Any]
) -> str | None:
    """What a thread has of the budget that ended its last run; None where none did."""
    name, limit = find_spent_budget(session, recipe, own)
    if name is None:
        return None
    has = "no limit" if limit is None else format_limit(limit)
    raised = limit is None or name in typed or recipe.agent
    hint = "" if raised else f" ({LIMIT_OPTIONS[name]} {format_limit(2 * limit)} gives it more)"
    return f"Its last run spent its {name}; this one has {has}{hint}."


def find_spent_budget(
    session: Mapping[str, Any], recipe: AgentSpec | None, own: Mapping[str, Any]
) -> tuple[str | None, Any]:
    """The setting whose budget ended the last run, and what it is now in a thread with values of its own."""
    name = LIMITS.get(str(session.get("reason")))
    if name is None or recipe is None:
        return name, None
    try:
        base = settings_from_recipe(recipe)
        return name, getattr(apply_overrides(base, check_overrides(base, own)), name)
    except SettingsError:  # of a newer release
        return name, None


def format_limit(limit: float) -> str:
    """A budget as it is typed."""
    return f"{limit:.12f}".rstrip("0").rstrip(".")


def merge_typed_settings(typed: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A thread's own values with what is typed now; none where it sets nothing of that itself."""
    own = canonical(own)
    over = {key: value for key, value in typed.items() if key in own}
    return {**own, **over} if over else {}
