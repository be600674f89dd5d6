"""Induced models from extended contexts that are drawn from the training stream."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.batches.context_index import ContextIndex
from rlm_tf.models.imm.crosstalk import CrosstalkSamples
from rlm_tf.models.imm.matching import (
    Induced,
    Matched,
    Matching,
    Window,
    has_all_samples,
)
from rlm_tf.models.imm.short_contexts import position_weights, short_contexts
from rlm_tf.models.language.batch import tokens_of
from rlm_tf.objectives.imm import induced_cross_entropy
from rlm_tf.replicas import num_replicas, replica_id
from rlm_tf.typing import Gradient


class SampledContexts:
    """The published sampler: k occurrences of every position's short context.

    For each position, k windows of the training stream that end in its short context
    are drawn uniformly, with replacement, and the model is run on each in evaluation
    mode; the mean of its k predictions is the induced model, Eq. (21). The carried
    state is never written. A step costs about `k * window` passes over as many
    positions.

    Draws are a function of (seed, optimiser step, row of the global batch), so runs
    repeat, resume exactly, and do not depend on the number of replicas. Sample weights
    multiply the share of their position in the term.

    Args:
        tokens: int `[T]`, the training stream; no copy of it goes into any file.
        k: Extended contexts a position.
        window: Tokens of a sampled window, its short context included.
        initial_state: Where a sampled window starts: `"carried"`, in the state with
            which its batch row enters the training window, as published, or `"zero"`.
        truncated: Whether position i of the training window uses the last i + 1 tokens
            of each sampled window, as the authors' code does (then `window` is the
            length of the training window, and position 0 has k equal samples).
        seed: Seed of the draws.

    Raises:
        ValueError: If an argument is out of range.
    """

    separate_clipping = True
    brings_gradient = True

    def __init__(
        self,
        tokens: np.ndarray,
        k: int = 10,
        window: int = 35,
        *,
        initial_state: Literal["carried", "zero"] = "carried",
        truncated: bool = False,
        seed: int = 0,
    ):
        check_integer("SampledContexts", "k", k, 1)
        check_integer("SampledContexts", "window", window, 1)
        check_integer("SampledContexts", "seed", seed, 0)
        if initial_state not in ("carried", "zero"):
            raise ValueError(
                "SampledContexts: `initial_state` must be 'carried' or 'zero', found "
                f"{initial_state!r}."
            )
        self.tokens = np.asarray(tokens)
        self.k = k
        self.window = window
        self.initial_state = initial_state
        self.truncated = truncated
        self.seed = seed
        self.indices: list[ContextIndex] = []
        self.owner: weakref.ref[keras.Model] | None = None

    def prepare(self, matching: Matching) -> None:
        """Builds the index of every restricted model's short contexts.

        Raises:
            ValueError: If the stream or the window does not fit the restricted models.
        """
        longest = max(r.context_length for r in matching.restricted_models)
        if self.window < longest:
            raise ValueError(
                "SampledContexts: `window` must hold the whole short context of "
                f"{longest} words, found {self.window}."
            )
        self.indices = [
            ContextIndex(
                restricted.coarse(tf.constant(self.tokens)).numpy(),
                restricted.context_length,
                matching.vocabulary_size,
                min_position=self.window - 1,
            )
            for restricted in matching.restricted_models
        ]
        self._stream = tf.constant(self.tokens.astype(np.int32))

    def match(self, matching: Matching, window: Window) -> Matched:
        """Runs the model on a batch, and says how its induced models are sampled."""
        view = matching.view
        states = None
        if self.initial_state == "carried":
            states = view.starting_states(window.inputs)
        outputs = view.outputs(window.inputs, training=True)
        nll = view.nll(outputs, window.targets)
        between = 0 if matching.variant == "authors" else 1
        samples = tf.where(has_all_samples(matching, window), self.k, between)
        samples = tf.where(window.active, samples, 0)
        found = [
            self._induced(matching, window, index, states, samples)
            for index in range(len(matching.restricted_models))
        ]
        return Matched(nll, outputs, found)

    def _induced(
        self,
        matching: Matching,
        window: Window,
        index: int,
        states: Any,
        samples: tf.Tensor,
    ) -> Induced:
        restricted, view = matching.restricted_models[index], matching.view
        tokens = tokens_of(window.inputs)
        possible = position_weights(
            tokens, restricted.context_length, window.sample_weight
        )
        length = restricted.context_length
        shape = tf.shape(tokens)
        contexts = tf.reshape(short_contexts(tokens, length), [tf.size(tokens), length])
        ends, available = self.indices[index].draw(
            restricted.coarse(contexts), self._randoms(shape, window.step, index)
        )
        drawn = tf.logical_and(available > 0, samples > 0)
        weights = possible * tf.cast(drawn, tf.float32)
        counts = tf.boolean_mask(tf.cast(weights > 0, tf.int32) * samples, possible > 0)
        induced = Induced(None, weights, counts, tf.maximum(samples, 1))
        wanted = contexts[:, 0] if length == 1 else contexts
        dtype = "float64" if view.model.compute_dtype == "float64" else "float32"
        target_probs = tf.cast(restricted.probs(wanted), dtype)
        rows = tf.repeat(tf.range(shape[0]), shape[1])
        row_states = None
        if states is not None:
            row_states = tf.nest.map_structure(lambda s: tf.gather(s, rows), states)
        position = tf.tile(tf.range(shape[1]), shape[:1])

        def log_probs(sample: tf.Tensor) -> tf.Tensor:
            windows, last = self._windows(tf.gather(ends, sample, axis=1), position)
            logits = view.last_logits(windows, last, row_states)
            return tf.nn.log_softmax(logits)

        if matching.gradient == "crosstalk":
            crosstalk = CrosstalkSamples(log_probs, target_probs, samples)
            return induced._replace(loss_and_gradient=crosstalk.loss_and_gradient)

        def loss_and_gradient(
            variables: Sequence[Any], scale: tf.Tensor
        ) -> tuple[tf.Tensor, list[Gradient]]:
            # A tape that finds a variable unconnected knows those of TensorFlow alone.
            own_values = [variable.value for variable in variables]

            def with_samples(count: int) -> list[tf.Tensor]:
                with tf.GradientTape() as tape:
                    stacked = tf.stack(
                        [log_probs(tf.constant(i)) for i in range(count)]
                    )
                    loss = induced_cross_entropy(target_probs, stacked).loss
                    total = tf.reduce_sum(loss * tf.cast(scale, loss.dtype))
                zero = tf.UnconnectedGradients.ZERO
                own = tape.gradient(total, own_values, unconnected_gradients=zero)
                return [loss, *[tf.convert_to_tensor(g) for g in own]]

            def without() -> list[tf.Tensor]:
                zeros = [tf.zeros_like(tf.convert_to_tensor(v)) for v in variables]
                return [tf.zeros_like(weights, target_probs.dtype), *zeros]

            loss, *own = tf.switch_case(
                tf.where(samples == self.k, 1, tf.where(samples == 0, 0, 2)),
                [without, lambda: with_samples(self.k), lambda: with_samples(1)],
            )
            return loss, own

        return induced._replace(loss_and_gradient=loss_and_gradient)

    def _windows(
        self, ends: tf.Tensor, position: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns sampled windows `[N, window]` and where in each the context ends."""
        last = tf.fill(tf.shape(ends), self.window - 1)
        if self.truncated:
            last = tf.minimum(position, last)
        places = (ends - last)[:, tf.newaxis] + tf.range(self.window)
        # Behind the end there is padding, whose outputs nobody reads.
        places = tf.minimum(places, tf.size(self._stream) - 1)
        return tf.gather(self._stream, places), last

    def _randoms(self, shape: tf.Tensor, step: tf.Tensor, index: int) -> tf.Tensor:
        """Returns int64 `[B * T, k]` for this replica's rows of the global batch."""
        rows = shape[0] * num_replicas()
        randoms = tf.random.stateless_uniform(
            [rows, shape[1], self.k],
            seed=tf.stack([tf.constant(self.seed * 1000003 + index, tf.int64), step]),
            minval=0,
            maxval=tf.int64.max,
            dtype=tf.int64,
        )
        first = shape[0] * replica_id()
        return tf.reshape(randoms[first : first + shape[0]], [-1, self.k])
