"""What a teacher says of each token of a text, stored once."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import pathlib
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range, check_running
from rlm_tf.data.batches.contiguous_batches import ContiguousBatches
from rlm_tf.file_errors import naming
from rlm_tf.models.distillation.language_teachers import (
    ModelTeachers,
    RestrictedTeacher,
    mean_of_samples,
    teachers_of,
)
from rlm_tf.objectives.divergences import log_sum
from rlm_tf.objectives.lumped_probs import LumpedProbs

_SETTINGS = "predictions.json"
_ARRAYS = ("words", "log_probs", "log_rest", "targets")
# Contexts of a restricted model that are looked up at once.
_ROWS = 1024


class TeacherPredictions:
    """The k most probable words of each token of a text, in memory-mapped files.

    So a teacher, or an ensemble of many, costs its students one pass over the text, and
    then no more than their own softmax. All other words are one lump, whose probability
    is stored, too: `objectives.distillation.lumped_kd`.

    Args:
        path: A folder that `write` made.

    Attributes:
        path: The folder.
        num_tokens: N, tokens of the text.
        vocabulary_size: V.
        k: Words of a token.
        temperature: T of the predictions; they are of no other.

    Raises:
        FileNotFoundError: If there are none.
        ValueError: If a file of theirs is missing or cut.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        settings = self.path / _SETTINGS
        if not settings.exists():
            raise FileNotFoundError(
                f"{type(self).__name__}: {self.path} has no predictions "
                f"({_SETTINGS} is missing); `TeacherPredictions.write` makes them."
            )
        try:
            found = json.loads(settings.read_text())
            self.num_tokens = int(found["num_tokens"])
            self.vocabulary_size = int(found["vocabulary_size"])
            self.k = int(found["k"])
            self.temperature = float(found["temperature"])
            self._arrays = [
                np.load(self.path / f"{name}.npy", mmap_mode="r") for name in _ARRAYS
            ]
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(
                f"{type(self).__name__}: {self.path} is damaged ({error}); remove it, "
                "and `TeacherPredictions.write` makes it anew."
            ) from error

    @classmethod
    def write(
        cls,
        teacher: Any,
        batches: ContiguousBatches,
        path: str | os.PathLike[str],
        k: int = 64,
        temperature: float = 1.0,
        *,
        dynamic: Any = None,
        dropout: Any = None,
    ) -> TeacherPredictions:
        """Runs a teacher over a text, and stores what it says.

        Args:
            teacher: A language model, a list of such, whose probabilities are averaged,
                or a `RestrictedModel`. States are carried.
            batches: Of the text. Any batches of the same text find the predictions.
            path: The folder, which must not be there yet. It is written beside and
                renamed.
            k: Words of a token; at most V.
            temperature: T: `softmax(ln p / T)` is stored.
            dynamic: An `rlm_tf.evaluation.DynamicEvaluation`: the weights of a single
                language model follow the text, each window after it was predicted, and
                are put back in the end. Of a text that the teacher has not seen
                (`join`), and best in one row.
            dropout: An `rlm_tf.evaluation.MonteCarloDropout`: the mean probabilities
                under many dropout masks of language models; None: dropout is off.

        Raises:
            ValueError: If the teacher is none, or several with `dynamic`, or has no
                dropout, `dynamic` and `dropout` are both given, a number is out of
                range, or a prediction is not finite.
            FileExistsError: If the folder is there.
        """
        name = f"{cls.__name__}.write"
        check_integer(name, "k", k, 1)
        check_range(name, 1e-6, math.inf, temperature=temperature)
        if not isinstance(batches, ContiguousBatches):
            raise ValueError(
                f"{name}: `batches` must be those of `contiguous_batches`, found "
                f"{type(batches).__name__}."
            )
        teachers = teachers_of(name, teacher)
        if dynamic is not None and (
            isinstance(teachers, RestrictedTeacher) or len(teachers.models) > 1
        ):
            raise ValueError(
                f"{name}: `dynamic` is for a single language model, found "
                f"{len(teachers.models)} of {type(teachers.models[0]).__name__}."
            )
        if dropout is not None and (
            isinstance(teachers, RestrictedTeacher) or dynamic is not None
        ):
            raise ValueError(
                f"{name}: `dropout` is for language models, and without `dynamic`."
            )
        with _written_beside(name, pathlib.Path(path)) as folder:
            said = _predictions(teachers, batches, dynamic, dropout)
            # Models are as they were at once, whatever happens.
            with contextlib.closing(said) as found:
                _write(name, found, batches, folder, k, temperature)
        return cls(path)

    @classmethod
    def join(
        cls, parts: Sequence[TeacherPredictions], path: str | os.PathLike[str]
    ) -> TeacherPredictions:
        """Puts predictions of the parts of a text behind each other.

        So cross-fitted teachers, each of which has not seen a part, say what each part
        holds.

        Args:
            parts: In the order of the text; of one vocabulary, k and temperature.
            path: The folder, which must not be there yet.

        Raises:
            ValueError: If there is none, or they differ.
            FileExistsError: If the folder is there.
        """
        name = f"{cls.__name__}.join"
        kinds = {(each.vocabulary_size, each.k, each.temperature) for each in parts}
        if len(kinds) != 1:
            raise ValueError(
                f"{name}: `parts` must be of one vocabulary, k and temperature, found "
                f"{sorted(kinds) or 'none'}."
            )
        number = sum(each.num_tokens for each in parts)
        with _written_beside(name, pathlib.Path(path)) as folder:
            for array, values in zip(
                _ARRAYS,
                zip(*(each._arrays for each in parts), strict=True),
                strict=True,
            ):
                np.save(folder / f"{array}.npy", np.concatenate(values))
            _write_settings(folder, number, *kinds.pop())
        return cls(path)

    def at(self, places: tf.Tensor, targets: tf.Tensor, counts: Any) -> LumpedProbs:
        """Returns predictions of tokens of the text.

        Args:
            places: Int `[N]`, where in the text they are; see `PlacedBatches`.
            targets: Int `[N]`, the tokens, which must be those of the text.
            counts: Bool `[N]`, where these matter: not of padding.

        Raises:
            ValueError: If a place is outside of the text, or the text is another (in a
                graph an InvalidArgumentError).
        """
        name = type(self).__name__
        places = tf.cast(places, tf.int64)
        inside = (places >= 0) & (places < self.num_tokens)
        worst = tf.reduce_max(tf.where(inside, tf.zeros_like(places), places))
        known = check_running(
            tf.reduce_all(inside | ~counts),
            f"{name}: places must lie in the text of {self.num_tokens} tokens that "
            f"{self.path} is of",
            worst,
        )
        with tf.control_dependencies(known):
            safe = tf.where(inside, places, tf.zeros_like(places))
        kinds = [tf.int32, tf.float32, tf.float32, tf.int32]
        words, log_probs, log_rest, own = tf.numpy_function(
            self._rows, [safe], kinds, stateful=False
        )
        same = (own == tf.cast(targets, tf.int32)) | ~counts
        differing = tf.reduce_min(tf.where(same, places.dtype.max, places))
        checks = check_running(
            tf.reduce_all(same),
            f"{name}: {self.path} is of another text than the batches: targets differ, "
            "first at place",
            differing,
        )
        with tf.control_dependencies(checks):
            words = tf.ensure_shape(words, [places.shape[0], self.k])
            log_probs = tf.ensure_shape(log_probs, [places.shape[0], self.k])
            log_rest = tf.ensure_shape(log_rest, [places.shape[0]])
            return LumpedProbs(tf.identity(words), log_probs, log_rest)

    def _rows(self, places: np.ndarray) -> list[np.ndarray]:
        return [each[places] for each in self._arrays]


@contextlib.contextmanager
def _written_beside(name: str, path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a folder that is renamed to the path once all is in it.

    Raises:
        FileExistsError: If the path is there.
    """
    if path.exists():
        raise FileExistsError(f"{name}: {path} exists; remove it, or name another.")
    part = path.with_name(f"{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with naming(part):
        yield part
        os.replace(part, path)


def _write(
    name: str,
    predictions: Iterator[tuple[np.ndarray, tf.Tensor]],
    batches: ContiguousBatches,
    folder: pathlib.Path,
    k: int,
    temperature: float,
) -> None:
    """Writes the files of all predictions."""
    number, arrays = batches.num_targets, None
    size = 0
    for places, log_probs in predictions:
        size = int(log_probs.shape[-1])
        if arrays is None:
            k = min(k, size)
            arrays = [
                np.lib.format.open_memmap(
                    folder / f"{array}.npy", "w+", dtype, (number, *shape)
                )
                for array, (dtype, shape) in zip(
                    _ARRAYS,
                    ((np.int32, [k]), (np.float32, [k]), (np.float32, [])),
                    strict=False,
                )
            ]
        found = _lumped(log_probs, k, temperature)
        if np.isnan(found[1]).any():
            raise ValueError(f"{name}: predictions of the teacher are not finite.")
        for array, values in zip(arrays, found, strict=True):
            array[places] = values
    for array in arrays or ():
        array.flush()
    np.save(folder / "targets.npy", batches.tokens().astype(np.int32))
    _write_settings(folder, number, size, k, temperature)


def _write_settings(
    folder: pathlib.Path, number: int, size: int, k: int, temperature: float
) -> None:
    settings = {
        "num_tokens": number,
        "vocabulary_size": size,
        "k": k,
        "temperature": temperature,
    }
    (folder / _SETTINGS).write_text(json.dumps(settings))


def _lumped(log_probs: tf.Tensor, k: int, temperature: float) -> list[np.ndarray]:
    """Returns words, their log-probabilities, and that of all others."""
    if temperature != 1.0:
        log_probs = tf.nn.log_softmax(log_probs / temperature)
    top, words = tf.math.top_k(log_probs, k)
    # Added up one by one: what a sure teacher's words leave of 1 would be rounding.
    places = LumpedProbs(words, top, top[:, 0]).places()
    without = tf.fill([tf.size(top)], tf.cast(-math.inf, log_probs.dtype))
    log_rest = log_sum(tf.tensor_scatter_nd_update(log_probs, places, without))
    return [each.numpy() for each in (words, top, log_rest)]


def _predictions(
    teachers: RestrictedTeacher | ModelTeachers,
    batches: ContiguousBatches,
    dynamic: Any,
    dropout: Any,
) -> Generator[tuple[np.ndarray, tf.Tensor]]:
    """Gives places in the text, int `[M]`, and log-probabilities `[M, V]` there."""
    if isinstance(teachers, RestrictedTeacher):
        contexts = _contexts(batches, teachers.models[0].context_length)
        for first in range(0, batches.num_targets, _ROWS):
            rows = tf.constant(contexts[first : first + _ROWS])
            yield np.arange(first, first + len(rows)), teachers.of_contexts(rows)
        return
    placed = batches.of_places()
    with contextlib.ExitStack() as stack:
        adapt = None
        if dynamic is not None:
            adapt = stack.enter_context(dynamic.of(teachers.models[0])).adapt
        samples = 1
        if dropout is not None:
            samples = dropout.samples
            for model in teachers.models:
                stack.enter_context(dropout.of(model))
        step = tf.function(
            functools.partial(_window, teachers, adapt, dropout is not None)
        )
        # Each mask has a past of its own.
        states = [teachers.zero_states(batches.batch_size) for _ in range(samples)]
        for index in range(batches.steps):
            (tokens, start), targets, weights = batches.element(index)
            given = [*map(tf.constant, (tokens, start, targets, weights))]
            log_probs = mean_of_samples(step, given, states)
            counts = weights.ravel() > 0
            places = placed.element(index).next_tokens.ravel()[counts]
            yield places, tf.boolean_mask(log_probs, counts)


def _window(
    teachers: ModelTeachers,
    adapt: Callable[[tf.GradientTape, tf.Tensor], None] | None,
    training: bool,
    tokens: tf.Tensor,
    start: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    states: list[Any],
) -> tuple[tf.Tensor, list[Any]]:
    """Returns log-probabilities `[B T, V]` and states; then weights may move."""
    if adapt is None:
        return teachers.forward(tokens, start, states, training)
    with tf.GradientTape() as tape:
        log_probs, states = teachers.forward(tokens, start, states)
        own = tf.gather(log_probs, tf.reshape(targets, [-1]), batch_dims=1)
        own = tf.where(tf.reshape(weights, [-1]) > 0, own, tf.zeros_like(own))
        loss = -tf.reduce_sum(own) / tf.cast(tf.shape(tokens)[0], own.dtype)
    with tf.control_dependencies(tf.nest.flatten([log_probs, states])):
        adapt(tape, loss)
    return log_probs, states


def _contexts(batches: ContiguousBatches, length: int) -> np.ndarray:
    """Returns the words before each token, int32 `[N, length]`; prefixes before all."""
    tokens = batches.tokens()
    if not length:
        return np.zeros([len(tokens), 0], np.int32)
    padded = np.concatenate([np.full(length, batches.prefix, np.int32), tokens[:-1]])
    return np.lib.stride_tricks.sliding_window_view(padded, length)
