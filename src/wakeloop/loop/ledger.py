"""The notes of the graph: each key, its type and lifetime."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, cast, get_type_hints

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetPydanticSchema, TypeAdapter, ValidationError
from pydantic_core import core_schema
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.errors import DamagedError
from wakeloop.loop.ruling import Ruling
from wakeloop.stream import EndReason, GoalState
from wakeloop.text.characters import shorten

T = TypeVar("T")
Thread = Annotated[T, "thread"]
"""Kept for the life of the thread."""
Activation = Annotated[T, "activation"]
"""Until the next activation; a subagent's result continues it."""
Run = Annotated[T, "run"]
"""Until the end of the run."""
Round = Annotated[T, "round"]
"""Until the next reply."""

Look = Literal["fresh", "due", "had"]
"""Whether an item is due for a second look: `due` once a call ran after its verdict, `had` after the look."""
GivenUp = Literal["blocked", "cancelled", "dropped", "reset"]
"""How an item was given up; `reset`: with its whole list."""
COST = 6  # its place in what is spent
Count = Annotated[int, Field(ge=0, lt=2**53)]


def _exactly(*kinds: Any) -> GetPydanticSchema:
    """Check a list for values of these types, in this order; as for a tuple, which calls no Python."""

    def build(_: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.tuple_schema([handler.generate_schema(kind) for kind in kinds], strict=False)

    return GetPydanticSchema(build)


_SPENT = (*[Count] * COST, Count | None)  # the cost may be unknown
Numbers = (
    Annotated[list[Count | None], _exactly(*_SPENT)] | Annotated[list[Count | None], _exactly(*_SPENT, Count)]
)


class Cleared(TypedDict, total=False):
    """How far requests are made smaller, by the ids of the last messages (rule 28).

    Up to there `results` are cleared, `rounds` left out, and results of more than `head` characters `cut`.
    What the graph added to the results of `kept` stays, since it shows the list or a change of it.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]

    results: str
    rounds: str
    cut: str
    head: Count
    kept: list[str]


class Ledger(TypedDict, total=False):
    """The graph's private counters and notes: one channel, one value, plain JSON.

    The first word of a key's type says how long it lives. When it is dropped, and how a stored ledger is
    checked, follows from this table.
    """

    __pydantic_config__ = ConfigDict(strict=True)  # type: ignore[misc]

    # the budget, and the counts against it
    wake_cycles: Activation[Count]
    spent: Activation[Numbers]
    reported: Activation[bool]  # the closing request after a spent budget was made
    budget: Activation[Count]  # the most wakes at this moment
    settled: Activation[Annotated[list[Any], _exactly(int, int)]]  # at the beginning, and at most
    idle_wakes: Activation[Count]
    todo_stale_iterations: Thread[Count]
    bad_replies: Run[Count]
    # the guard
    todo_guard_retries: Activation[dict[str, int]]
    todo_guard_blocked: Activation[dict[str, str] | None]
    todo_guard_suppressed: Thread[bool]
    todo_finalization_correction: Activation[bool | None]
    called_by: Run[EndReason]  # the reason that called it
    # what follows the beginning, a round, a turn
    unasked: Run[bool]
    nag: Round[bool]  # whether a reminder follows the round; only there in a round
    end: Run[EndReason | None]
    again: Run[str]  # why the reply is asked again: `unread`, `format: …`, or a key of `RETRY_PROMPTS`
    emptied: Run[bool]  # an empty reply of this turn was asked for again
    asking: Run[Literal["format", "explain", "report"]]
    ruling: Activation[Ruling]
    # the current round
    todo_calls: Round[list[str]]
    faults: Round[dict[str, str]]
    check: Round[bool]  # open items are put to the verifier after the round
    outdated: Round[bool]  # a whole list was refused because the list had changed
    standing: Run[list[str]]  # calls of a run that waited for a person, which are put to them again
    reviews: Round[dict[str, dict[str, Any]]]  # by call id: how a person is asked about it
    # the plan that a person is asked about: `due` until its round is verified
    planned: Activation[bool]  # one was accepted
    plan_when: Round[Literal["first", "changes"]]  # the setting under which its round was written
    plan: Round[Literal["due", "judged", "stands", "edited", "rejected"]]
    verdicts: Round[
        list[Annotated[list[Any], _exactly(int, str, str)]]
    ]  # of its items: call, id, "" or a refusal
    held: Round[list[dict[str, Any]]]  # calls outside the todo tools, which run once the plan is approved
    # idle rounds
    idle_rounds: Activation[Count]  # in a row
    pairs: Activation[str]  # prints of calls and their results, once a call is repeated
    best: Activation[Annotated[list[Any], _exactly(int, int)]]  # the best reach of the list, while it is less
    # the list that was never written
    listed: Thread[bool]  # there was one
    unlisted: Activation[Literal["ran", "asked"]]  # sound calls ran; the model was asked what is left
    # the person first (rule 26): a person spoke over old items, and no call was made since; what the wake of
    # this turn was about, as long as its turn made no call
    uncalled: Activation[Literal["said", "unsaid"]]  # whether the items were named after the words
    woken: Run[Literal["plain", "question", "topic"]]
    # steering: the entries of the store that are taken and not deleted yet; whether the store has been read
    # for the coming request
    steered: Thread[list[str]]
    looked: Round[bool]
    # the audit: what the round completed, the successful calls that no item has claimed yet, the items that
    # were completed without one, and whether the model was asked about them
    completed: Round[list[int | str]]
    unclaimed: Thread[Count]
    suspects: Thread[list[int | str]]
    audited: Activation[bool]
    # progress
    waking: Run[bool]
    worked: Run[bool]
    open_at_wake: Run[list[int | str]]
    seen: Activation[str]
    peak: Activation[Count]
    last_wake: Activation[str]
    # pushes (rule 30): how the last wake asked for work, and whether its turn made a call of its own accord;
    # whether the next request asks for a call; whether the client or its server refuses that
    push: Run[Literal["words", "call"]]
    called: Run[bool]
    force: Run[bool]
    last_step: Run[Count]  # the limit of supersteps at the last request: a resume has another
    unforced: Activation[bool]
    spoke: Activation[bool]
    # what the model's writes came to (rule 21)
    wrote: Activation[bool]  # one was accepted
    given_up: Activation[dict[str, GivenUp]]  # by id
    looks: Activation[dict[str, Look]]  # the items that a verdict completed
    reopened: Run[list[str]]  # the lines of those that a second look refused, until they are said
    checked: Activation[str]  # the last item put to the verifier after a round, where some had to wait
    passed: Thread[list[int | str]]  # the completed items that the verifier accepted
    # the goal that code checks: what is known of it, the last reason, the reasons of this activation
    goal: Thread[GoalState]
    missing: Thread[str]
    reasons: Activation[str]
    judged: Round[bool]  # it was asked for since the last reply
    limit_waits: Thread[Count]  # for a limit, since the last reply
    # the list and the conversation
    next_id: Thread[Count]
    writes: Thread[Count]  # of the list; a session carries the number
    refusals: Thread[dict[str, int]]
    shown: Thread[str]
    summaries: Thread[list[str]]  # the system messages that a hook wrote
    tail: Thread[str]
    # what others changed in the list and the model has not seen, and the messages that said such changes
    unseen: Thread[dict[str, Any]]
    own: Thread[Count]  # the stamp of the list that a hook wrote as a plain list
    told: Thread[list[str]]
    vocabulary: Thread[str]  # the dialect in which the model knows the list
    injected: Activation[list[str]]
    # the list before the round's todo calls, where they are applied before other calls of the reply run
    base: Round[list[dict[str, Any]]]
    # in `create_agent`: supersteps of other hooks before a request, the step of the last request, and the
    # steps from one request to the next without tools
    hooks: Run[Annotated[list[Any], _exactly(int, int, int)]]
    formats: Run[Literal[True, "provider"]]  # the agent asks for a format: by a tool, or by the provider
    # the context window (rule 28): how far it is cleared; the last counted request, as characters, tokens,
    # hundredths of characters per token, and the window; what a refusal of this model has taught
    cleared: Thread[Cleared]
    counted: Thread[Annotated[list[Any], _exactly(int, int, int, int)]]
    window: Thread[Annotated[list[Any], _exactly(str, int)]]
    # the input
    events: Thread[list[str]]
    settings: Activation[dict[str, Any]]
    refused: Activation[str]
    # the place of the run, to find other runs: checkpoint and step, and the limit of supersteps
    began: Run[Annotated[list[Any], _exactly(str, int, int)]]
    asked_at: Activation[Annotated[list[Any], _exactly(str, int)]]


_LIVES = {
    key: next(word for word in hint.__metadata__ if isinstance(word, str))
    for key, hint in get_type_hints(Ledger, include_extras=True).items()
}
_CHECKED = TypeAdapter(Ledger)


def keys_living(*lives: str) -> frozenset[str]:
    """Return the keys with these lifetimes: `thread`, `activation`, `run`, `round`."""
    return frozenset(key for key, life in _LIVES.items() if life in lives)


THREAD_KEYS = keys_living("thread")
RUN_KEYS = keys_living("run", "round")
ROUND_KEYS = keys_living("round")


def drop_keys(notes: Mapping[str, Any], keys: frozenset[str]) -> Ledger:
    """Return the notes without these keys."""
    return cast(Ledger, {key: value for key, value in notes.items() if key not in keys})


def keep_round(notes: Mapping[str, Any]) -> Ledger:
    """Return the notes of the current round alone."""
    return cast(Ledger, {key: value for key, value in notes.items() if key in ROUND_KEYS})


def read_notes(state: Mapping[str, Any]) -> Ledger:
    """Return the notes of a state, to be read only; `{}` before the first.

    Raises `DamagedError` for notes that the graph cannot have written itself.
    """
    ledger = state.get("todo_ledger")
    if ledger is None:
        return {}
    try:
        _CHECKED.validate_python(ledger)
    except ValidationError as error:
        where = error.errors(include_url=False, include_context=False)[0]["loc"]
        if not where or not isinstance(ledger, dict):
            raise DamagedError(f"todo_ledger must be a mapping, not {shorten(repr(ledger))}") from None
        raise DamagedError(f"todo_ledger has {shorten(repr(ledger[where[0]]))} under {where[0]!r}") from None
    return cast(Ledger, ledger)
