"""Find keys, model servers and models on this machine."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import strip_credentials
from wakeloop.config.levels import config_folder, read_global_levels
from wakeloop.errors import SettingsError

KEY_PROVIDERS = {  # environment variables, and LangChain's name for the provider
    "OPENAI_API_KEY": "openai",
    "ANTHROPIC_API_KEY": "anthropic",
    "GOOGLE_API_KEY": "google_genai",
    "MISTRAL_API_KEY": "mistralai",
    "GROQ_API_KEY": "groq",
    "DEEPSEEK_API_KEY": "deepseek",
    "XAI_API_KEY": "xai",
    "COHERE_API_KEY": "cohere",
    "OPENROUTER_API_KEY": "openrouter",
    "TOGETHER_API_KEY": "together",
    "FIREWORKS_API_KEY": "fireworks",
}
SERVERS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234, "vLLM": 8000}  # their default ports
CONNECT_TIMEOUT = 0.7  # seconds that a server may stay silent
TOTAL_TIMEOUT = 2.0  # seconds for the whole answer
MAX_LISTED = 20  # models of a server shown in one line
TOOL_CALLING_FAMILIES = (
    "gpt-oss",
    "gpt-",
    "claude",
    "gemini",
    "qwen",
    "llama",
    "mistral",
    "deepseek",
    "gemma",
)
NON_CHAT_MODEL = re.compile(
    r"embed|rerank|whisper|tts|speech|audio|image|dall-e|moderation|guard|vision-only"
)
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class ModelServer:
    """A server that listed its models: on this machine, or at the user's address.

    Its `url` has no credentials; with `secret`, the address has some, so it stays in the environment.
    """

    name: str
    url: str
    models: Sequence[str]
    secret: bool = False

    @property
    def summary(self) -> str:
        """The server in one line."""
        return f"{self.name} at {self.url}: {format_models(self.models)}"


@dataclass(frozen=True)
class ModelSources:
    """The keys (names of variables, never their values) and servers that were found.

    `silent` are the user's own addresses where no server listed its models, each with its source.
    """

    keys: Sequence[str]
    servers: Sequence[ModelServer]
    silent: Sequence[tuple[str, str]] = ()

    @property
    def choices(self) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Pairs of a label and config values; a model that ends in ":" still needs a name."""
        found: list[tuple[str, Mapping[str, str]]] = []
        for server in self.servers:
            for model in sorted(server.models, key=rank_model):
                address = {} if server.secret else {"base_url": server.url}
                found.append((f"{model} ({server.name})", {"model": f"openai:{model}", **address}))
        for key in self.keys:
            provider = KEY_PROVIDERS[key]
            found.append((f"{provider}, using {key}", {"model": f"{provider}:"}))
        return found


def discover_models(say: Callable[[str], None] = lambda _: None) -> ModelSources:
    """Look for keys in the environment and servers on this machine; `say` each as soon as it is found."""
    keys = [name for name in KEY_PROVIDERS if os.environ.get(name, "").strip()]
    say(f"keys: {', '.join(keys) or 'none'}")
    servers, silent = [], []
    usual = {f"http://127.0.0.1:{port}/v1": name for name, port in SERVERS.items()}
    own = {}
    for source, url in read_own_addresses():
        local = url.replace("localhost", "127.0.0.1")
        own[local if local in usual else url] = source
    names = {**own, **usual}
    with ThreadPoolExecutor(len(names)) as pool:
        answers = pool.map(query_server, names.values(), names)
        for url, server in zip(names, answers, strict=True):
            if server is not None:
                servers.append(server)
                say(f"server: {server.summary}")
            elif url in own:
                silent.append((strip_credentials(url), own[url]))
                say(f"server: none at {strip_credentials(url)} ({own[url]}) that lists its models")
    if not servers:
        looked = ", ".join(f"{name} ({port})" for name, port in SERVERS.items())
        say(f"server: none on this machine; looked for {looked}")
    return ModelSources(keys, servers, silent)


def read_own_addresses() -> Iterator[tuple[str, str]]:
    """Yield the user's own addresses, each after its source, the one that a run uses first."""
    found = [("OPENAI_BASE_URL", os.environ.get("OPENAI_BASE_URL", ""))]
    with suppress(SettingsError, OSError):  # a wrong file is reported by the first command that needs it
        for level in read_global_levels(config_folder()):
            found.append((Path(level.source).name, str(level.values.get("base_url") or "")))
    for source, url in reversed(found):
        if url.strip().startswith(("http://", "https://")):
            yield source, url.strip().rstrip("/")


def rank_model(model: str) -> int:
    """Rank a model for a menu: known tool callers first, models that cannot chat last."""
    name = model.rpartition("/")[2].lower()
    if NON_CHAT_MODEL.search(name):
        return len(TOOL_CALLING_FAMILIES) + 1
    for rank, family in enumerate(TOOL_CALLING_FAMILIES):
        if name.startswith(family):
            return rank
    return len(TOOL_CALLING_FAMILIES)


def format_models(models: Sequence[str]) -> str:
    """List models in one line, at most as many as a person reads."""
    if not models:
        return "no model is loaded"
    more = len(models) - MAX_LISTED
    listed = ", ".join(models[:MAX_LISTED])
    return f"{listed} and {more:,} more" if more > 0 else listed


def query_server(name: str, url: str) -> ModelServer | None:
    """Ask a server for its models; None if nothing answers, or something else does.

    Only the addresses that the user gave get the user's key.
    """
    import httpx

    key = os.environ.get("OPENAI_API_KEY", "").strip() if name not in SERVERS else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    deadline, body = time.monotonic() + TOTAL_TIMEOUT, b""
    try:
        with (
            httpx.Client(headers=headers, timeout=CONNECT_TIMEOUT, trust_env=False) as client,
            client.stream("GET", f"{url}/models") as response,
        ):
            for part in response.iter_bytes():
                body += part
                if time.monotonic() > deadline or len(body) > MAX_BYTES:
                    return None
        answer = json.loads(body) if response.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None
    models = parse_model_list(answer)
    shown = strip_credentials(url)
    return None if models is None else ModelServer(name, shown, models, secret=shown != url)


def parse_model_list(answer: Any) -> list[str] | None:
    """Return the model names in an OpenAI-style answer; None for any other answer."""
    if not isinstance(answer, dict):
        return None
    rows = answer.get("data")
    # Ollama without models answers {"object": "list", "data": null}.
    if rows is None and answer.get("object") != "list":
        return None
    if not isinstance(rows, list | None):
        return None
    names = [row.get("id") for row in rows or () if isinstance(row, dict)]
    return [name for name in names if isinstance(name, str) and name.isprintable() and name.strip()]
