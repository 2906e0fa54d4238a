"""Draws a graph as SVG or plain text, without a network."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import hypot
from typing import Any

from wakeloop.text.plain_html import escape_html

PLACES = {
    "__start__": (420, 30),
    "activate": (420, 100),
    "call_model": (420, 230),
    "nag": (150, 230),
    "run_tools": (150, 430),
    "validate_todos": (420, 430),
    "review_calls": (270, 610),
    "wake": (680, 230),
    "finalization_guard": (680, 430),
    "__end__": (680, 540),
}
"""Where the nodes of the graph are drawn; other nodes come in rows below."""
BENDS = {
    ("finalization_guard", "__end__"): 16,
    ("validate_todos", "finalization_guard"): 16,
    ("activate", "finalization_guard"): 60,
    ("run_tools", "nag"): 16,
    ("review_calls", "run_tools"): 24,
    ("review_calls", "nag"): 190,
    ("review_calls", "finalization_guard"): -90,
    ("review_calls", "validate_todos"): -30,
    ("run_tools", "finalization_guard"): -110,
}
BEND = -16  # of all other edges, so that the ways there and back are two lines
WIDTH, ROW, HALF = 830, 60, 16
STEEP = 0.3  # words next to a steeper line start or end there, others are centred
LETTER, TEXT_HEIGHT = 6.6, 14  # of the words on edges
ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)  # where words may be on an edge: the first free place is taken
GREY, INK, FILL, LINE = "#595959", "#1f1f33", "#eceafd", "#8b82d8"
GROUND = '<rect width="100%" height="100%" rx="8" fill="#ffffff"/>'  # no grey suits both white and black
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    f' orient="auto"><path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>'
)

Edge = tuple[str, str, str]
"""From, to, and the words on it."""
Point = tuple[float, float]
Area = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def graph_edges(graph: Any) -> list[Edge]:
    """Return the edges of what LangGraph's `get_graph` returns."""
    edges = []
    for edge in graph.edges:
        words = "" if edge.data is None else str(edge.data)
        edges.append((edge.source, edge.target, words))
    return edges


def draw_text(nodes: Sequence[str], edges: Sequence[Edge]) -> Iterator[str]:
    """Yield lines of ASCII: each node, followed by the edges that leave it.

    >>> list(draw_text(["a", "b"], [("a", "b", "done")]))
    ['a', '  -> b  done', 'b']
    """
    width = max(map(len, nodes))
    for node in nodes:
        yield node
        for start, end, words in edges:
            if start == node:
                yield f"  -> {end:{width}}  {words}".rstrip()


def draw_svg(name: str, nodes: Iterable[str], edges: Iterable[Edge]) -> str:
    """Draw a graph: a box for each node, a line for each pair of connected nodes, with the words on it."""
    places: dict[str, tuple[int, int]] = {}
    others: list[str] = []
    for node in nodes:
        if node in PLACES:
            places[node] = PLACES[node]
        else:
            others.append(node)
    for count, node in enumerate(others):
        places[node] = (110 + 150 * (count % 5), 690 + ROW * (count // 5))
    height = max((y for _, y in places.values()), default=0) + 30
    words_on: dict[tuple[str, str], list[str]] = {}
    for start, end, words in edges:
        words_on.setdefault((start, end), []).append(words)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape_html(name)}</title>",
        GROUND,
        TIP,
    ]
    taken: list[Area] = [
        (x - _half_width(node), y - HALF, x + _half_width(node), y + HALF) for node, (x, y) in places.items()
    ]
    loops_first = sorted(words_on.items(), key=lambda edge: edge[0][0] != edge[0][1])
    for (start, end), parts in loops_first:
        lines.append(_draw_edge(places, start, end, ", ".join(filter(None, parts)), taken))
    for node, (x, y) in places.items():
        lines.append(_draw_box(node, x, y))
    return "\n".join([*lines, "</svg>"])


def _half_width(node: str) -> float:
    """Return half of the width of a node's box."""
    return 4 * len(_node_label(node)) + 10


def _node_label(node: str) -> str:
    return node.strip("_") if node in ("__start__", "__end__") else node


def _draw_box(node: str, x: int, y: int) -> str:
    half, radius = _half_width(node), 5
    if node.startswith("__"):
        radius = HALF
    return (
        f'<rect x="{x - half:g}" y="{y - HALF}" width="{2 * half:g}" height="{2 * HALF}" rx="{radius}"'
        f' fill="{FILL}" stroke="{LINE}"/>'
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" fill="{INK}">{escape_html(_node_label(node))}</text>'
    )


def _draw_edge(
    places: Mapping[str, tuple[int, int]], start: str, end: str, words: str, taken: list[Area]
) -> str:
    """Draw an edge as a curve from border to border, with its words on the outer side."""
    (x1, y1), (x2, y2) = places[start], places[end]
    if start == end:
        loop = f"M{x1 - 18} {y1 + HALF}C{x1 - 18} {y1 + 44} {x1 + 18} {y1 + 44} {x1 + 18} {y1 + HALF}"
        taken.append(_text_area(words, x1 + 20, y1 + 36, "start"))
        return _draw_line(loop, words, x1 + 20, y1 + 36, "start")
    length = hypot(x2 - x1, y2 - y1) or 1
    right = (-(y2 - y1) / length, (x2 - x1) / length)
    bend = BENDS.get((start, end), BEND)
    middle = ((x1 + x2) / 2 - right[0] * bend, (y1 + y2) / 2 - right[1] * bend)
    (ax, ay), (bx, by) = _box_border(start, (x1, y1), middle), _box_border(end, (x2, y2), middle)
    side = right
    if bend > 0:
        side = (-right[0], -right[1])
    anchor = "middle"
    if abs(side[0]) > STEEP:
        anchor = "start" if side[0] > 0 else "end"
    points: list[Point] = []
    for along in ALONG:
        back = 1 - along
        tx = back * back * ax + 2 * along * back * middle[0] + along * along * bx + 8 * side[0]
        ty = back * back * ay + 2 * along * back * middle[1] + along * along * by + 4 + 12 * side[1]
        points.append((tx, ty))
    tx, ty = _find_free_point(words, anchor, points, taken)
    taken.append(_text_area(words, tx, ty, anchor))
    curve = f"M{ax:.1f} {ay:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {bx:.1f} {by:.1f}"
    return _draw_line(curve, words, tx, ty, anchor)


def _find_free_point(words: str, anchor: str, points: Sequence[Point], taken: Sequence[Area]) -> Point:
    """Return the first point at which the words cover nothing; the first of all if there is none."""
    for x, y in points:
        area = _text_area(words, x, y, anchor)
        if not any(_overlap(area, other) for other in taken):
            return x, y
    return points[0]


def _text_area(words: str, x: float, y: float, anchor: str) -> Area:
    width = LETTER * len(words)
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return left, y - TEXT_HEIGHT, left + width, y


def _overlap(one: Area, other: Area) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _draw_line(line: str, words: str, x: float, y: float, anchor: str) -> str:
    path = f'<path d="{line}" fill="none" stroke="{GREY}" marker-end="url(#tip)"/>'
    if not words:
        return path
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{GREY}"'
    return f"{path}<text {place}>{escape_html(words)}</text>"


def _box_border(node: str, center: Point, toward: Point) -> Point:
    """Return where a line from the center of a box leaves it."""
    dx, dy = toward[0] - center[0], toward[1] - center[1]
    scale = 1.0
    if dx:
        scale = min(scale, _half_width(node) / abs(dx))
    if dy:
        scale = min(scale, HALF / abs(dy))
    return center[0] + dx * scale, center[1] + dy * scale
