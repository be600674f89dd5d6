"""What the thesis reports of the reverse copy task (section 2.3.3)."""

from __future__ import annotations

# Widths of embeddings and cells of the best runs with 10 million parameters, by length.
WIDTHS = {
    "lstm": {150: "498/787", 200: "493/790"},
    "mogrifier": {150: "41/1054", 200: "181/961"},
}
