"""Tools and a response format that many tests give an agent."""

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
