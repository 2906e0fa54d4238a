"""The graph as a picture: an SVG made here, or plain text."""

from collections.abc import Iterator
from html import escape

from langchain_core.runnables.graph import Edge, Graph

PLACES = {  # column and row of each node that every graph of this package has
    "__start__": (1, 0),
    "activate": (1, 1),
    "nag": (0, 2),
    "call_model": (1, 2),
    "wake": (2, 2),
    "validate_todos": (0, 3),
    "run_tools": (1, 3),
    "finalization_guard": (2, 3),
    "__end__": (2, 4),
}
COLUMN, ROW, HALF_WIDTH, HALF_HEIGHT = 290, 130, 78, 19
MARGIN = 50
BOW = 0.16  # of an edge's length, where there is a way back, or a node between; the others are straight
ALONG = 0.35  # an edge, where its words stand: nearer to the fork that says them
STYLE = """
  text { font: 13px system-ui, sans-serif; text-anchor: middle; dominant-baseline: central; fill: #1f2328 }
  .word { font-size: 11px; stroke: #fff; stroke-width: 5px; paint-order: stroke; stroke-linejoin: round }
  rect { fill: #eef2ff; stroke: #5b6bb5 } .page { fill: #fff; stroke: none }
  .way { fill: none; stroke: #68707c } .fork { stroke-dasharray: 4 3 } marker path { fill: #68707c }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ef } .word { stroke: #15181d } rect { fill: #232a45 } .page { fill: #15181d }
  }
"""
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" role="img" aria-label="The graph, and the words on its ways">
<style>{style}</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">\
<path d="M0 0 8 4 0 8z"/></marker></defs>
<rect class="page" width="{width}" height="{height}"/>"""
Point = tuple[float, float]


def words_of(edge: Edge) -> str:
    """The words on an edge; "" where it has none."""
    return "" if edge.data is None else str(edge.data)


def as_text(graph: Graph) -> Iterator[str]:
    """Each node, and the ways that lead from it, in plain ASCII."""
    wide = max(map(len, graph.nodes))
    for node in graph.nodes:
        yield node
        for edge in graph.edges:
            if edge.source == node:
                yield f"  -> {edge.target:{wide}}  {words_of(edge)}".rstrip()


def as_svg(graph: Graph) -> str:
    """The graph as an SVG that needs nothing else; a node of the caller's own stands in a row below."""
    others = [node for node in graph.nodes if node not in PLACES]
    places = {**PLACES, **{node: (at % 3, 5 + at // 3) for at, node in enumerate(others)}}
    at = {
        node: (MARGIN + HALF_WIDTH + COLUMN * places[node][0], MARGIN + ROW * places[node][1])
        for node in graph.nodes
    }
    width = int(max(x for x, _ in at.values())) + HALF_WIDTH + MARGIN
    height = int(max(y for _, y in at.values())) + MARGIN
    back = {(edge.target, edge.source) for edge in graph.edges}
    ways = [
        way(edge, at[edge.source], at[edge.target], BOW * ((edge.source, edge.target) in back))
        for edge in graph.edges
    ]
    boxes = [box(node, *place) for node, place in at.items()]
    head = HEAD.format(width=width, height=height, style=STYLE)
    lines = [head, *(drawn for drawn, _ in ways), *boxes, *(word for _, word in ways if word), "</svg>"]
    return "\n".join(lines) + "\n"


def box(node: str, x: float, y: float) -> str:
    """A node."""
    corner = f'x="{x - HALF_WIDTH:.0f}" y="{y - HALF_HEIGHT:.0f}"'
    size = f'width="{2 * HALF_WIDTH}" height="{2 * HALF_HEIGHT}"'
    drawn = f'<rect {corner} {size} rx="{HALF_HEIGHT if node.startswith("__") else 6}"/>'
    return f'{drawn}<text x="{x:.0f}" y="{y:.0f}">{escape(node.strip("_"))}</text>'


def way(edge: Edge, start: Point, end: Point, bow: float) -> tuple[str, str]:
    """An edge from box to box, and its words on it."""
    (ax, ay), (bx, by) = start, end
    if (ay == by and abs(bx - ax) > COLUMN) or (ax == bx and abs(by - ay) > ROW):
        bow = 2 * BOW
    turn: Point = ((ax + bx) / 2 - bow * (by - ay), (ay + by) / 2 + bow * (bx - ax))
    (ax, ay), (bx, by) = border(start, turn), border(end, turn)
    kind = "way fork" if edge.conditional else "way"
    curve = f"M{ax:.0f} {ay:.0f}Q{turn[0]:.0f} {turn[1]:.0f} {bx:.0f} {by:.0f}"
    drawn = f'<path class="{kind}" marker-end="url(#tip)" d="{curve}"/>'
    words = words_of(edge)
    first, second, third = (1 - ALONG) ** 2, 2 * ALONG * (1 - ALONG), ALONG**2
    x, y = first * ax + second * turn[0] + third * bx, first * ay + second * turn[1] + third * by
    return drawn, f'<text class="word" x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>' if words else ""


def border(middle: Point, outside: Point) -> Point:
    """Where the line from a box's middle to a point leaves the box."""
    dx, dy = outside[0] - middle[0], outside[1] - middle[1]
    reach = min(HALF_WIDTH / abs(dx) if dx else 9, HALF_HEIGHT / abs(dy) if dy else 9)
    return middle[0] + dx * reach, middle[1] + dy * reach
