"""One page of HTML with the summary and plots of every simulation; it needs nothing but itself."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import msgspec

from armada.cli.simulating.figures import Summary
from armada.cli.simulating.showing import HEADINGS, headline, queue_rows

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
img { width: 100%; background: #fff; }
p { color: #555; }
"""


class Chapter(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation on the page; the plots are SVG texts, each with what it shows."""

    title: str
    summary: Summary
    remarks: Sequence[str]
    plots: Sequence[tuple[str, str]]


def page(chapters: Iterable[Chapter]) -> str:
    """Return the page."""
    body = "\n".join(_chapter(chapter) for chapter in chapters)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Armada simulations</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>Armada simulations</h1>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _chapter(chapter: Chapter) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in HEADINGS)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in queue_rows(chapter.summary)
    )
    remarks = "".join(f"<p>{escape(remark)}</p>\n" for remark in chapter.remarks)
    return (
        f"<h2>{escape(chapter.title)}</h2>\n<p>{escape(headline(chapter.summary))}</p>\n{remarks}"
        f"<table>\n<tr>{head}</tr>\n{rows}\n</table>\n" + "\n".join(_image(*plot) for plot in chapter.plots)
    )


def _image(text: str, svg: str) -> str:
    # As an image of its own: ids of several drawings in one document would meet.
    return f'<img alt="{escape(text)}" src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}">'
