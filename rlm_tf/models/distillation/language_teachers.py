"""What teachers say of windows of text: language models, or a restricted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.models.distillation.finite_teachers import check_finite_teacher
from rlm_tf.models.distillation.placed import flat_weights
from rlm_tf.models.imm.short_contexts import position_weights, short_contexts
from rlm_tf.models.language.batch import tokens_of
from rlm_tf.models.language.interface import LanguageModelInterface, interface_of
from rlm_tf.numerics import at_least_single, log_mean_exp
from rlm_tf.restricted.restricted_model import RestrictedModel


class RestrictedTeacher:
    """A restricted model, which sees the last words of a window.

    Args:
        model: The restricted model.
    """

    def __init__(self, model: RestrictedModel) -> None:
        self.models = [model]
        self.vocabulary_size = model.vocabulary_size
        self.memories: list[Any] = []
        self._length = model.context_length

    def log_probs(self, x: Any) -> tf.Tensor:
        """Returns log-probabilities `[B T, V]` of what follows each token."""
        return self.of_contexts(short_contexts(tokens_of(x), self._length))

    def of_contexts(self, contexts: tf.Tensor) -> tf.Tensor:
        """Returns log-probabilities `[N, V]` of int `[..., L]`, N in all."""
        flat = tf.reshape(contexts, [-1, self._length])
        (model,) = self.models
        return model.log_probs(flat[:, 0] if self._length == 1 else flat)

    def zero_states(self, batch_size: int) -> list[Any]:
        """Returns the words before the first token: none that is known."""
        return [tf.fill([batch_size, self._length], -1)]

    def forward(
        self,
        tokens: tf.Tensor,
        start: tf.Tensor,
        states: list[Any],
        training: bool = False,
    ) -> tuple[tf.Tensor, list[Any]]:
        """Returns log-probabilities `[B T, V]`, and the last words as new states.

        Args:
            tokens: Int `[B, T]`.
            start: Int `[B]`; rows where it is 1 have no words before.
            states: The words before.
            training: Nothing depends on it.
        """
        (past,) = states
        past = tf.where(start[:, tf.newaxis] > 0, -1, past)
        words = tf.concat([past, tf.cast(tokens, past.dtype)], axis=1)
        length = tf.shape(tokens)[1]
        places = tf.range(1, length + 1)[:, tf.newaxis] + tf.range(self._length)
        contexts = tf.gather(words, places, axis=1)
        return self.of_contexts(contexts), [words[:, length:]]

    def weights(self, x: Any, sample_weight: Any) -> tf.Tensor:
        """Returns `[B T]`: 0 where words before the window are missing."""
        return position_weights(tokens_of(x), self._length, sample_weight)


class ModelTeachers:
    """Language models, whose probabilities are averaged.

    Args:
        name: Of whom they teach; messages begin with it.
        models: Language models, ensembles or wrappers of such.

    Raises:
        ValueError: If one is none, not causal, or vocabularies differ.
    """

    def __init__(self, name: str, models: Sequence[Any]) -> None:
        found: list[keras.Model] = []
        for model in models:
            if not isinstance(model, keras.Model):
                raise ValueError(
                    f"{name}: `teacher` must be a language model, a list of such, a "
                    f"RestrictedModel or TeacherPredictions, found "
                    f"{type(model).__name__}."
                )
            own = interface_of(model).model
            # Each of an ensemble carries its own states from window to window.
            found += getattr(own, "models", None) or [own]
        for each in found:
            check_finite_teacher(name, each)
        self.models = found
        self.views: list[LanguageModelInterface] = [interface_of(m) for m in found]
        for view in self.views:
            view.check_causal(name)
        sizes = {view.vocabulary_size for view in self.views} - {None}
        if len(sizes) > 1:
            raise ValueError(
                f"{name}: teachers must have one vocabulary, found sizes "
                f"{sorted(map(str, sizes))}."
            )
        self.vocabulary_size = next(iter(sizes), None)

    @property
    def memories(self) -> list[Any]:
        """What the teachers carry from window to window."""
        states = (getattr(model, "evaluation_state", None) for model in self.models)
        return [state for state in states if state is not None]

    def log_probs(self, x: Any) -> tf.Tensor:
        """Returns log-probabilities `[B T, V]`, and lets memories move on."""
        return self._mean([view.whole_logits(x, training=False) for view in self.views])

    def zero_states(self, batch_size: int) -> list[Any]:
        """Returns the states of each before the first token."""
        return [view.zero_states(batch_size) for view in self.views]

    def forward(
        self,
        tokens: tf.Tensor,
        start: tf.Tensor,
        states: list[Any],
        training: bool = False,
    ) -> tuple[tf.Tensor, list[Any]]:
        """Returns log-probabilities `[B T, V]` and new states; no memory is touched.

        Args:
            tokens: Int `[B, T]`.
            start: Int `[B]`; rows where it is 1 start from zero.
            states: Of each teacher.
            training: Whether dropout acts.
        """
        goes_on = tf.cast(1 - start, tf.float32)[:, tf.newaxis]
        states = tf.nest.map_structure(
            lambda state: state * tf.cast(goes_on, state.dtype), states
        )
        found = [
            view.forward(tokens, own, training)
            for view, own in zip(self.views, states, strict=True)
        ]
        logits = [
            view.output_logits(features)
            for view, (features, _) in zip(self.views, found, strict=True)
        ]
        return self._mean(logits), [own for _, own in found]

    def weights(self, x: Any, sample_weight: Any) -> tf.Tensor:
        """Returns `[B T]`, the weights as they are."""
        return flat_weights(tokens_of(x), sample_weight)

    @staticmethod
    def _mean(logits: Sequence[tf.Tensor]) -> tf.Tensor:
        flat = [
            tf.nn.log_softmax(at_least_single(tf.reshape(z, [-1, z.shape[-1]])))
            for z in logits
        ]
        return flat[0] if len(flat) == 1 else log_mean_exp(tf.stack(flat))


def mean_of_samples(
    step: Callable[..., tuple[tf.Tensor, Any]], given: Sequence[Any], states: list[Any]
) -> tf.Tensor:
    """Returns the log of the mean of probabilities of one window over samples.

    Args:
        step: Maps what is given, and states, to log-probabilities `[N, V]` and new
            states; draws masks, if there are several.
        given: Of the window.
        states: Of each sample, whose past is its own; changed.
    """
    log_probs, states[0] = step(*given, states[0])
    for sample in range(1, len(states)):
        said, states[sample] = step(*given, states[sample])
        # Of `sample` of them the mean so far, and one more.
        shares = tf.math.log([[[float(sample)]], [[1.0]]])
        log_probs = log_mean_exp(tf.stack([log_probs, said]), log_weights=shares)
    return log_probs


def teachers_of(name: str, teacher: Any) -> RestrictedTeacher | ModelTeachers:
    """Returns the teachers of what a user gave; ValueError if it is none."""
    if isinstance(teacher, RestrictedModel):
        return RestrictedTeacher(teacher)
    given = teacher if isinstance(teacher, list | tuple) else [teacher]
    return ModelTeachers(name, given)
