"""The context window that a model's server names."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec

VERSION_PATH = re.compile(r"/v\d\w*/?$")
PATIENCE = 1.0  # seconds for all questions together
NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
LENGTH_KEYS = (  # of a model in a list: vLLM and SGLang, LM Studio, OpenRouter, Groq, Mistral
    *("max_model_len", "loaded_context_length", "context_length", "context_window"),
    "max_context_length",
)


def note_server_window(model: Any, spec: AgentSpec) -> None:
    """Note in a model's profile how large a window its own server names, if it does within a second."""
    if not spec.base_url:
        return
    key: Any = getattr(model, "openai_api_key", None)
    secret = key.get_secret_value() if hasattr(key, "get_secret_value") else ""
    tokens = ask_server_window(spec.base_url, spec.model.removeprefix("openai:"), secret)
    if tokens is not None:
        model.profile = {**(getattr(model, "profile", None) or {}), "max_input_tokens": tokens}


@cache
def ask_server_window(base_url: str, name: str, key: str) -> int | None:
    """Ask a server for the window of a model, once per process; None if it does not say.

    llama.cpp has it in `/props`, Ollama in `/api/ps` and `/api/show`, LM Studio in `/api/v0/models`, vLLM,
    SGLang and OpenRouter in the list of models. The smallest number counts.
    """
    from httpx import Client

    root = VERSION_PATH.sub("", base_url.rstrip("/"))
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = Client(timeout=PATIENCE, headers=headers, follow_redirects=True)

    def ask(read: Callable[[Any, str], Iterator[Any]], path: str) -> list[Any]:
        answer = client.get(path).raise_for_status().json()
        found = list(read(answer, name))
        if read is read_ollama:  # only Ollama is sent a request of its own
            shown = client.post(f"{root}/api/show", json={"model": name}).raise_for_status().json()
            found += read_shown(shown)
        return found

    pool = ThreadPoolExecutor(len(QUESTIONS))
    asked = [
        pool.submit(ask, read, path.format(root=root, url=base_url.rstrip("/"))) for read, path in QUESTIONS
    ]
    done, _ = wait(asked, timeout=PATIENCE)
    pool.shutdown(wait=False, cancel_futures=True)
    client.close()  # questions that are still open fail, unheard
    found: list[int] = []
    for one in done:
        if one.exception() is None:
            found += [tokens for tokens in one.result() if type(tokens) is int and tokens > 0]
    return min(found, default=None)


def read_props(answer: Any, _: str) -> Iterator[Any]:
    """Read llama.cpp's properties: the window of a slot."""
    yield answer["default_generation_settings"]["n_ctx"]


def read_models(answer: Any, name: str) -> Iterator[Any]:
    """Read a list of models."""
    for row in answer["data"]:
        if row["id"] == name:
            yield next((row[key] for key in LENGTH_KEYS if row.get(key)), None)


def read_ollama(answer: Any, name: str) -> Iterator[Any]:
    """Read which models Ollama has loaded, and with which window."""
    for row in answer["models"]:
        if row["name"] in (name, f"{name}:latest"):
            yield row.get("context_length")


def read_shown(answer: Any) -> Iterator[Any]:
    """Read what Ollama says about a model: the window it is set to, or could have."""
    if chosen := NUM_CTX.search(str(answer.get("parameters", ""))):
        yield int(chosen[1])
    for key, value in (answer.get("model_info") or {}).items():
        if key.endswith(".context_length"):
            yield value


QUESTIONS: tuple[tuple[Callable[[Any, str], Iterator[Any]], str], ...] = (
    (read_props, "{root}/props"),
    (read_models, "{url}/models"),
    (read_models, "{root}/api/v0/models"),
    (read_ollama, "{root}/api/ps"),
)
