"""Small drawings in SVG: lines, bars and marked moments over a grid.

Each is drawn twice, broad and narrow, and the page shows the one that fits: a drawing that is
merely made smaller cannot be read on a phone. What the colours and marks mean stands below it.
"""

import html
from collections.abc import Callable, Sequence

BROAD, NARROW = 860, 380
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 300, 70, 20, 40, 44
# One tick for each so many units of width.
_TICK_EVERY = 95
# A bar is no wider, so that few of them are no walls, and no lower than this.
_BAR_MAX, _BAR_MIN = 48.0, 3.0
_MARK_WIDTH = 22.0


class Plot:
    """x from `x_min` to `x_max`, y from 0 to `y_max`."""

    def __init__(self, width: int, x_max: float, y_max: float, x_min: float = 0.0) -> None:
        self._width = width
        self._x_min, self._x_max, self._y_max = x_min, x_max, y_max
        self._parts: list[str] = []
        self._last_mark = -_MARK_WIDTH

    def _x(self, value: float) -> float:
        share = (value - self._x_min) / (self._x_max - self._x_min)
        return _LEFT + share * (self._width - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self._y_max * (_HEIGHT - _BOTTOM - _TOP)

    def axes(self, x_name: str, y_name: str) -> None:
        """The grid and its numbers; drawn first, below all else."""
        right = self._width - _RIGHT
        for value in _ticks(0.0, self._y_max, 4):
            y = self._y(value)
            self._parts.append(
                f"<line class=grid x1={_LEFT} x2={right} y1={y:.1f} y2={y:.1f} />"
                f"<text class=tick text-anchor=end x={_LEFT - 8} y={y + 4:.1f}>{value:,.0f}</text>"
            )
        for value in _ticks(self._x_min, self._x_max, self._width // _TICK_EVERY):
            self._parts.append(
                f"<text class=tick text-anchor=middle x={self._x(value):.1f} "
                f"y={_HEIGHT - _BOTTOM + 18}>{value:,.0f}</text>"
            )
        self._parts.append(
            f"<text class=tick text-anchor=end x={right} y={_HEIGHT - 6}>{html.escape(x_name)}"
            f"</text><text class=tick text-anchor=start x=4 y=14>{html.escape(y_name)}</text>"
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line of class `kind`."""
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{path}" />')

    def steps(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line that stays level until the next point."""
        path: list[tuple[float, float]] = []
        for x, y in points:
            if path:
                path.append((x, path[-1][1]))
            path.append((x, y))
        self.line(path, kind)

    def mark(self, x: float, number: int) -> None:
        """A moment, by its number in the list below; the earliest first."""
        at = self._x(x)
        # Numbers of moments that are close to each other stand side by side.
        shown = self._last_mark = max(at, self._last_mark + _MARK_WIDTH)
        self._parts.append(
            f"<line class=mark x1={at:.1f} x2={at:.1f} y1={_TOP} y2={_HEIGHT - _BOTTOM} />"
            f"<circle class=mark cx={shown:.1f} cy={_TOP - 12} r=10 />"
            f"<text class=number text-anchor=middle x={shown:.1f} y={_TOP - 7}>{number}</text>"
        )

    def span(self, first: float, last: float, text: str) -> None:
        """A stretch of time, shaded, and named in its middle."""
        left, right = self._x(max(first, self._x_min)), self._x(min(last, self._x_max))
        self._parts.append(
            f"<rect class=span x={left:.1f} y={_TOP} width={right - left:.1f} "
            f"height={_HEIGHT - _BOTTOM - _TOP} />"
            f"<text class=span text-anchor=middle x={(left + right) / 2:.1f} "
            f"y={_HEIGHT - _BOTTOM - 10}>{html.escape(text)}</text>"
        )

    def bar(self, number: int, value: float, title: str, kind: str = "bar") -> None:
        """A bar at `number`; `title` is shown where a pointer rests on it."""
        self.between(number, 0.0, value, title, kind)

    def stack(self, number: int, parts: Sequence[tuple[float, str, str]]) -> None:
        """Bars on top of each other at `number`: of each its value, its class, its title."""
        base = 0.0
        for value, kind, title in parts:
            if value:
                self.between(number, base, base + value, title, kind)
            base += value

    def between(self, number: int, low: float, high: float, title: str, kind: str) -> None:
        """A bar at `number` from `low` to `high`; one that is not 0 high can be seen."""
        width = max(2.0, min(_BAR_MAX, (self._x(1) - self._x(0)) * 0.7))
        height = self._y(low) - self._y(high)
        if high:
            height = max(height, _BAR_MIN)
        self._parts.append(
            f'<rect class="{kind}" x={self._x(number) - width / 2:.1f} '
            f"y={self._y(low) - height:.1f} width={width:.1f} height={height:.1f}>"
            f"<title>{html.escape(title)}</title></rect>"
        )

    def svg(self, label: str, kind: str) -> str:
        return (
            f'<svg class={kind} viewBox="0 0 {self._width} {_HEIGHT}" role=img '
            f'aria-label="{html.escape(label)}">' + "".join(self._parts) + "</svg>"
        )


def figure(
    label: str,
    draw: Callable[[int], Plot],
    lines: Sequence[tuple[str, str]] = (),
    marks: Sequence[str] = (),
) -> str:
    """A drawing in both widths, and below it the names of its lines (by class) and its marks."""
    keys = "".join(f'<li><i class="{kind}"></i>{html.escape(name)}' for kind, name in lines)
    keys += "".join(
        f"<li><b class=mark>{number}</b>{html.escape(what)}"
        for number, what in enumerate(marks, start=1)
    )
    drawings = draw(BROAD).svg(label, "broad") + draw(NARROW).svg(label, "narrow")
    legend = f"<ul class=legend>{keys}</ul>" if keys else ""
    return f"<figure>{drawings}<figcaption>{legend}</figcaption></figure>"


def _ticks(least: float, most: float, count: int) -> list[float]:
    """Round numbers from `least` to `most`, about so many."""
    step = _round_step((most - least) / max(count, 1))
    first = -(-least // step) * step + 0.0  # No -0.
    return [first + number * step for number in range(int((most - first) / step) + 1)]


def _round_step(rough: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, at least `rough`, at least 1."""
    step = 1.0
    while True:
        for factor in (1, 2, 5):
            if step * factor >= rough:
                return step * factor
        step *= 10
