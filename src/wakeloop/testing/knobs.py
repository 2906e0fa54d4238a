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
    """Stops repeatedly: added to `stop` in the reply after a stop, up to 0.9."""
    stop_growth: float = Field(0, ge=0)
    """Tires: added to `stop` for every 10,000 tokens of the request, up to 0.9."""
    ask: float = Field(0, ge=0, le=1)
    """Asks: an early stop is a question to the user ("Shall I continue?"), not "All done."."""
    deaf: float = Field(0, ge=0, le=1)
    """Deaf: pushed on in words after a stop, it says "All done." again. It still makes a forced call."""
    marks: Literal["unseen", "obeyed", "disobeyed"] = "unseen"
    """Marks: what a mark such as "(automatic)" at the start of a push changes. Unseen: nothing.
    Obeyed: it starts nothing that no user asked for (no question, no spoiling). Disobeyed: it answers in
    words, as if the user had written the push."""
    false_done: float = Field(0, ge=0, le=1)
    """False done: an item is closed without its work; without a list the work counts as done."""
    close_all: float = Field(0, ge=0, le=1)
    """Closes all: in such a run one reply closes every open item without any work."""
    skip: float = Field(0, ge=0, le=1)
    """Skips: a part is skipped like a false done, until the model notices it (see `notice`)."""
    notice: float = Field(0, ge=0, le=1)
    """Notices: the chance that a push after a stop makes it notice a skipped part."""
    honest: float = Field(0, ge=0, le=1)
    """Answers honestly: the chance that a push which names a skipped part makes it admit that and do it."""
    forget: float = Field(0, ge=0, le=1)
    """Forgets to close: an item whose work is done stays open until somebody asks."""
    forgets_cleared: str = ""
    """Forgets cleared results: a call whose result contains this text, such as "[cleared]", counts as never
    made. Its work is done again unless its item is closed."""
    repeat: float = Field(0, ge=0, le=1)
    """Plans twice: in such a run the second reply sends the plan again."""
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
    """Empty: a reply has no text and no calls."""
    empty_after_result: float = Field(0, ge=0, le=1)
    """Empty after results: a reply to a tool's result has no text and no calls."""
    promise: float = Field(0, ge=0, le=1)
    """Promises: the finish reason of a reply says tool calls, but the reply has none."""
    print_call: float = Field(0, ge=0, le=1)
    """Prints: the calls of a reply are written as JSON in its text."""
    fake_results: float = Field(0, ge=0, le=1)
    """Fakes results: pushed on after a stop, it writes results of its calls instead of making them."""
    copy_filler: float = Field(0, ge=0, le=1)
    """Copies fillers: it replies with a filler text of the graph, such as "[no text]", that it has seen."""
    busy: float = Field(0, ge=0, le=1)
    """Busy in vain: a reply (never the first) lists the files again instead of doing the next step."""
    wander: float = Field(0, ge=0, le=1)
    """Wanders: a reply (never the first) makes a new search instead of the next step."""
    crowd: float = Field(0, ge=0, le=1)
    """Slowed by tools: for every tool that is bound, this is added to `wander`, up to 0.9."""
    relist: float = Field(0, ge=0, le=1)
    """Lists: a reply reads the list, or sends it unchanged, instead of doing the next step."""
    no_list: float = Field(0, ge=0, le=1)
    """Keeps no list: in such a run it never uses the todo tools."""
    spoil: float = Field(0, ge=0, le=1)
    """Spoils: pushed on after all work was done, it damages something."""
    lenient: float = Field(0, ge=0, le=1)
    """Judges leniently: as the grader of a rubric it accepts unfinished work."""
    cannot: int = Field(0, ge=0)
    """Can't: the number of parts, at the end of the job, whose tool always fails."""
    on_failure: Literal["blocks", "says", "retries", "busy", "fakes"] = "blocks"
    """After a failure: it blocks the item; leaves it open and says so; says so and tries again when pushed;
    says so and makes another search when pushed; or closes it as if it were done."""
    replies: Literal["prompted", 1, 2] = "prompted"
    """Batches: the replies for each item. With 1, an item is closed in the reply that starts the next.
    "prompted": 1 if the system message says "in the reply that starts the next", otherwise 2."""
    plan_beside: Literal["prompted"] | bool = "prompted"
    """Batches: the plan is sent together with the first call. "prompted": only if the system message says
    "with your first call"."""
    close_by: int = Field(1, ge=1)
    """Batches: how many finished items it closes in one call, unless no work is left or somebody asks."""
    list_from: int = Field(2, ge=1)
    """Writes a list: the least number of known parts for which it keeps one."""
