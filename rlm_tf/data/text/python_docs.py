"""The embedded corpus: the language reference that every CPython carries."""

from __future__ import annotations

import re

SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}

_PARAGRAPH_END = re.compile(r"\n(?: *\n)+")
# Lines below headings and between the rows of tables.
_RULER = re.compile(r"^[ *=\-^~+|]{3,}$", re.MULTILINE)
# Shorter paragraphs (headings, one-line examples) recur by chance.
_LONG_PARAGRAPH = 60


def python_docs() -> dict[str, str]:
    """Returns the text of the splits train, valid and test.

    The source is `pydoc_data.topics` (what `help("while")` shows). A line of a split is
    a paragraph: its own line breaks only fit the text to a terminal. Rulers below
    headings and in tables are left out.

    Several topics quote others in full. Topics that share a long paragraph stay
    together, so that no part of valid or test was seen in training. The groups are
    taken from the longest to the shortest (then by name); each goes to the split that
    is furthest below its share of 80 / 10 / 10.

    The text differs between patch releases of Python, and so do all counts.

    Raises:
        FileNotFoundError: If this Python was built without `pydoc_data`.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise FileNotFoundError(
            "python-docs: this Python has no module pydoc_data.topics; use another "
            "Python 3.11 or another corpus."
        ) from None
    paragraphs = {name: _paragraphs(topics[name]) for name in sorted(topics)}
    sizes = {name: sum(map(len, paragraphs[name])) for name in paragraphs}
    groups = sorted(
        _groups(paragraphs), key=lambda group: (-sum(sizes[n] for n in group), group)
    )
    total = sum(sizes.values())
    lacking = {split: share * total for split, share in SHARES.items()}
    chosen: dict[str, list[str]] = {split: [] for split in SHARES}
    for group in groups:
        split = max(lacking, key=lambda name: lacking[name])
        lacking[split] -= sum(sizes[name] for name in group)
        chosen[split] += group
    return {
        split: "".join(
            paragraph + "\n" for name in sorted(names) for paragraph in paragraphs[name]
        )
        for split, names in chosen.items()
    }


def _paragraphs(topic: str) -> list[str]:
    blocks = _PARAGRAPH_END.split(_RULER.sub(" ", topic))
    return [text for block in blocks if (text := " ".join(block.split()))]


def _groups(paragraphs: dict[str, list[str]]) -> list[list[str]]:
    """Connected topics: those that share a long paragraph, directly or by others."""
    group_of: dict[str, list[str]] = {}
    first_topic: dict[str, str] = {}
    for name, texts in paragraphs.items():
        group_of[name] = [name]
        for text in texts:
            if len(text) < _LONG_PARAGRAPH:
                continue
            other = group_of[first_topic.setdefault(text, name)]
            if other is not group_of[name]:
                other += group_of[name]
                for member in group_of[name]:
                    group_of[member] = other
    return list({id(group): sorted(group) for group in group_of.values()}.values())
