"""What an exported language model answers with: strings in, strings out."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.generation.generate import generate
from rlm_tf.generation.mixture import MixtureStepwise, tempered_mixture
from rlm_tf.generation.stepwise import (
    RecomputedModel,
    StepwiseModel,
    as_stepwise,
    read_tokens,
)
from rlm_tf.restricted import RestrictedModel
from rlm_tf.serving.arguments import (
    checked,
    checked_max_tokens,
    checked_scalar,
    checked_share,
    checked_temperature,
    checked_texts,
    checked_tokens_of_texts,
    readable_tokens,
)
from rlm_tf.serving.scoring import token_log_probs
from rlm_tf.untracked import Untracked

_STRINGS = tf.TensorSpec([None], tf.string)
_INTEGER = tf.TensorSpec([], tf.int32)
_NUMBER = tf.TensorSpec([], tf.float32)


class LanguageModelService(tf.Module):
    """`score`, `next_token` and `generate` on raw UTF-8 strings.

    Texts are read under the rule of the vocabulary, a newline being `<eos>`, and every
    text is preceded by `<eos>`, as in training. None is added at the end. Unknown words
    become `<unk>`; where the vocabulary has no `<unk>`, they are an error that names
    them. Invalid UTF-8 is replaced by U+FFFD (under the rule `bytes` it stays). A text
    of more than MAX_TEXT_BYTES or MAX_TEXT_TOKENS is an error.

    Only operations of plain TensorFlow are used, and with subwords those of TensorFlow
    Text. The module tracks the weights of the
    model and the vocabulary, not the Keras model: no optimiser, no metric, no
    carried state.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens to logits; or a restricted model.
        vocabulary: The vocabulary that the model was trained with.
        context_length: Most tokens that a model without states is run on.
        mixture: A restricted model and its weight mu: what answers is
            `(1 - mu) Q + mu P`.
        temperature: Of the model: Q is `softmax(logits / temperature)`.

    Raises:
        ValueError: If the model does not map tokens to logits, if these do not have one
            entry per token of the vocabulary, or if it needs a `context_length`.
    """

    def __init__(
        self,
        model: keras.Model | RestrictedModel,
        vocabulary: Vocabulary,
        *,
        context_length: int | None = None,
        mixture: tuple[RestrictedModel, float] | None = None,
        temperature: float = 1.0,
    ) -> None:
        super().__init__(name="language_model_service")
        weights = list(model.weights)
        stepwise: StepwiseModel
        if isinstance(model, RestrictedModel):
            stepwise = MixtureStepwise(None, model, 1.0, vocabulary.eos_id)
        else:
            stepwise = as_stepwise(model, context_length)
            if isinstance(stepwise, RecomputedModel):
                _check_maps_tokens(stepwise)
            stepwise = tempered_mixture(
                stepwise, temperature, mixture, vocabulary.eos_id
            )
            if mixture is not None:
                weights += mixture[0].weights
        features, _ = stepwise.forward(
            tf.zeros([1, 1], tf.int32), stepwise.zero_states(1)
        )
        size = stepwise.output_logits(features).shape[-1]
        if size != len(vocabulary):
            raise ValueError(
                f"the model predicts {size} tokens, but the vocabulary has "
                f"{len(vocabulary)}: they do not belong together."
            )
        # Inside plain objects, so that tf.Module does not track the Keras model.
        self._language_model = Untracked(stepwise)
        self._vocabulary = Untracked(vocabulary)
        self._size = size
        self._eos_id = vocabulary.eos_id
        self._banned = Untracked(vocabulary.never_in_text)
        self._tables = vocabulary.graph_tables()
        self._names = tf.Variable(
            list(vocabulary.tokens), trainable=False, name="token_names"
        )
        self._weights = [weight.value for weight in weights]

    @tf.function(input_signature=[_STRINGS], autograph=False)
    def score(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the log-probability of every token of N texts.

        Args:
            texts: Strings `[N]`.

        Returns:
            `log_probs`: float32 `[N, L]`, nats, L the largest number of tokens; 0
                beyond a text's end;
            `tokens`: strings `[N, L]`, the names of the scored tokens (`<eos>` for a
                newline, `<unk>` for an unknown word); "" beyond a text's end;
            `lengths`: int32 `[N]`, the numbers of tokens;
            `total`: float32 `[N]`, sums of `log_probs`;
            `perplexity`: float32 `[N]`, `exp(-total / lengths)`; 1 for a text without
                tokens.
        """
        ids = self._read("score", "texts", texts)
        log_probs = token_log_probs(
            self._language_model.value, ids, self._eos_id, self._size
        )
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        # A float32 sum of thousands of terms would lose digits.
        total = tf.reduce_sum(tf.cast(log_probs, tf.float64), axis=1)
        mean = tf.math.divide_no_nan(total, tf.cast(lengths, tf.float64))
        names = tf.ragged.map_flat_values(lambda i: tf.gather(self._names, i), ids)
        return {
            "log_probs": log_probs,
            "tokens": names.to_tensor(""),
            "lengths": lengths,
            "total": tf.cast(total, tf.float32),
            "perplexity": tf.cast(tf.exp(-mean), tf.float32),
        }

    @tf.function(input_signature=[_STRINGS, _INTEGER], autograph=False)
    def next_token(self, texts: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the k most probable next tokens after each text.

        Args:
            texts: Strings `[N]`.
            k: int32 >= 1; more than V counts as V.

        Returns:
            `tokens`: strings `[N, k]`, names of tokens, most probable first;
            `probabilities`: float32 `[N, k]`.

        Raises:
            tf.errors.InvalidArgumentError: When run, if k < 1.
        """
        k = checked_scalar("next_token", "k", k)
        k = checked(k, k >= 1, "next_token: k must be at least 1, found")
        context = self._with_eos(self._read("next_token", "texts", texts))
        model = self._language_model.value
        states = model.zero_states(tf.cast(context.nrows(), tf.int32))
        states = read_tokens(model, context[:, :-1], states)
        last = tf.gather(context.flat_values, context.row_limits() - 1)
        features, _ = model.forward(last[:, tf.newaxis], states)
        logits = tf.cast(model.output_logits(features)[:, 0], tf.float32)
        best = tf.math.top_k(tf.nn.softmax(logits), tf.minimum(k, self._size))
        return {
            "tokens": tf.gather(self._names, best.indices),
            "probabilities": best.values,
        }

    @tf.function(
        input_signature=[
            _STRINGS,
            _INTEGER,
            _NUMBER,
            _INTEGER,
            _NUMBER,
            _NUMBER,
            _NUMBER,
            _NUMBER,
            _INTEGER,
        ],
        autograph=False,
    )
    def generate(
        self,
        prompts: tf.Tensor,
        max_tokens: tf.Tensor,
        temperature: tf.Tensor,
        top_k: tf.Tensor,
        top_p: tf.Tensor,
        eta: tf.Tensor,
        typical_p: tf.Tensor,
        calibration: tf.Tensor,
        seed: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Continues each prompt.

        The text of row i is a function of its prompt, the parameters, `seed` and i.

        Args:
            prompts: Strings `[N]`; empty ones are fine.
            max_tokens: int32, the number of new tokens, 0 to 10,000.
            temperature: float32 >= 0; 0 takes the most probable token.
            top_k: int32; only the k most probable tokens are drawn; 0: all.
            top_p: float32 in [0, 1]; only the most probable tokens that together reach
                this probability are drawn; 1: all.
            eta: float32 in [0, 1], see `rlm_tf.generation.keep_eta`; 0: all.
            typical_p: float32 in [0, 1], see `rlm_tf.generation.keep_typical`; 1: all.
            calibration: float32 in [-1e6, 1e6], strength of entropy calibration, see
                `rlm_tf.generation.calibrate`; 0: none.
            seed: int32.

        Returns:
            `text`: strings `[N]`, the new tokens as readable text;
            `full_text`: strings `[N]`, the prompts, as the model read them, and the
                new tokens.

        Raises:
            tf.errors.InvalidArgumentError: When run, if a parameter is out of range.
        """
        max_tokens = checked_max_tokens("generate", max_tokens)
        temperature = checked_temperature("generate", temperature)
        top_k = checked_scalar("generate", "top_k", top_k)
        top_k = checked(top_k, top_k >= 0, "generate: top_k must be >= 0, found")
        top_p = checked_share("generate", "top_p", top_p)
        eta = checked_share("generate", "eta", eta)
        typical_p = checked_share("generate", "typical_p", typical_p)
        # Its range is `generate`'s to check.
        calibration = checked_scalar("generate", "calibration", calibration)
        seed = checked_scalar("generate", "seed", seed)
        ids = self._read("generate", "prompts", prompts)
        new = generate(
            self._language_model.value,
            self._with_eos(ids),
            max_tokens,
            seed=seed,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            eta=eta,
            typical_p=typical_p,
            calibration=calibration,
            banned_tokens=self._banned.value,
        )
        return {
            "text": self._tables.decode(new),
            "full_text": self._tables.decode(tf.concat([ids, new], axis=1)),
        }

    @tf.function(input_signature=[_STRINGS, _INTEGER], autograph=False)
    def generate_default(
        self, prompts: tf.Tensor, max_tokens: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Continues each prompt otherwise each time: top_p 0.95, temperature 1.

        Args:
            prompts: Strings `[N]`; empty ones are fine.
            max_tokens: int32, the number of new tokens, 0 to 10,000.

        Returns:
            `text` and `full_text` as of `generate`, and `seed`, int32, with which
            `generate` gives the same again.
        """
        seed = tf.random.uniform([], 0, tf.int32.max, tf.int32)
        answer = self.generate(
            prompts,
            max_tokens,
            tf.constant(1.0),
            tf.constant(0),
            tf.constant(0.95),
            tf.constant(0.0),
            tf.constant(1.0),
            tf.constant(0.0),
            seed,
        )
        return {**answer, "seed": seed}

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        """Returns small inputs of each signature, for a server to warm up with."""
        vocabulary = self._vocabulary.value
        texts = tf.constant([vocabulary.decode(readable_tokens(vocabulary)[:9])])
        generated = {
            "prompts": texts,
            "max_tokens": tf.constant(2),
            "temperature": tf.constant(1.0),
            "top_k": tf.constant(0),
            "top_p": tf.constant(0.95),
            "eta": tf.constant(0.0),
            "typical_p": tf.constant(1.0),
            "calibration": tf.constant(0.0),
            "seed": tf.constant(1),
        }
        return {
            "score": {"texts": texts},
            "next_token": {"texts": texts, "k": tf.constant(1)},
            "generate": generated,
            "generate_default": {"prompts": texts, "max_tokens": tf.constant(2)},
        }

    def signatures(self) -> dict[str, Any]:
        """Returns the functions for `tf.saved_model.save`, which traces them once."""
        return {name: getattr(self, name) for name in self.requests()}

    def _read(self, function: str, name: str, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the tokens `[N, (T)]` of an input of texts."""
        ids = self._tables.encode(checked_texts(function, name, texts))
        return checked_tokens_of_texts(function, name, ids)

    def _with_eos(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        eos = tf.fill([ids.nrows(), 1], tf.constant(self._eos_id, ids.dtype))
        return tf.concat([tf.RaggedTensor.from_tensor(eos), ids], axis=1)


def _check_maps_tokens(recomputed: RecomputedModel) -> None:
    """Raises ValueError unless a Keras model maps tokens `[B, T]` to `[B, T, V]`."""
    name, length = type(recomputed.model).__name__, recomputed.context_length
    expected = f"{name} must map int tokens [B, T] to logits [B, T, V]"
    try:
        logits = recomputed.model(tf.zeros([1, length], tf.int32), training=False)
    except Exception as error:  # Whatever layers raise that expect something else.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ValueError(
            f"{expected}, but fails on tokens [1, {length}]: {' '.join(lines[:2])}"
        ) from error
    shape = getattr(logits, "shape", None)
    if shape is None or len(shape) != 3 or tuple(shape[:2]) != (1, length):
        raise ValueError(f"{expected}, but makes {shape} of tokens [1, {length}].")
