"""A graph as SVG or plain text: no network, no library."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import hypot
from typing import Any

from wakeloop.text.plain_html import escape_html

PLACES = {
    "__start__": (390, 30),
    "activate": (390, 95),
    "call_model": (390, 220),
    "nag": (80, 220),
    "run_tools": (80, 350),
    "validate_todos": (290, 350),
    "wake": (730, 220),
    "finalization_guard": (590, 350),
    "__end__": (590, 440),
}
"""Where the nodes of the graph stand; others stand in rows beneath them."""
BENDS = {
    ("run_tools", "finalization_guard"): -140,
    ("validate_todos", "run_tools"): 16,
    ("finalization_guard", "__end__"): 16,
    ("activate", "finalization_guard"): 70,
    ("run_tools", "nag"): 16,
}
BEND = -16  # of all other edges, so that there and back are two lines
WIDTH, ROW, HALF = 830, 60, 16
GREY, INK, FILL, LINE = "#595959", "#1f1f33", "#eceafd", "#8b82d8"
GROUND = '<rect width="100%" height="100%" rx="8" fill="#ffffff"/>'  # no grey is read on white and on black
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    f' orient="auto"><path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>'
)

Edge = tuple[str, str, str]
"""From, to, and the words on it."""


def graph_edges(graph: Any) -> list[Edge]:
    """The edges of what LangGraph's `get_graph` returns."""
    return [(way.source, way.target, "" if way.data is None else str(way.data)) for way in graph.edges]


def draw_text(nodes: Sequence[str], edges: Sequence[Edge]) -> Iterator[str]:
    """Each node, and the ways that lead from it, in plain ASCII."""
    wide = max(map(len, nodes))
    for node in nodes:
        yield node
        yield from (f"  -> {end:{wide}}  {words}".rstrip() for start, end, words in edges if start == node)


def draw_svg(name: str, nodes: Iterable[str], edges: Iterable[Edge]) -> str:
    """Draw a graph: a box a node, a line for each way between two, with the words on it."""
    places: dict[str, tuple[int, int]] = {node: PLACES[node] for node in nodes if node in PLACES}
    others = [node for node in nodes if node not in PLACES]
    places |= {node: (110 + 150 * (n % 5), 500 + ROW * (n // 5)) for n, node in enumerate(others)}
    height = max((y for _, y in places.values()), default=0) + 30
    ways: dict[tuple[str, str], list[str]] = {}
    for start, end, words in edges:
        ways.setdefault((start, end), []).append(words)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape_html(name)}</title>",
        GROUND,
        TIP,
        *(_draw_edge(places, *way, ", ".join(filter(None, words))) for way, words in ways.items()),
        *(_draw_box(node, *place) for node, place in places.items()),
        "</svg>",
    ]
    return "\n".join(lines)


def _half_width(node: str) -> float:
    """Half of the width of a node's box."""
    return 4 * len(_node_label(node)) + 10


def _node_label(node: str) -> str:
    return node.strip("_") if node in ("__start__", "__end__") else node


def _draw_box(node: str, x: int, y: int) -> str:
    half, round_at = _half_width(node), HALF if node.startswith("__") else 5
    return (
        f'<rect x="{x - half:g}" y="{y - HALF}" width="{2 * half:g}" height="{2 * HALF}" rx="{round_at}"'
        f' fill="{FILL}" stroke="{LINE}"/>'
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" fill="{INK}">{escape_html(_node_label(node))}</text>'
    )


def _draw_edge(places: Mapping[str, tuple[int, int]], start: str, end: str, words: str) -> str:
    (x1, y1), (x2, y2) = places[start], places[end]
    if start == end:
        loop = f"M{x1 - 18} {y1 + HALF}C{x1 - 18} {y1 + 44} {x1 + 18} {y1 + 44} {x1 + 18} {y1 + HALF}"
        return _draw_line(loop, words, x1 - 20, y1 + 36, "end")
    length = hypot(x2 - x1, y2 - y1) or 1
    right = (-(y2 - y1) / length, (x2 - x1) / length)
    bend = BENDS.get((start, end), BEND)
    middle = ((x1 + x2) / 2 - right[0] * bend, (y1 + y2) / 2 - right[1] * bend)
    (ax, ay), (bx, by) = _box_border(start, (x1, y1), middle), _box_border(end, (x2, y2), middle)
    side = (-right[0], -right[1]) if bend > 0 else right  # where the line bulges: the words stand outside
    tx, ty = (ax + 2 * middle[0] + bx) / 4 + 8 * side[0], (ay + 2 * middle[1] + by) / 4 + 4 + 12 * side[1]
    anchor = "start" if side[0] > 0.3 else "end" if side[0] < -0.3 else "middle"  # noqa: PLR2004 - a slope
    curve = f"M{ax:.1f} {ay:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {bx:.1f} {by:.1f}"
    return _draw_line(curve, words, tx, ty, anchor)


def _draw_line(line: str, words: str, x: float, y: float, anchor: str) -> str:
    path = f'<path d="{line}" fill="none" stroke="{GREY}" marker-end="url(#tip)"/>'
    at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{GREY}"'
    return f"{path}<text {at}>{escape_html(words)}</text>" if words else path


def _box_border(node: str, at: tuple[int, int], toward: tuple[float, float]) -> tuple[float, float]:
    """Where a line from the middle of a box leaves it."""
    dx, dy = toward[0] - at[0], toward[1] - at[1]
    scale = min(_half_width(node) / abs(dx) if dx else 1e9, HALF / abs(dy) if dy else 1e9, 1)
    return at[0] + dx * scale, at[1] + dy * scale
