"""The curves as a picture: recall to the right, by its nines; the rate upwards, by its logarithm.

SVG by hand, PNG by matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path

# Told apart by readers with any kind of colour vision (Okabe and Ito, 2008); further systems are dashed.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LOWEST = 0.8
HIGHEST = 0.9999  # What finds more stands here.
RECALLS = (0.8, 0.9, 0.95, 0.99, 0.999, HIGHEST)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 400, 80, 200, 46, 54
Y_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Curve:
    """A system's points, (recall, rate), by rising recall."""

    name: str
    points: Sequence[tuple[float, float]]

    def seen(self) -> list[tuple[float, float]]:
        """Those on the picture."""
        return [point for point in self.points if point[0] >= LOWEST]


def nines(recall: float) -> float:
    """1 for 0.9, 2 for 0.99: what is missed counts, and near 1 it is told apart no other way."""
    return -log10(1 - min(recall, HIGHEST))


def x_of(recall: float) -> float:
    """The place of a recall."""
    share = (nines(recall) - nines(LOWEST)) / (nines(HIGHEST) - nines(LOWEST))
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten that lie within."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [tick for power in powers for step in Y_STEPS if low <= (tick := step * 10.0**power) <= high]


def panel(title: str, curves: Sequence[Curve]) -> str:
    """One set's curves on axes of their own."""
    rates = [rate for curve in curves for _, rate in curve.seen()]
    low, high = min(rates) / 1.1, max(rates) * 1.1
    bottom = HEIGHT - BOTTOM

    def y_of(rate: float) -> float:
        return bottom - (log10(rate) - log10(low)) / (log10(high) - log10(low)) * (bottom - TOP)

    right = WIDTH - RIGHT
    out = [f'<text x="{LEFT}" y="26" font-size="15" font-weight="bold">{escape(title)}</text>']
    for tick in ticks(low, high):
        y = y_of(tick)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:,.0f}</text>')
    for recall in RECALLS:
        x = x_of(recall)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{recall:g}</text>')
    out.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{bottom + 40}" text-anchor="middle">recall@10</text>')
    up = f'transform="translate(18 {(TOP + bottom) / 2:.0f}) rotate(-90)"'
    out.append(f'<text {up} text-anchor="middle">queries a second of processor time</text>')
    for number, curve in enumerate(curves):
        colour, dash = style(number)
        points = " ".join(f"{x_of(recall):.1f},{y_of(rate):.1f}" for recall, rate in curve.seen())
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        for point in points.split():
            x, y = point.split(",")
            out.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        y = TOP + 12 + 20 * number
        out.append(
            f'<line x1="{right + 16}" y1="{y}" x2="{right + 40}" y2="{y}" stroke="{colour}" stroke-width="2"{dash}/>'
        )
        out.append(f'<text x="{right + 46}" y="{y + 4}">{escape(curve.name)}</text>')
    return "\n".join(out)


def style(number: int) -> tuple[str, str]:
    """Colour and dashes of the n-th curve."""
    return COLOURS[number % len(COLOURS)], ' stroke-dasharray="6 4"' if number >= len(COLOURS) else ""


def svg(panels: Sequence[tuple[str, Sequence[Curve]]]) -> str:
    """All sets below each other."""
    height = HEIGHT * len(panels)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, curves) in enumerate(panels):
        out += [f'<g transform="translate(0 {HEIGHT * number})">', panel(title, curves), "</g>"]
    return "\n".join([*out, "</svg>"]) + "\n"


def png(panels: Sequence[tuple[str, Sequence[Curve]]], path: Path) -> None:
    """The same by matplotlib; ImportError if it is not there."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(panels), 1, figsize=(9, 4.5 * len(panels)), squeeze=False)
    for (title, curves), axis in zip(panels, axes[:, 0], strict=True):
        for number, curve in enumerate(curves):
            colour, dash = style(number)
            places = [nines(recall) for recall, _ in curve.seen()]
            rates = [rate for _, rate in curve.seen()]
            axis.plot(places, rates, "o--" if dash else "o-", color=colour, label=curve.name, ms=3)
        axis.set(title=title, xlabel="recall@10", ylabel="queries a second of processor time", yscale="log")
        axis.set_xticks([nines(recall) for recall in RECALLS], [f"{recall:g}" for recall in RECALLS])
        axis.grid(visible=True, which="both", alpha=0.3)
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
