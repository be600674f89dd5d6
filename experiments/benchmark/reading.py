"""How fast a text becomes a corpus: vocabulary and ids, under each rule."""

from __future__ import annotations

import collections
import functools
import pathlib
import tempfile

import numpy as np

from experiments.benchmark.timing import Line, Row, Timings
from rlm_tf.data import load_text_corpus
from rlm_tf.data.text.python_docs import python_docs

_RULES = ("whitespace", "words", "characters", "sentencepiece-unigram")
# The embedded text is short.
_COPIES = 5
_WANTED = "words"
_TARGET = "at least 11.5 MB/s"


def measure(rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times reading the embedded text, a few times over, from a file.

    The peer cuts it at blanks, counts, and looks every word up in a dictionary.
    """
    timings = Timings()
    text = "".join(python_docs().values()) * _COPIES
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "text.txt"
        path.write_text(text)
        megabytes = path.stat().st_size / 1e6
        steps = {
            rule: functools.partial(load_text_corpus, path, rule=rule)
            for rule in _RULES
        }
        for _ in seeds:
            timings.run(
                {**steps, "peer": functools.partial(_by_dictionary, path)},
                rounds,
                warm_up=1,
            )

    def speed(name: str) -> str:
        return f"{megabytes / timings.median(name):.1f} MB/s"

    lines = [
        Line(
            f"text to corpus, {megabytes:.1f} MB, rule {rule}",
            f"{timings.text(rule)} ({speed(rule)})",
            f"split, count, dictionary: {timings.text('peer')} ({speed('peer')})",
            timings.ratio(rule, "peer"),
            _TARGET if rule == _WANTED else "",
        )
        for rule in _RULES
    ]
    return Row(lines, {"megabytes": megabytes, "times": timings.numbers()})


def _by_dictionary(path: pathlib.Path) -> np.ndarray:
    words = [[*line.split(), "<eos>"] for line in path.read_text().splitlines()]
    stream = [word for line in words for word in line]
    counts = collections.Counter(stream)
    ids = {word: number for number, (word, _) in enumerate(counts.most_common())}
    return np.array([ids[word] for word in stream], np.int32)
