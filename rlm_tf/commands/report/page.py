"""A page of headings, paragraphs, tables and figures, as Markdown and as HTML."""

from __future__ import annotations

import base64
import html
import pathlib
from collections.abc import Sequence

from rlm_tf.command_line.written_files import write_beside

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
pre { background: #f5f5f5; padding: .75rem; white-space: pre-wrap; }
img { max-width: 100%; }
.warning { border-left: 4px solid #d1760a; padding-left: .75rem; }
"""


class Page:
    """Collects blocks and writes them twice.

    Args:
        title: Of the page.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._markdown = [f"# {title}", ""]
        self._html = [f"<h1>{html.escape(title)}</h1>"]
        self._figures: dict[str, bytes] = {}

    def heading(self, text: str) -> None:
        """Begins a section."""
        self._markdown += [f"## {text}", ""]
        self._html.append(f"<h2>{html.escape(text)}</h2>")

    def paragraph(self, text: str, warning: bool = False) -> None:
        """Adds a paragraph, marked if it is a warning."""
        self._markdown += [f"**Warning:** {text}" if warning else text, ""]
        mark = ' class="warning"' if warning else ""
        self._html.append(f"<p{mark}>{html.escape(text)}</p>")

    def items(self, lines: Sequence[str]) -> None:
        """Adds a list."""
        self._markdown += [*(f"- {line}" for line in lines), ""]
        inside = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        self._html.append(f"<ul>{inside}</ul>")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Adds a table, whose first row has the titles; numbers stand on the right."""
        self._markdown += [*markdown_table(rows), ""]
        parts = []
        for number, row in enumerate(rows):
            tag = "td" if number else "th"
            cells = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
            parts.append(f"<tr>{cells}</tr>")
        self._html.append(f"<table>{''.join(parts)}</table>")

    def text(self, text: str) -> None:
        """Adds text as it is, with its line breaks."""
        fence = "~~~~"
        while fence in text:
            fence += "~"
        self._markdown += [fence, text, fence, ""]
        self._html.append(f"<pre>{html.escape(text)}</pre>")

    def figure(self, name: str, png: bytes, about: str) -> None:
        """Adds a figure; `about` says what it shows."""
        self._figures[f"{name}.png"] = png
        self._markdown += [f"![{about}](report_files/{name}.png)", ""]
        data = base64.b64encode(png).decode()
        self._html.append(
            f'<p><img alt="{html.escape(about)}" '
            f'src="data:image/png;base64,{data}"></p>'
        )

    def write(self, folder: pathlib.Path) -> None:
        """Writes report.md with its figures, and report.html, which needs nothing."""
        files = folder / "report_files"
        files.mkdir(parents=True, exist_ok=True)
        for name, png in self._figures.items():
            (files / name).write_bytes(png)
        page = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head>"
            f"<body>{''.join(self._html)}</body></html>\n"
        )
        for name, content in (
            ("report.md", "\n".join(self._markdown)),
            ("report.html", page),
        ):
            write_beside(folder / name, content.encode())


def markdown_table(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Returns the lines of a table, columns padded to one width.

    Args:
        rows: Cells, the titles first.
        left: So many columns are words, and begin on the left.
    """
    cells = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows
    ]
    # A rule with a colon has two characters.
    widths = [max(2, *(len(row[i]) for row in cells)) for i in range(len(cells[0]))]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if place < left else "-" * (width - 1) + ":"
        for place, width in enumerate(widths)
    ]
    return [line(cells[0]), f"| {' | '.join(rule)} |", *map(line, cells[1:])]
