"""One axis of time on which short steps can be seen."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from statistics import median

from wakeloop.display.formatting import format_elapsed

NARROWEST, WIDEST = 0.4, 6.0  # how wide a step is drawn, by the width of the middle one
PAUSE_SECONDS = 60.0  # seconds: a shortened step that took as long is told as a pause
FULL_WIDTH = 100.0


class TimeAxis:
    """Places in percent for times in seconds.

    A step is drawn as wide as it took, within bounds: what took very long is shortened, so that a night
    between two messages does not hide the work, and what took no time is widened.
    """

    def __init__(self, times: Sequence[float]) -> None:
        self.times = sorted(set(times)) or [0.0]
        took = [b - a for a, b in zip(self.times, self.times[1:], strict=False)]
        middle = median(took) if took else 1.0
        drawn = [min(max(one, NARROWEST * middle), WIDEST * middle) for one in took]
        total = sum(drawn) or 1.0
        self.places = [place / total * FULL_WIDTH for place in accumulate(drawn, initial=0.0)]
        self.pauses = [
            (self.places[place], self.places[place + 1], one)
            for place, one in enumerate(took)
            if one > max(WIDEST * middle, PAUSE_SECONDS)
        ]

    def place(self, time: float) -> float:
        """Where a time is, between 0 and 100."""
        at = bisect_right(self.times, time) - 1
        if at < 0:
            return 0.0
        if at + 1 >= len(self.times):
            return self.places[-1]
        before, after = self.times[at], self.times[at + 1]
        share = (time - before) / (after - before)
        return self.places[at] + share * (self.places[at + 1] - self.places[at])

    def ticks(self, most: int = 5) -> Iterator[tuple[float, str]]:
        """Some places with the time since the beginning; none is told twice."""
        told = None
        for number in range(most):
            place = FULL_WIDTH * number / most
            at = min(bisect_right(self.places, place) - 1, len(self.times) - 1)
            text = format_elapsed(self.times[at] - self.times[0])
            if text != told:
                yield self.places[at], text
            told = text
