"""A time axis on which short steps stay visible."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median

from wakeloop.display.formatting import format_elapsed

NARROWEST, WIDEST = 0.4, 6.0  # width of a step, relative to the median
PAUSE_SECONDS = 60.0  # a shortened step of this length is marked as a pause
FULL_WIDTH = 100.0


class TimeAxis:
    """Maps times in seconds to positions in percent.

    A step is as wide as it was long, within bounds: very long ones are shortened, so that a night between two
    messages does not hide the work, and very short ones are widened.
    """

    def __init__(self, times: Sequence[float]) -> None:
        self.times = sorted(set(times)) or [0.0]
        took = [after - before for before, after in pairwise(self.times)]
        middle = median(took) if took else 1.0
        drawn = [min(max(one, NARROWEST * middle), WIDEST * middle) for one in took]
        total = sum(drawn) or 1.0
        self.places = [place / total * FULL_WIDTH for place in accumulate(drawn, initial=0.0)]
        self.pauses = []
        for (start, end), seconds in zip(pairwise(self.places), took, strict=True):
            if seconds > max(WIDEST * middle, PAUSE_SECONDS):
                self.pauses.append((start, end, seconds))

    def place(self, time: float) -> float:
        """Return the position of a time, from 0 to 100."""
        at = bisect_right(self.times, time) - 1
        if at < 0:
            return 0.0
        if at + 1 >= len(self.times):
            return self.places[-1]
        before, after = self.times[at], self.times[at + 1]
        share = (time - before) / (after - before)
        return self.places[at] + share * (self.places[at + 1] - self.places[at])

    def ticks(self, most: int = 5) -> Iterator[tuple[float, str]]:
        """Yield positions with the time since the beginning, without repeating a label."""
        last = None
        for number in range(most):
            place = FULL_WIDTH * number / most
            at = min(bisect_right(self.places, place) - 1, len(self.times) - 1)
            text = format_elapsed(self.times[at] - self.times[0])
            if text != last:
                yield self.places[at], text
            last = text
