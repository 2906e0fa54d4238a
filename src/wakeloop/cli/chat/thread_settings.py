"""Settings of one thread, as `.set` changes them."""

from collections.abc import Mapping
from typing import Any, get_args

from wakeloop.cli.agent_spec import YAML_WORDS, parse_value
from wakeloop.cli.failures import usage_error
from wakeloop.cli.spec_builder import LIMIT_OPTIONS, require_prices
from wakeloop.config.levels import NON_SETTINGS, canonical_key, is_thread_setting
from wakeloop.config.loki_keys import MODEL_OPTIONS, explain_loki_key
from wakeloop.display.formatting import to_json
from wakeloop.loop.overrides import check_overrides
from wakeloop.settings import ALIASES, LoopSettings, check_setting_name, resolve_aliases

NULL_WORDS = ("null", *(word for word, value in YAML_WORDS.items() if value is None))


def set_value(base: LoopSettings, own: Mapping[str, Any], given: str, text: str) -> dict[str, Any]:
    """Return the thread's overrides with a new value; null removes the override.

    If null is a valid value of the setting (`continuation_prompt`), it is set instead. Raises `SettingsError`
    or `CommandError` for a key or a value that a thread cannot override.
    """
    key = resolve_key(given)
    if text in NULL_WORDS and not accepts_null(key):
        return remove_value(own, given)
    value = None if text in NULL_WORDS else parse_text(text) if accepts_any_text(key) else parse_value(text)
    new = {**resolve_aliases(own), key: value}
    check_overrides(base, new)
    if key in LIMIT_OPTIONS:
        require_prices(base.model_copy(update=new))
    read = getattr(base.model_copy(update={key: value}), key)
    return {**new, key: list(read) if isinstance(read, tuple) else read}


def remove_value(own: Mapping[str, Any], given: str) -> dict[str, Any]:
    """Return the thread's overrides without one of them."""
    key = resolve_key(given)
    return {name: value for name, value in resolve_aliases(own).items() if name != key}


def resolve_key(given: str) -> str:
    """Return the name of a setting or alias; refuse one that a thread cannot override."""
    if canonical_key(given) in NON_SETTINGS or given in MODEL_OPTIONS:
        raise usage_error(
            f"{given!r} cannot be set in a thread. Choose it with a role, an agent or a chat option."
        )
    if way := explain_loki_key(given):
        raise usage_error(way)
    key = ALIASES.get(given, given)
    check_setting_name(key)
    if not is_thread_setting(key):
        raise usage_error(f"{given!r} is fixed in a thread. Set it in a role, an agent or a chat option.")
    return key


def accepts_null(key: str) -> bool:
    """Whether null is a valid value of a setting."""
    return type(None) in get_args(LoopSettings.model_fields[key].annotation)


def accepts_any_text(key: str) -> bool:
    """Whether a setting takes any string, so that its value is not parsed as JSON."""
    annotation = LoopSettings.model_fields[key].annotation
    return annotation == str | None


def parse_text(text: str) -> str:
    """Return a string as typed; a JSON string loses its quotes."""
    value = parse_value(text)
    return value if isinstance(value, str) else text


def describe_value(base: LoopSettings, own: Mapping[str, Any], given: str) -> str:
    """Return a sentence with the current value of a setting."""
    key = resolve_key(given)
    if key in own:
        return f"{key} is {to_json(own[key])} in this thread (default: {to_json(getattr(base, key))})."
    return f"{key} is {to_json(getattr(base, key))}; this thread does not override it."
