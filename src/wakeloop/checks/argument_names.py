"""Messages for unknown arguments, with the right name."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from wakeloop.errors import ArgumentError
from wakeloop.settings import ALIASES, translate_word
from wakeloop.text.wording import suggest

F = TypeVar("F", bound=Callable[..., Any])

# Hints for names from create_react_agent, create_agent and other builders, whose right name is spelled too
# differently for a suggestion by spelling alone.
Hints = Mapping[str, str]
"""Sentences, and the names that each is about."""
_SHARED: Hints = {
    "Pass the name of a preset as settings='NAME'.": "preset profile",
    "It belongs to the input: agent.invoke({'messages': […], 'todos': […]}).": "todos items plan goal",
}
AGENT_HINTS: Hints = {
    **_SHARED,
    "Pass it to compile(…) of the graph.": "checkpointer store",  # arguments of the agent itself
    "Pass the system message as system_prompt=….": "prompt instructions",
    "Pass the model as model=….": "llm",
    "An agent takes no LangChain middleware. Use pre_model_hook or verify, or WakeLoopMiddleware inside "
    "create_agent.": "middleware",
    "Pass the schema of the answer as response_format=….": "output_schema structured_output",
    "Use build_todo_graph(…).compile(…), which takes it.": "interrupt_before interrupt_after debug cache",
    "Not supported. Use verify=…, which is asked before an item is completed.": "post_model_hook",
    "It belongs to the config of a run, as {'configurable': {'thread_id': 'NAME'}}.": "thread_id config",
    "It belongs to the config of a run: agent.invoke(…, {'recursion_limit': 100}). To limit requests, pass "
    "settings={'max_requests': …}.": "recursion_limit",
    "It is an option of the model: model=ChatOpenAI(…).": "temperature top_p api_key base_url max_tokens "
    "model_options model_kwargs",
}
MIDDLEWARE_HINTS: Hints = {
    **_SHARED,
    "Pass what the model reads about the list as system_prompt=…, tool_description=….": "prompt instructions",
    "Pass it to create_agent.": "model tools checkpointer store state_schema response_format",
    "Use HumanInTheLoopMiddleware; for the plan, settings={'approve_plan': 'first'}.": "interrupt_on",
}
EDIT_HINTS: Hints = {"Pass the ids to close as done=….": "complete completed close finish"}


def reject_unknown_arguments(hints: Hints) -> Callable[[F], F]:
    """Make a function raise an `ArgumentError` for an unknown keyword.

    Python's own `TypeError` names the wrong argument, but not the one that was meant.
    """

    def decorate(function: F) -> F:
        known = tuple(name for name in signature(function).parameters if name != "self")
        called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

        @wraps(function)
        def call_with_known(*args: Any, **named: Any) -> Any:
            for name in named:
                if name not in known:
                    hint = _find_hint(name, known, hints)
                    raise ArgumentError(f"{called} has no argument {name!r}. {hint}")
            return function(*args, **named)

        return cast(F, call_with_known)

    return decorate


def _find_hint(name: str, known: tuple[str, ...], hints: Hints) -> str:
    for hint, names in hints.items():
        if name in names.split():
            return hint
    if "settings" in known:
        setting = name if name in ALIASES else translate_word(name)
        if setting:
            return f"It is a setting: settings={{{setting!r}: …}}."
    return suggest(name, known)
