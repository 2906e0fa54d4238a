"""What many tests lend an agent: a tool that looks, one that asks the person, an answer's form."""

from langchain_core.tools import tool
from langgraph.types import interrupt
from pydantic import BaseModel


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"seen {place}"


@tool
def ask(question: str) -> str:
    """Ask the person."""
    return str(interrupt(question))


class City(BaseModel):
    """A city."""

    city: str
