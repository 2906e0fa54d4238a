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
LETTER, TEXT_HEIGHT = 6.6, 14  # of the words on edges
ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)  # where words may be on an edge: the first free place is taken
GREY, INK, FILL, LINE = "#595959", "#1f1f33", "#eceafd", "#8b82d8"
GROUND = '<rect width="100%" height="100%" rx="8" fill="#ffffff"/>'  # no grey suits both white and black
WORDS = f'text-anchor="middle" fill="{GREY}" stroke="#ffffff" stroke-width="4" paint-order="stroke"'
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
    names = list(nodes)
    places: dict[str, Point] = {node: PLACES[node] for node in names if node in PLACES}
    for count, node in enumerate([node for node in names if node not in PLACES]):
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
        _area_around(x, y + HALF, 2 * _half_width(node), 2 * HALF) for node, (x, y) in places.items()
    ]
    texts: list[str] = []
    for (start, end), parts in words_on.items():
        a, middle, b = _bend_edge(places, start, end)
        curve = f"M{a[0]:.1f} {a[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {b[0]:.1f} {b[1]:.1f}"
        lines.append(f'<path d="{curve}" fill="none" stroke="{GREY}" marker-end="url(#tip)"/>')
        if words := ", ".join(filter(None, parts)):
            x, y = _find_free_point(words, (a, middle, b), taken)
            texts.append(f'<text x="{x:.1f}" y="{y:.1f}" {WORDS}>{escape_html(words)}</text>')
    lines += texts  # over all lines
    for node, (x, y) in places.items():
        lines.append(_draw_box(node, x, y))
    return "\n".join([*lines, "</svg>"])


def _half_width(node: str) -> float:
    """Return half of the width of a node's box."""
    return 4 * len(_node_label(node)) + 10


def _node_label(node: str) -> str:
    return node.strip("_") if node in ("__start__", "__end__") else node


def _draw_box(node: str, x: float, y: float) -> str:
    half, radius = _half_width(node), HALF if node.startswith("__") else 5
    return (
        f'<rect x="{x - half:g}" y="{y - HALF}" width="{2 * half:g}" height="{2 * HALF}" rx="{radius}"'
        f' fill="{FILL}" stroke="{LINE}"/>'
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" fill="{INK}">{escape_html(_node_label(node))}</text>'
    )


def _bend_edge(places: Mapping[str, Point], start: str, end: str) -> tuple[Point, Point, Point]:
    """Return the start, the control point and the end of the curve from border to border."""
    (x1, y1), (x2, y2) = places[start], places[end]
    if start == end:
        return (x1 - 18, y1 + HALF), (x1, y1 + 5 * HALF), (x1 + 18, y1 + HALF)
    length, bend = hypot(x2 - x1, y2 - y1) or 1, BENDS.get((start, end), BEND)
    middle = ((x1 + x2) / 2 + (y2 - y1) / length * bend, (y1 + y2) / 2 - (x2 - x1) / length * bend)
    return _box_border(start, (x1, y1), middle), middle, _box_border(end, (x2, y2), middle)


def _find_free_point(words: str, curve: tuple[Point, Point, Point], taken: list[Area]) -> Point:
    """Return where words on a curve cover nothing, else its middle; the place is taken from then on."""
    (ax, ay), (mx, my), (bx, by) = curve
    points: list[Point] = []
    for along in ALONG:
        back = 1 - along
        x = back * back * ax + 2 * along * back * mx + along * along * bx
        y = back * back * ay + 2 * along * back * my + along * along * by + 4
        area = _area_around(x, y, LETTER * len(words), TEXT_HEIGHT)
        if not any(_overlap(area, other) for other in taken):
            taken.append(area)
            return x, y
        points.append((x, y))
    return points[0]


def _area_around(x: float, bottom: float, width: float, height: float) -> Area:
    return x - width / 2, bottom - height, x + width / 2, bottom


def _overlap(one: Area, other: Area) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _box_border(node: str, center: Point, toward: Point) -> Point:
    """Return where a line from the center of a box leaves it."""
    dx, dy = toward[0] - center[0], toward[1] - center[1]
    scale = 1.0
    if dx:
        scale = min(scale, _half_width(node) / abs(dx))
    if dy:
        scale = min(scale, HALF / abs(dy))
    return center[0] + dx * scale, center[1] + dy * scale
