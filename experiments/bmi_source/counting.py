"""How much neighbouring sentences that a model says share, by counting markers."""

from __future__ import annotations

import numpy as np


def markers_of(texts: list[np.ndarray], num_topics: int) -> list[np.ndarray]:
    """Returns the first marker of each whole sentence of each text; 0: none.

    Args:
        texts: Tokens of `TopicSource`; what stands behind the last end is left out.
        num_topics: C.
    """
    found = []
    for text in texts:
        markers = []
        for sentence in np.split(text, np.flatnonzero(text == 0) + 1)[:-1]:
            shown = sentence[(sentence >= 1) & (sentence <= num_topics)]
            markers.append(int(shown[0]) if len(shown) else 0)
        found.append(np.array(markers, np.int64))
    return found


def counted_information(rows: list[np.ndarray], num_symbols: int) -> float:
    """Returns the mutual information of neighbours in rows of symbols, in nats.

    That of their counts, less its bias by Miller and Madow: (r - 1) (c - 1) / 2N for
    r and c symbols that occur.
    """
    counts = np.zeros((num_symbols, num_symbols))
    for row in rows:
        np.add.at(counts, (row[:-1], row[1:]), 1)
    total = counts.sum()
    if not total:
        return float("nan")
    joint = counts / total
    first, second = joint.sum(axis=1), joint.sum(axis=0)
    product = np.outer(first, second)
    there = joint > 0
    value = float(np.sum(joint[there] * np.log(joint[there] / product[there])))
    spare = (np.count_nonzero(first) - 1) * (np.count_nonzero(second) - 1)
    return value - spare / (2 * float(total))
