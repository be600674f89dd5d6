"""Dynamic evaluation: weights that follow the text that is evaluated."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.evaluation.window_stream import WindowReader
from rlm_tf.models.language.interface import language_model_of


class GradientStatistics(NamedTuple):
    """How large gradients of windows of the training text are.

    Attributes:
        root_mean_squares: One array a trainable weight, float32 (float64 of a weight
            that is).
        num_windows: How many windows they come from.
    """

    root_mean_squares: list[np.ndarray]
    num_windows: int


def gradient_statistics(
    model: keras.Model,
    tokens: np.ndarray,
    batch_size: int,
    window: int,
    *,
    prefix: int,
    most_windows: int = 500,
    progress: str | None = None,
) -> GradientStatistics:
    """Returns the root mean squares of the gradients of windows of a text.

    Dropout is off and the weights stay as they are. The gradient of a window is that of
    the negative log-likelihood summed over time and averaged over rows.

    Args:
        model: See `target_log_probs`.
        tokens: The training text.
        batch_size: Rows; the published value is 1024.
        window: Tokens of a row.
        prefix: The token before the first, `<eos>` as a rule.
        most_windows: Most windows of `batch_size` rows that are read.
        progress: Label of a progress bar, or None for no bar.

    Raises:
        ValueError: See `target_log_probs`.
    """
    check_integer("gradient_statistics", "batch_size", batch_size, 1)
    check_integer("gradient_statistics", "window", window, 1)
    check_integer("gradient_statistics", "most_windows", most_windows, 1)
    model = language_model_of(model)
    variables = [v.value for v in model.trainable_variables]
    squares = [
        tf.Variable(tf.zeros(v.shape, _at_least_single(v)), trainable=False)
        for v in variables
    ]

    def add(tape: tf.GradientTape, loss: tf.Tensor) -> None:
        for total, gradient in zip(
            squares, _dense_gradients(tape, loss, variables), strict=True
        ):
            total.assign_add(tf.square(tf.cast(gradient, total.dtype)))

    # The rows stay as they are; each is read up to its last window that counts.
    length = -(-len(tokens) // batch_size)
    read = min(-(-length // window), most_windows)
    number = 0
    reader = WindowReader(
        model,
        batch_size,
        window,
        prefix=prefix,
        head=lambda logits, targets: (),
        adapt=add,
    )
    for _ in reader.windows(tokens, progress=progress):
        number += 1
        if number == read:
            break
    roots = [np.sqrt(total.numpy() / number) for total in squares]
    return GradientStatistics(roots, number)


class Adaptation(NamedTuple):
    """A model's weights on their way through a text.

    Attributes:
        adapt: Moves them, given a tape and the loss of the window just scored.
        restore: Puts the trained ones back.
    """

    adapt: Callable[[tf.GradientTape, tf.Tensor], None]
    restore: Callable[[], None]


class DynamicEvaluation:
    """Dynamic evaluation (Krause et al. 2018, arXiv 1709.07432) with RMS statistics.

    After a window has been scored, every weight moves,

        theta += -eta g / (s + epsilon) + min(1, lambda s / mean(s)) (theta_0 - theta)

    with g the gradient on that window, s the root mean square of gradients on training
    text, `mean(s)` over all weights, and theta_0 the trained weight. So every token is
    scored by weights that have seen only what came before its window, and weights that
    move much are also drawn back much. As in the code of Melis et al. (2020), whose
    tuning ranges are 1e-6 to 1e-3 for eta, 1e-6 to 1e-2 for lambda and 1e-8 to 1e-2 for
    epsilon, all logarithmic, with windows of 1 to 20 words or 1 to 50 characters and
    one row. Tune eta and epsilon together: where a word is rare in the training text,
    s is close to 0, and a small epsilon moves its embedding too far, which can make the
    whole evaluation worse than a static one.

    Args:
        statistics: See `gradient_statistics`.
        learning_rate: eta.
        decay: lambda.
        epsilon: Added to s; the default is the published flag's, 1e-3 was better for
            small models of little text.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self,
        statistics: GradientStatistics,
        learning_rate: float = 1e-3,
        decay: float = 0.02,
        epsilon: float = 1e-5,
    ) -> None:
        check_range(
            "DynamicEvaluation",
            0.0,
            math.inf,
            learning_rate=learning_rate,
            decay=decay,
            epsilon=epsilon,
        )
        self.statistics = statistics
        self.learning_rate = learning_rate
        self.decay = decay
        self.epsilon = epsilon

    @contextlib.contextmanager
    def of(self, model: keras.Model) -> Iterator[Adaptation]:
        """Yields what moves a model's weights; in the end they are what they were.

        Raises:
            ValueError: If the statistics are of a model with other weights.
        """
        variables = [v.value for v in model.trainable_variables]
        roots = self.statistics.root_mean_squares
        shapes = [tuple(v.shape) for v in variables]
        if shapes != [root.shape for root in roots]:
            found = [root.shape for root in roots]
            raise ValueError(
                "DynamicEvaluation: the statistics are of a model with weights of "
                f"other shapes: expected {shapes}, found {found}."
            )
        kinds = [_at_least_single(v) for v in variables]
        trained = [tf.Variable(tf.identity(v), trainable=False) for v in variables]
        total = sum(float(np.sum(root, dtype=np.float64)) for root in roots)
        mean = total / sum(root.size for root in roots)
        # In variables: as constants they would be copied into the graph.
        rates = [
            tf.Variable(
                self.learning_rate / (root + self.epsilon), trainable=False, dtype=kind
            )
            for root, kind in zip(roots, kinds, strict=True)
        ]
        decays = [
            tf.Variable(
                np.minimum(1.0, self.decay * root / mean)
                if mean > 0
                else np.zeros_like(root),
                trainable=False,
                dtype=kind,
            )
            for root, kind in zip(roots, kinds, strict=True)
        ]

        def adapt(tape: tf.GradientTape, loss: tf.Tensor) -> None:
            gradients = _dense_gradients(tape, loss, variables)
            for v, start, rate, decay, gradient in zip(
                variables, trained, rates, decays, gradients, strict=True
            ):
                drawn_back = decay * tf.cast(start - v, decay.dtype)
                change = drawn_back - rate * tf.cast(gradient, rate.dtype)
                v.assign_add(tf.cast(change, v.dtype))

        def restore() -> None:
            for variable, start in zip(variables, trained, strict=True):
                variable.assign(start)

        try:
            yield Adaptation(adapt, restore)
        finally:
            restore()


def _at_least_single(variable: tf.Variable) -> tf.DType:
    """Returns the dtype of sums of what belongs to a weight."""
    return tf.float64 if variable.dtype == tf.float64 else tf.float32


def _dense_gradients(
    tape: tf.GradientTape, loss: tf.Tensor, variables: list[tf.Variable]
) -> list[tf.Tensor]:
    gradients = tape.gradient(
        loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return [tf.convert_to_tensor(gradient) for gradient in gradients]
