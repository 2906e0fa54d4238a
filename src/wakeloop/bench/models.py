"""Makes the models of a study, real ones and the weak one."""

from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from wakeloop.bench.study import require_known
from wakeloop.bench.task import Task
from wakeloop.checks.models import check_model_name
from wakeloop.errors import BenchError
from wakeloop.model.chat_models import create_model, create_openai_model
from wakeloop.platform import model_profile
from wakeloop.testing.jobs import seeded_random
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.weak_model import WeakModel
from wakeloop.text.secrets import secrets_in_address

WEAK = "weak"
PROFILES = {  # rates that were counted in the requests of a real model
    "small": "empty_after_result=0.33,deaf=0.85,fake_results=0.5,no_list=0.6,copy_filler=0.27",
}


def is_weak(text: str) -> bool:
    """Return whether a model is the package's weak one, which costs nothing and knows its task."""
    return text == WEAK or text.startswith(f"{WEAK}:")


def make_model(text: str, task: Task, seed: int) -> BaseChatModel:
    """Make the model of a cell: `NAME`, `PROVIDER:NAME`, `NAME@URL`, or `weak:KNOB=VALUE,…`."""
    if is_weak(text):
        # The seed depends on the task; otherwise all tasks would share the same draws.
        own = seeded_random(f"{task.family}/{task.parts}/{seed}").getrandbits(32)
        return WeakModel(task, own, parse_knobs(text))
    return _real_model(text)


def parse_knobs(text: str) -> Knobs:
    """Read the knobs of a weak model, or the name of a profile. Raises `BenchError`."""
    values: dict[str, Any] = {}
    given = text.removeprefix(WEAK).removeprefix(":")
    for pair in filter(None, PROFILES.get(given, given).split(",")):
        name, sign, value = map(str.strip, pair.partition("="))
        if not sign:
            raise BenchError(f"A weak model must be written like weak:stop=0.3,stick=0.3, got {text!r}.")
        known = require_known("knob", name, Knobs.model_fields)
        values[known] = int(value) if value.isdecimal() else value
    try:
        return Knobs.model_validate(values)
    except ValidationError as error:
        said = error.errors()[0]
        raise BenchError(f"The knob {said['loc'][0]!r} cannot be {said['input']!r}: {said['msg']}.") from None


def check_model(text: str) -> None:
    """Raise an error for a model that cannot be made, before anything runs."""
    if is_weak(text):
        parse_knobs(text)
    else:
        _real_model(text)


def profile_key(text: str) -> str:
    """Return the key of a model in a profile. Raises `BenchError` for an invalid address."""
    if is_weak(text):
        return text
    split_address(text)
    return model_profile.profile_key(text)


def split_address(text: str) -> tuple[str, str]:
    """Split a model into name and address; a name may contain an @ itself. Raises `BenchError`."""
    if "@http" not in text and set("/:") & set(text.partition("@")[2]):
        raise BenchError(
            "An address must begin with http:// or https://, as in NAME@http://127.0.0.1:8080/v1."
        )
    return model_profile.split_model_name(text)


@lru_cache(maxsize=8)
def _real_model(text: str) -> BaseChatModel:
    name, url = split_address(text)
    if not url:
        check_model_name(name)
        return create_model(name)
    if ":" in name and not name.startswith("openai:"):
        raise BenchError(
            f"An address is for models of OpenAI's kind, and {name!r} is of another provider; "
            f"if the server has it under this name, write {f'openai:{name}'!r}."
        )
    if any(secrets_in_address(url)):
        raise BenchError("Leave the key out of the address: it is kept with the results. Set OPENAI_API_KEY.")
    return create_openai_model(name.removeprefix("openai:"), base_url=url)
