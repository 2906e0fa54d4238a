"""What there is on this machine: keys, servers, models."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Timer
from typing import Any

KEY_PROVIDERS = {  # variables, and how LangChain calls who gives such a key
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
SERVERS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234, "vLLM": 8000}  # their usual ports
CONNECT_TIMEOUT = 0.7  # seconds that a server may be silent
TOTAL_TIMEOUT = 2.0  # seconds that it has to tell all its models
MAX_LISTED = 20  # models of a server in a line
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
)  # that call tools
NON_CHAT_MODEL = re.compile(
    r"embed|rerank|whisper|tts|speech|audio|image|dall-e|moderation|guard|vision-only"
)
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class ModelServer:
    """A server on this machine that told its models."""

    name: str
    url: str
    models: Sequence[str]

    @property
    def summary(self) -> str:
        """The server in a line."""
        return f"{self.name} at {self.url}: {format_models(self.models)}"


@dataclass(frozen=True)
class ModelSources:
    """What was found: names of variables that hold a key, never what they hold, and servers."""

    keys: Sequence[str]
    servers: Sequence[ModelServer]

    @property
    def choices(self) -> Sequence[tuple[str, Mapping[str, str]]]:
        """What may be chosen, as it is shown and as it is written; a model "" is still to be named."""
        served = [
            (f"{model} ({server.name})", {"model": f"openai:{model}", "base_url": server.url})
            for server in self.servers
            for model in sorted(server.models, key=rank_model)
        ]
        return [
            *served,
            *((f"{KEY_PROVIDERS[key]}, by {key}", {"model": f"{KEY_PROVIDERS[key]}:"}) for key in self.keys),
        ]


def discover_models(say: Callable[[str], None] = lambda _: None) -> ModelSources:
    """Look for keys in the environment and for servers on this machine, and `say` each as it comes."""
    keys = [name for name in KEY_PROVIDERS if os.environ.get(name, "").strip()]
    say(f"keys: {', '.join(keys) or 'none'}")
    servers = []
    with ThreadPoolExecutor(len(SERVERS)) as pool:
        for server in pool.map(lambda one: query_server(*one), SERVERS.items()):
            if server is not None:
                servers.append(server)
                say(f"server: {server.summary}")
    if not servers:
        looked = ", ".join(f"{name} ({port})" for name, port in SERVERS.items())
        say(f"server: none on this machine; looked for {looked}")
    return ModelSources(keys, servers)


def rank_model(model: str) -> int:
    """Where a model stands in a choice: what is known to call tools first, what never talks last."""
    name = model.rpartition("/")[2].lower()
    if NON_CHAT_MODEL.search(name):
        return len(TOOL_CALLING_FAMILIES) + 1
    return next(
        (place for place, family in enumerate(TOOL_CALLING_FAMILIES) if name.startswith(family)),
        len(TOOL_CALLING_FAMILIES),
    )


def format_models(models: Sequence[str]) -> str:
    """Models in a line, not more than one reads."""
    more = len(models) - MAX_LISTED
    return (", ".join(models[:MAX_LISTED]) or "no model is loaded") + (
        f" and {more:,} more" if more > 0 else ""
    )


def query_server(name: str, port: int) -> ModelServer | None:
    """Ask a server for its models; None where nothing answers, or something else."""
    from http.client import HTTPConnection, HTTPException
    from socket import SHUT_RDWR

    connection, late = HTTPConnection("127.0.0.1", port, timeout=CONNECT_TIMEOUT), None
    try:
        connection.connect()
        late = Timer(TOTAL_TIMEOUT, connection.sock.shutdown, (SHUT_RDWR,))
        late.start()
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        told = json.loads(answer.read(MAX_BYTES)) if answer.status == 200 else None  # noqa: PLR2004
    except (OSError, HTTPException, ValueError, RecursionError):
        return None
    finally:
        if late is not None:
            late.cancel()
        connection.close()
    models = parse_model_list(told)
    return None if models is None else ModelServer(name, f"http://127.0.0.1:{port}/v1", models)


def parse_model_list(told: Any) -> list[str] | None:
    """The names in an answer of OpenAI's shape; None for any other."""
    rows = told.get("data") if isinstance(told, dict) and "data" in told else None
    if rows is None and not (isinstance(told, dict) and told.get("object") == "list"):
        return None
    if not isinstance(rows, list | None):
        return None
    names = (row.get("id") for row in rows or () if isinstance(row, dict))
    return [name for name in names if isinstance(name, str) and name.isprintable() and name.strip()]
