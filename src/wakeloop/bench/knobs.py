"""The habits of a weak model, a knob each."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Knobs(BaseModel):
    """How weak a model is: frozen, unknown keys refused; at its defaults it is reliable.

    A float is a probability from 0 to 1. Raises pydantic's ValidationError for anything else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    stop: float = Field(0, ge=0, le=1)
    """Stop: a reply (but the first) says "All done." while work is left."""
    stick: float = Field(0, ge=0, le=1)
    """Stickiness: what a stop adds to `stop` for the reply after it, to 0.9 at most."""
    false_done: float = Field(0, ge=0, le=1)
    """False done: an item is closed without its work; without a list it is taken for done."""
    forget: float = Field(0, ge=0, le=1)
    """Forgets to close: an item whose work is done stays open until somebody asks."""
    repeat: float = Field(0, ge=0, le=1)
    """Repeats: a run in which the plan is sent a second time, in the reply after it."""
    malformed: float = Field(0, ge=0, le=1)
    """Malformed: the arguments of a reply's first call are broken JSON."""
    cut: float = Field(0, ge=0, le=1)
    """Cut: a reply ends at the token limit, half of its last text missing."""
    empty: float = Field(0, ge=0, le=1)
    """Empty: a reply holds nothing."""
    busy: float = Field(0, ge=0, le=1)
    """Busy in vain: a reply (but the first) makes the same look again, not what is due; 1 is for ever."""
    wander: float = Field(0, ge=0, le=1)
    """Busy with news: the same with a look that was never made before."""
    relist: float = Field(0, ge=0, le=1)
    """Lists: a reply asks for the list, or sends it unchanged, instead of what is due; 1 is for ever."""
    no_list: float = Field(0, ge=0, le=1)
    """Writes no list: a run in which the list's tools are never used."""
    spoil: float = Field(0, ge=0, le=1)
    """Spoils: pushed on after all work was done, a reply makes something worse."""
    lenient: float = Field(0, ge=0, le=1)
    """Judges leniently: as the grader of a rubric it takes what is left undone for done."""
    cannot: int = Field(0, ge=0)
    """Can't: the last so many parts of the job meet a tool that always fails."""
    on_failure: Literal["blocks", "says", "retries", "busy", "fakes"] = "blocks"
    """What it does about a failure: blocks the item; leaves it open and says so; says so and tries once more
    when pushed; says so after one more look when pushed; or closes it as if it were done."""
    replies: Literal["told", 1, 2] = "told"
    """Batches: 2 replies an item, or 1: an item is closed in the reply that starts the next; as it is told: 1
    where the system message says "in the reply that begins the next", else 2."""
    plan_beside: Literal["told"] | bool = "told"
    """Batches: the plan is sent beside the first call, not in a reply of its own; as it is told: where the
    system message says "beside the first call"."""
    list_from: int = Field(2, ge=1)
    """From how many known parts on it writes a list."""
