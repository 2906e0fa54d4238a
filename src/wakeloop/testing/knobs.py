"""The habits of a weak model, one knob each."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Knobs(BaseModel):
    """How weak a model is. Frozen; unknown keys are refused. With the defaults it is reliable.

    A float is a probability from 0 to 1 unless its line says otherwise. Raises pydantic's ValidationError
    for anything else.

    >>> Knobs(stop=0.3).stop
    0.3
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    stop: float = Field(0, ge=0, le=1)
    """Stops early: a reply (never the first) says "All done." while work is left."""
    stick: float = Field(0, ge=0, le=1)
    """Stops in rows: what a stop adds to `stop` for the reply after it, up to 0.9."""
    stop_growth: float = Field(0, ge=0)
    """Tires: what every 10,000 tokens of a request add to `stop`, up to 0.9."""
    ask: float = Field(0, ge=0, le=1)
    """Asks: an early stop is a question to the user ("Shall I continue?"), not "All done."."""
    deaf: float = Field(0, ge=0, le=1)
    """Deaf: pushed on in words after a stop, it says "All done." again; a forced call it makes."""
    marks: Literal["unseen", "obeyed", "disobeyed"] = "unseen"
    """Marks: what a push does that begins with a mark such as "(automatic)". Unseen: the same as any push.
    Obeyed: nothing is asked or begun that no user asked for (no question, no spoiling). Disobeyed: it is
    answered in words, as if the user had said it."""
    false_done: float = Field(0, ge=0, le=1)
    """False done: an item is closed without its work; without a list its work counts as done."""
    close_all: float = Field(0, ge=0, le=1)
    """Closes all: a run in which every open item is closed in one reply, none of the work done."""
    skip: float = Field(0, ge=0, le=1)
    """Skips: a part is passed over like a false done, until the model notices it (see `notice`)."""
    notice: float = Field(0, ge=0, le=1)
    """Notices: each push after a stop brings a skipped part to mind with this chance."""
    forget: float = Field(0, ge=0, le=1)
    """Forgets to close: an item whose work is done stays open until somebody asks."""
    forgets_cleared: str = ""
    """Works from what the request shows: a call whose result holds this text, such as "[cleared]", was never
    made as far as the model knows. Its work is done again unless its item is closed."""
    repeat: float = Field(0, ge=0, le=1)
    """Plans twice: a run in which the plan is sent a second time, in the reply after it."""
    echo: float = Field(0, ge=0, le=1)
    """Echoes: a reply is the previous one again, with new call ids."""
    double: float = Field(0, ge=0, le=1)
    """Doubles: each todo call of a reply is made twice."""
    malformed: float = Field(0, ge=0, le=1)
    """Malformed: the arguments of a reply's first call are broken JSON."""
    wrong_tool: float = Field(0, ge=0, le=1)
    """Wrong tool: a reply's first call names a tool that does not exist."""
    wrong_args: float = Field(0, ge=0, le=1)
    """Wrong arguments: those of a reply's first call do not fit its schema."""
    cut: float = Field(0, ge=0, le=1)
    """Cut: a reply ends at the token limit, half of its last text missing."""
    empty: float = Field(0, ge=0, le=1)
    """Empty: a reply holds nothing."""
    empty_after_result: float = Field(0, ge=0, le=1)
    """Empty after results: a reply to a tool's result holds nothing."""
    promise: float = Field(0, ge=0, le=1)
    """Promises: the finish reason of a reply says tool calls, and none come."""
    print_call: float = Field(0, ge=0, le=1)
    """Prints: the calls of a reply come as JSON in its text."""
    fake_results: float = Field(0, ge=0, le=1)
    """Fakes results: pushed on after a stop, it writes what its calls might return instead of making them."""
    copy_filler: float = Field(0, ge=0, le=1)
    """Copies fillers: once a filler text of the graph, such as "(no text)", is in the request, it replies
    with that text."""
    busy: float = Field(0, ge=0, le=1)
    """Busy in vain: a reply (never the first) makes the same look again instead of the next step."""
    wander: float = Field(0, ge=0, le=1)
    """Busy with news: the same with a look that was never made before."""
    relist: float = Field(0, ge=0, le=1)
    """Lists: a reply asks for the list, or sends it unchanged, instead of the next step."""
    no_list: float = Field(0, ge=0, le=1)
    """Keeps no list: a run in which the todo tools are never used."""
    spoil: float = Field(0, ge=0, le=1)
    """Spoils: pushed on after all work was done, a reply makes something worse."""
    lenient: float = Field(0, ge=0, le=1)
    """Judges leniently: as the grader of a rubric it takes undone work for done."""
    cannot: int = Field(0, ge=0)
    """Can't: so many parts, the last ones, meet a tool that always fails."""
    on_failure: Literal["blocks", "says", "retries", "busy", "fakes"] = "blocks"
    """What follows a failure: it blocks the item; leaves it open and says so; says so and tries once more
    when pushed; says so after one more look when pushed; or closes it as if it were done."""
    replies: Literal["told", 1, 2] = "told"
    """Batches: 2 replies for each item, or 1, where an item is closed in the reply that starts the next.
    "told": 1 if the system message says "in the reply that starts the next", otherwise 2."""
    plan_beside: Literal["told"] | bool = "told"
    """Batches: the plan is sent together with the first call. "told": if the system message says "with your
    first call"."""
    list_from: int = Field(2, ge=1)
    """How many known parts it takes to write a list."""
