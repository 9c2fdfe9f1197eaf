"""Plots of what happened over time: PNG files, and the same as SVG for the page."""

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from armada.cli.simulating.figures import Panel, drawn

WIDTH_INCHES: Final = 10.0
PANEL_INCHES: Final = 3.2
DOTS_PER_INCH: Final = 110

_UNITS: Final = ((86_400.0, 3 * 86_400.0, "days"), (3_600.0, 2 * 3_600.0, "hours"), (60.0, 240.0, "minutes"))


def _settings() -> AbstractContextManager[None]:
    """Whatever the machine's own settings are: equal results give equal plots, and names are not read as formulas."""
    return rc_context({"svg.hashsalt": "armada", "font.family": "DejaVu Sans", "text.parse_math": False})


def write_png(panels: Sequence[Panel], file: Path) -> None:
    """Draw panels above each other into a PNG file."""
    with _settings():
        _figure(panels).savefig(file, format="png", dpi=DOTS_PER_INCH)


def svg(panels: Sequence[Panel]) -> str:
    """Draw panels above each other and return the SVG text."""
    out = io.StringIO()
    with _settings():
        _figure(panels).savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _figure(panels: Sequence[Panel]) -> Figure:
    figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        _draw(axes, drawn(panel))
    return figure


def _draw(axes: Any, panel: Panel) -> None:
    end_s = float(panel.seconds[-1]) if len(panel.seconds) else 0.0
    divisor, unit = next(((each, name) for each, above, name in _UNITS if end_s >= above), (1.0, "seconds"))
    times = panel.seconds / divisor
    colours: dict[str, Any] = {}
    for name, values in panel.lines:
        [line] = axes.step(times, values, where="post", label=name, linewidth=1.4)
        colours[name] = line.get_color()
    for name, values in panel.dashed:
        axes.step(times, values, where="post", color=colours.get(name), linestyle="--", linewidth=0.8)
    axes.set_title(panel.title + (" (dashed: fair share)" if panel.dashed else ""), fontsize=11, loc="left")
    axes.set_xlabel(unit)
    axes.set_xlim(left=0, right=max(end_s / divisor, 1e-9))
    axes.set_ylim(bottom=0)
    if panel.is_fraction:
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
    axes.grid(visible=True, linewidth=0.4, alpha=0.6)
    if panel.lines:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
