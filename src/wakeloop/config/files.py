"""Configuration files and environment variables, as read."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from wakeloop.errors import SettingsError
from wakeloop.settings import ALIASES, LoopSettings, advise_api_key, translate_word
from wakeloop.text.characters import quote_path
from wakeloop.text.wording import suggest

FENCE = "---"


@dataclass(frozen=True)
class Document:
    """A file's values, the line of each key (from 1), and the text below a front matter."""

    path: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    body: str = ""

    def error(self, key: str | None, why: str) -> SettingsError:
        """Return an error that names the file, the line and what is wrong there."""
        at = self.lines.get(key or "")
        line = f", line {at}" if at else ""
        return SettingsError(f"{quote_path(self.path)}{line}: {why}")


def read_yaml(path: Path) -> Document:
    """Read a YAML file that contains a mapping. Raises `SettingsError` with file and line."""
    return _parse_document(path, _read_text(path), first=1)


def read_markdown(path: Path) -> Document:
    """Read a Markdown file; the front matter between two lines of dashes contains the values."""
    text = _read_text(path)
    lines = text.splitlines()
    if not lines or lines[0].strip() != FENCE:
        return Document(path, body=text.strip())
    fences = [number for number, line in enumerate(lines) if line.strip() == FENCE]
    if len(fences) == 1:
        raise SettingsError(
            f"{quote_path(path)}, line 1: the front matter is not closed; end it with a line ---."
        )
    end = fences[1]
    front = "\n".join(lines[1:end])
    document = _parse_document(path, front, first=2)
    return Document(path, document.values, document.lines, "\n".join(lines[end + 1 :]).strip())


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(f"{quote_path(path)} is not UTF-8 text.") from None
    except OSError as error:
        raise SettingsError(f"{quote_path(path)} cannot be read: {error.strerror}.") from None


def _parse_document(path: Path, text: str, first: int) -> Document:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + first}" if mark is not None else ""
        raise SettingsError(
            f"{quote_path(path)}{line}: not valid YAML: {getattr(error, 'problem', error)}."
        ) from None
    except RecursionError:
        raise SettingsError(f"{quote_path(path)}: its values are nested too deeply.") from None
    if node is None:
        return Document(path)
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(f"{quote_path(path)}, line {first}: expected a mapping of keys to values.")
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + first
        if name in lines:
            raise SettingsError(f"{quote_path(path)}, line {line}: the key {name!r} occurs twice.")
        lines[name] = line
        if isinstance(value, yaml.MappingNode):
            for inner, _ in value.value:
                lines[f"{name}.{inner.value}"] = inner.start_mark.line + first
    return Document(path, {str(key): value for key, value in values.items()}, lines)


# -- read the environment variables WAKELOOP_… as settings -----------------------------------------------


PREFIX = "WAKELOOP_"
OTHER_VARIABLES = ("WAKELOOP_DB", "WAKELOOP_CONFIG", "WAKELOOP_PROFILE")  # not settings


def read_environment(other_keys: Iterable[str]) -> dict[str, Any]:
    """Return the settings, aliases and `other_keys` that the environment sets; values are not checked.

    A value is text, JSON where it is a mapping or a list, or null. Raises `SettingsError` for an unknown
    variable.
    """
    known = {PREFIX + key.upper(): key for key in (*LoopSettings.model_fields, *ALIASES, *other_keys)}
    found: dict[str, Any] = {}
    for variable, text in os.environ.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in known:
            name = variable.removeprefix(PREFIX)
            word = translate_word(name)
            meant = PREFIX + word.upper() if word else None
            hint = advise_api_key(name) or suggest(variable, (*known, *OTHER_VARIABLES), meant)
            raise SettingsError(f"Unknown variable {variable}. {hint}")
        if text:
            found[known[variable]] = _parse_variable(text)
    return found


def _parse_variable(text: str) -> Any:
    if text == "null":
        return None
    if text.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


# -- keys of loki that are not settings here, and what to use --------------------------------------------


NON_SETTING_ALIASES = MappingProxyType(  # loki's names for keys that are not settings
    {
        "function_calling_support": "function_calling",
        "instructions": "system_prompt",
        "prompt": "system_prompt",
    }
)
MODEL_OPTIONS = MappingProxyType(  # loki's keys that are passed to the model, and their names in LangChain
    {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
)
LOKI_ADVICE = MappingProxyType(  # what to use instead of loki's other keys
    {
        "it belongs to the model: in Python, pass it to the model, as in ChatOpenAI(…)": (
            "stream clients patches max_input_tokens user_agent"
        ),
        "use --tools, or tools: in a file": (
            "enabled_tools use_tools visible_tools mapping_tools global_tools"
        ),
        "use --mcp FILE, or mcp: in a file": (
            "enabled_mcp_servers mcp_servers mcp_server_support mapping_mcp_servers"
        ),
        "every thread is saved; --db chooses the database": (
            "save save_session save_shell_history agent_session"
        ),
        "nothing is compressed automatically; in Python, pre_model_hook can shorten requests": (
            "compression_threshold compress_threshold summarize_prompt summarization_prompt "
            "summary_context_prompt summary_prompt"
        ),
        "use a tool that reads documents": (
            "rag_embedding_model rag_reranker_model rag_top_k rag_chunk_size rag_template document_loaders "
            "documents"
        ),
        "agents have no such key; an agent is named by its file or folder": (
            "variables conversation_starters dynamic_instructions name version description"
        ),
        "the terminal view cannot be configured": (
            "highlight theme wrap wrap_code left_prompt right_prompt keybindings editor light_theme "
            "repl_prelude cmd_prelude"
        ),
        "wakeloop config shows the values, and wakeloop demo uses no model": "dry_run",
        "API keys come from the environment, such as OPENAI_API_KEY": "vault_password_file",
        "the calls of one reply run in parallel": "max_concurrent_jobs",
        "use --role, --agent and --thread": "prelude agent_prelude",
    }
)


def explain_loki_key(key: str) -> str | None:
    """Say what to use instead of a loki key that is not a setting here; None for other keys."""
    for advice, keys in LOKI_ADVICE.items():
        if key in keys.split():
            return f"{key!r} is a loki key that wakeloop does not have: {advice}."
    return None
