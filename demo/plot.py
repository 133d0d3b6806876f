"""Small drawings in SVG: lines, bars and marked moments over a grid."""

import html
from collections.abc import Sequence

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 300, 70, 20, 40, 36


class Plot:
    """x from `x_min` to `x_max`, y from 0 to `y_max`."""

    def __init__(self, x_max: float, y_max: float, x_min: float = 0.0) -> None:
        self._x_min, self._x_max, self._y_max = x_min, x_max, y_max
        self._parts: list[str] = []

    def _x(self, value: float) -> float:
        share = (value - self._x_min) / (self._x_max - self._x_min)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self._y_max * (_HEIGHT - _BOTTOM - _TOP)

    def axes(self, x_name: str, y_name: str, x_ticks: Sequence[float] | None = None) -> None:
        """The grid and its numbers; drawn first, below all else. `x_ticks`: which, if not round."""
        for value in _ticks(0.0, self._y_max, 4):
            y = self._y(value)
            self._parts.append(
                f"<line class=grid x1={_LEFT} x2={_WIDTH - _RIGHT} y1={y:.1f} y2={y:.1f} />"
                f"<text class=tick text-anchor=end x={_LEFT - 8} y={y + 4:.1f}>{value:,.0f}</text>"
            )
        for value in _ticks(self._x_min, self._x_max, 8) if x_ticks is None else x_ticks:
            self._parts.append(
                f"<text class=tick text-anchor=middle x={self._x(value):.1f} "
                f"y={_HEIGHT - _BOTTOM + 18}>{value:,.0f}</text>"
            )
        self._parts.append(
            f"<text class=tick text-anchor=end x={_WIDTH - _RIGHT} y={_HEIGHT - 2}>{x_name}</text>"
            f"<text class=tick text-anchor=start x=4 y=14>{y_name}</text>"
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str, name: str, row: int) -> None:
        """A line of class `kind`, named in line `row` of the legend above the drawing."""
        level = 12 + 17 * row
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
        self._parts.append(
            f'<polyline class="{kind}" points="{path}" />'
            f'<line class="{kind}" x1={_LEFT + 14} x2={_LEFT + 38} y1={level} y2={level} />'
            f"<text x={_LEFT + 44} y={level + 4}>{html.escape(name)}</text>"
        )

    def mark(self, x: float, what: str, row: int) -> None:
        """A moment, told beside it in line `row` from the top."""
        at = self._x(x)
        right = at > _WIDTH * 0.6
        self._parts.append(
            f"<line class=mark x1={at:.1f} x2={at:.1f} y1={_TOP} y2={_HEIGHT - _BOTTOM} />"
            f"<text class=mark text-anchor={'end' if right else 'start'} "
            f"x={at + (-5 if right else 5):.1f} y={_TOP + 12 + 18 * row}>"
            f"{html.escape(what)}</text>"
        )

    def bar(self, number: int, value: float, title: str) -> None:
        """A bar at `number`; `title` is shown where a pointer rests on it."""
        width = max(4.0, (self._x(1) - self._x(0)) * 0.7)
        self._parts.append(
            f"<rect class=bar x={self._x(number) - width / 2:.1f} y={self._y(value):.1f} "
            f"width={width:.1f} height={self._y(0) - self._y(value):.1f}>"
            f"<title>{html.escape(title)}</title></rect>"
        )

    def svg(self, label: str) -> str:
        return (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role=img aria-label="{html.escape(label)}">'
            + "".join(self._parts)
            + "</svg>"
        )


def _ticks(least: float, most: float, count: int) -> list[float]:
    """Round numbers from `least` to `most`, about so many."""
    step = _round_step((most - least) / count)
    first = -(-least // step) * step
    return [first + number * step for number in range(int((most - first) / step) + 1)]


def _round_step(rough: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, at least `rough`, at least 1."""
    step = 1.0
    while True:
        for factor in (1, 2, 5):
            if step * factor >= rough:
                return step * factor
        step *= 10
