"""Kneser-Ney of much text: peak memory and time, in a process of its own.

    python -m experiments.benchmark.large_counts '{"tokens": 50000000, ...}'

prints what one fit takes, see `Point`, as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
import tempfile

import numpy as np

from experiments.benchmark.preset import Preset
from experiments.benchmark.processes import STATUS, in_a_process, resident, said_of
from experiments.benchmark.timing import Line, Row
from experiments.kit.timing import duration

# Of the text that is made.
_STREAMS = 10_000
_FLOOR = 1e-4


@dataclasses.dataclass(frozen=True)
class Point:
    """What one process measures.

    Attributes:
        data_dir: Folder with the data sets, or "".
        vocabulary_size: V.
        tokens: That are counted.
        order: Of the n-grams.
        seed: Of the text.
    """

    data_dir: str
    vocabulary_size: int
    tokens: int
    order: int
    seed: int


def measure(preset: Preset, data_dir: str, seeds: tuple[int, ...]) -> Row:
    """Fits order 5 to a long text, once, gives it a floor and writes it to a file.

    The text is a chain: each word is one that follows the word before it in the corpus.
    So it has that corpus' words and pairs, and more different longer n-grams than text
    that people write.

    Raises:
        RuntimeError: If the process fails.
    """
    if not STATUS.is_file():
        return Row([Line("memory of Kneser-Ney", "needs /proc (Linux)")], {})
    point = Point(data_dir, preset.vocabulary_size, preset.counted_tokens, 5, seeds[0])
    found = in_a_process(__spec__.name, point)
    what = f"Kneser-Ney of order 5, {point.tokens:,} tokens of a chain of word pairs"
    memory = f"{found['peak_mib'] / 1024:.1f} GiB"
    return Row(
        [
            Line(
                f"{what}, fitted, with a floor, written: peak memory of the process",
                memory,
                f"the text: {found['text_mib'] / 1024:.1f} GiB",
                "",
                "at most 6 GiB",
            ),
            Line(f"{what}, time", duration(found["seconds"]), "", "", "at most 10 min"),
        ],
        {"point": said_of(point), **found},
    )


# === In the process ===


def measure_point(point: Point) -> dict[str, float]:
    """Returns what a fit takes.

    Returns:
        `seconds` of the fit, `peak_mib` of the whole process until the model is a file,
        `fit_mib` of it until it is fitted, and `text_mib`.
    """
    # TensorFlow starts only now: the caller silences it first.
    from experiments.benchmark.stream import training_stream
    from experiments.kit.timing import elapsed
    from rlm_tf.restricted import KneserNey

    stream = training_stream(point.data_dir, point.vocabulary_size)
    text = chain(stream.tokens, point.tokens, point.seed)
    model = KneserNey(point.order)
    seconds = elapsed(lambda: model.fit(text, stream.vocabulary_size))
    fitted = resident("VmHWM")
    with tempfile.TemporaryDirectory() as folder:
        model.with_floor(_FLOOR).save(pathlib.Path(folder) / "n_gram.npz")
    return {
        "seconds": seconds,
        "peak_mib": resident("VmHWM"),
        "fit_mib": fitted,
        "text_mib": text.nbytes / 2**20,
    }


def chain(tokens: np.ndarray, length: int, seed: int) -> np.ndarray:
    """Returns a text in which each word follows the last as somewhere in another.

    Args:
        tokens: int `[N]`.
        length: Of the text, at least.
        seed: Of the draws.

    Returns:
        int32 `[length]`, several chains one behind the other.
    """
    rng = np.random.default_rng(seed)
    # Behind the last token stands the first, so that each has a successor.
    order = np.argsort(tokens, kind="stable")
    starts = np.searchsorted(tokens[order], np.arange(tokens.max() + 2))
    followers = np.roll(tokens, -1)[order].astype(np.int32)
    streams = max(1, min(_STREAMS, length // 100))
    steps = -(-length // streams)
    found = np.empty((streams, steps), np.int32)
    words = followers[rng.integers(len(followers), size=streams)]
    for step in range(steps):
        found[:, step] = words
        first, number = starts[words], starts[words + 1] - starts[words]
        words = followers[first + (rng.random(streams) * number).astype(np.int64)]
    return found.ravel()[:length]


if __name__ == "__main__":
    from rlm_tf.command_line.quiet import silence_tensorflow

    silence_tensorflow()
    print(json.dumps(measure_point(Point(**json.loads(sys.argv[1])))))
