"""What an exported latent-variable model of sentences answers with."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.generation.generate import generate
from rlm_tf.layers import SentenceDecoder
from rlm_tf.models import MonteCarloVAE
from rlm_tf.objectives.monte_carlo import iwae
from rlm_tf.padding import PADDING
from rlm_tf.serving.arguments import (
    checked_latents,
    checked_max_tokens,
    checked_number,
    checked_scalar,
    checked_share,
    checked_temperature,
    checked_texts,
    readable_tokens,
)
from rlm_tf.serving.conditioned_decoder import ConditionedDecoder, GivenSeed
from rlm_tf.untracked import Untracked

MOST_SAMPLES = 1000
MOST_STEPS = 1000

_STRINGS = tf.TensorSpec([None], tf.string)
# Of any shape, so that another one than the model's can be named.
_LATENTS = tf.TensorSpec(None, tf.float32)
_INTEGER = tf.TensorSpec([], tf.int32)
_NUMBER = tf.TensorSpec([], tf.float32)


class LatentService(tf.Module):
    """`encode`, `decode`, `score` and `interpolate` of a sentence model, on strings.

    A text is one sentence, whose end is added; of longer ones the first tokens are
    read. Answers are a function of their arguments, `seed` included; every text has
    samples of its own, which depend on its place among the texts and on their number,
    so that a server that puts requests together gives other estimates. Only operations
    of plain TensorFlow are used, and of the model only its weights are kept.

    Args:
        model: Encoder and decoder of sentences.
        vocabulary: The one that it was trained with.
        most_tokens: Tokens of a sentence that are read or written, its end included.

    Raises:
        ValueError: If the decoder is not one of sentences with this vocabulary.
    """

    def __init__(
        self, model: MonteCarloVAE, vocabulary: Vocabulary, most_tokens: int
    ) -> None:
        super().__init__(name="latent_service")
        decoder = model.decoder
        if not isinstance(decoder, SentenceDecoder):
            raise ValueError(
                "LatentService: the decoder must be a SentenceDecoder, found "
                f"{type(decoder).__name__}."
            )
        if decoder.vocabulary_size != len(vocabulary):
            raise ValueError(
                f"the model knows {decoder.vocabulary_size} tokens, but the vocabulary "
                f"has {len(vocabulary)}: they do not belong together."
            )
        # Inside plain objects, so that tf.Module does not track the Keras model.
        self._model = Untracked(model)
        self._vocabulary = Untracked(vocabulary)
        self._most_tokens = most_tokens
        self._end_id = vocabulary.eos_id
        self._tables = vocabulary.graph_tables()
        self._weights = [weight.value for weight in model.weights]

    @tf.function(input_signature=[_STRINGS, _INTEGER, _INTEGER], autograph=False)
    def encode(
        self, texts: tf.Tensor, num_samples: tf.Tensor, seed: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns what the latents of N texts may be.

        Args:
            texts: Strings `[N]`.
            num_samples: K, 1 to 1000.
            seed: int32.

        Returns:
            The parameters of q(z|x): `mean` and `log_variance` `[N, D]`, or `logits`
            `[N, L, C]`;
            `samples`: float32 `[N, K, ...]`, drawn from q(z|x);
            `weights`: float32 `[N, K]`, what they weigh as samples of p(z|x), summing
            to 1;
            `resampled`: float32 `[N, ...]`, one of them, drawn with these weights.
        """
        seed = checked_scalar("encode", "seed", seed)
        tokens = self._read("encode", "texts", texts)
        z, extra, parameters = self._sampled("encode", tokens, num_samples, seed)
        log_weights = tf.math.log(tf.transpose(extra.weights))
        noise = tf.random.stateless_uniform(
            tf.shape(log_weights), tf.stack([seed, 1]), 2.0**-60, 1.0, alg="philox"
        )
        chosen = tf.argmax(log_weights - tf.math.log(-tf.math.log(noise)), axis=1)
        samples = tf.transpose(z, [1, 0, *range(2, z.shape.rank)])
        samples = tf.cast(samples, tf.float32)
        return {
            **{name: tf.cast(v, tf.float32) for name, v in parameters.items()},
            "samples": samples,
            "weights": tf.transpose(extra.weights),
            "resampled": tf.gather(samples, chosen, batch_dims=1),
        }

    @tf.function(
        input_signature=[_LATENTS, _INTEGER, _NUMBER, _NUMBER, _INTEGER],
        autograph=False,
    )
    def decode(
        self,
        latents: tf.Tensor,
        max_tokens: tf.Tensor,
        temperature: tf.Tensor,
        top_p: tf.Tensor,
        seed: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Returns sentences that latents say.

        Args:
            latents: float32 `[N, ...]`, such as `encode` returns.
            max_tokens: int32, at most so many words.
            temperature: float32 >= 0; 0 takes the most probable word.
            top_p: float32 in [0, 1]; only the most probable words that together reach
                this probability are drawn; 1: all.
            seed: int32.

        Returns:
            `texts`: strings `[N]`.
        """
        shape = self._model.value.latents.event_shape
        latents = checked_latents("decode", latents, shape)
        max_tokens = checked_max_tokens("decode", max_tokens)
        temperature = checked_temperature("decode", temperature)
        top_p = checked_share("decode", "top_p", top_p)
        seed = checked_scalar("decode", "seed", seed)
        return self._said(latents, max_tokens, temperature, top_p, seed)

    def _said(
        self,
        latents: tf.Tensor,
        max_tokens: tf.Tensor,
        temperature: tf.Tensor,
        top_p: tf.Tensor,
        seed: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        model = ConditionedDecoder(self._model.value.decoder, latents)
        begin = tf.fill([tf.shape(latents)[0], 1], self._end_id)
        words = generate(
            model,
            begin,
            max_tokens,
            seed=seed,
            temperature=temperature,
            top_p=top_p,
            stop_token=self._end_id,
        )
        return {"texts": self._tables.decode(words)}

    @tf.function(input_signature=[_STRINGS, _INTEGER, _INTEGER], autograph=False)
    def score(
        self, texts: tf.Tensor, num_samples: tf.Tensor, seed: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns bounds on the log-probabilities of N texts, by IWAE.

        Args:
            texts: Strings `[N]`.
            num_samples: K, 1 to 1000.
            seed: int32.

        Returns:
            `log_prob`: float32 `[N]`, nats, the end of the sentence included if it
            was read;
            `lengths`: int32 `[N]`, tokens that were read, the end among them;
            `perplexity`: float32 `[N]`, of a token;
            `usage`: float32 `[N]`, the estimate of KL(p(z|x) || p(z)), nats.
        """
        seed = checked_scalar("score", "seed", seed)
        tokens = self._read("score", "texts", texts)
        _, extra, _ = self._sampled("score", tokens, num_samples, seed)
        lengths = tf.math.count_nonzero(tokens != PADDING, axis=1, dtype=tf.int32)
        mean = extra.log_evidence / tf.cast(lengths, tf.float32)
        return {
            "log_prob": extra.log_evidence,
            "lengths": lengths,
            "perplexity": tf.exp(-mean),
            "usage": extra.kl_divergence,
        }

    @tf.function(
        input_signature=[_STRINGS, _STRINGS, _INTEGER, _INTEGER], autograph=False
    )
    def interpolate(
        self,
        first: tf.Tensor,
        last: tf.Tensor,
        steps: tf.Tensor,
        max_tokens: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Returns sentences on the way from one to another.

        Latents go from the mode of the one's q(z|x) to that of the other's: normal ones
        on a straight line; of categorical ones those that differ change one after the
        other. Words are the most probable ones.

        Args:
            first: Strings `[N]`.
            last: Strings `[N]`.
            steps: int32, 2 to 1000, sentences, both ends included.
            max_tokens: int32, at most so many words.

        Returns:
            `texts`: strings `[N, steps]`.
        """
        tokens = [
            self._read("interpolate", name, texts)
            for name, texts in (("first", first), ("last", last))
        ]
        numbers = [tf.shape(read)[0] for read in tokens]
        check = tf.debugging.Assert(
            tf.equal(*numbers),
            ["interpolate: first and last must be as many texts, found", *numbers],
        )
        with tf.control_dependencies([check]):
            steps = checked_number("interpolate", "steps", steps, 2, MOST_STEPS)
        shares = tf.linspace(0.0, 1.0, steps)
        latents = self._model.value.latents
        ends = [
            tf.cast(latents.centre(self._model.value(read)), tf.float32)
            for read in tokens
        ]
        between = latents.between(*ends, shares)
        texts = self._said(
            tf.reshape(between, [-1, *latents.event_shape]),
            checked_max_tokens("interpolate", max_tokens),
            tf.constant(0.0),
            tf.constant(1.0),
            tf.constant(0),
        )["texts"]
        return {"texts": tf.reshape(texts, [-1, steps])}

    @property
    def is_exact(self) -> bool:
        """Whether the model computes in single precision or wider."""
        return self._model.value.compute_dtype in ("float32", "float64")

    def some_texts(self) -> list[str]:
        """Returns texts to try the signatures with."""
        vocabulary = self._vocabulary.value
        tokens = readable_tokens(vocabulary)
        tokens = tokens[tokens != self._end_id]
        return [vocabulary.decode(tokens[i::7][:9]) for i in range(3)] + [""]

    def requests(self) -> dict[str, dict[str, tf.Tensor]]:
        """Returns small inputs of each signature, for a server to warm up with."""
        texts = tf.constant(self.some_texts()[:1])
        count, seed = tf.constant(1), tf.constant(1)
        sampled = {"texts": texts, "num_samples": count, "seed": seed}
        decoded = {
            "latents": tf.zeros([1, *self._model.value.latents.event_shape]),
            "max_tokens": tf.constant(2),
            "temperature": tf.constant(1.0),
            "top_p": tf.constant(1.0),
            "seed": seed,
        }
        between = {
            "first": texts,
            "last": texts,
            "steps": tf.constant(2),
            "max_tokens": tf.constant(2),
        }
        return {
            "encode": sampled,
            "decode": decoded,
            "score": sampled,
            "interpolate": between,
        }

    def signatures(self) -> dict[str, Any]:
        """Returns the functions for `tf.saved_model.save`, which traces them once."""
        return {
            name: getattr(self, name)
            for name in ("encode", "decode", "score", "interpolate")
        }

    def _read(self, function: str, name: str, texts: tf.Tensor) -> tf.Tensor:
        """Returns tokens int32 `[N, T]`, ends included, padded with -1."""
        texts = checked_texts(function, name, texts)
        ids = tf.cast(self._tables.encode(texts), tf.int32)
        ends = tf.fill([ids.nrows(), 1], self._end_id)
        ids = tf.concat([ids, tf.RaggedTensor.from_tensor(ends)], axis=1)
        tokens = ids[:, : self._most_tokens].to_tensor(PADDING)
        # No text is a table without columns, which is no sentence.
        missing = tf.cast(tf.shape(tokens)[1] == 0, tf.int32)
        return tf.pad(tokens, [[0, 0], [0, missing]], constant_values=PADDING)

    def _sampled(
        self, function: str, tokens: tf.Tensor, num_samples: tf.Tensor, seed: tf.Tensor
    ) -> tuple[tf.Tensor, Any, dict[str, tf.Tensor]]:
        num_samples = checked_number(
            function, "num_samples", num_samples, 1, MOST_SAMPLES
        )
        model = self._model.value
        parameters = model(tokens)
        z = model.latents.sample(parameters, num_samples, GivenSeed(seed))
        # One sample of all texts at a time: the softmax of all would need much memory.
        likelihood = tf.map_fn(
            lambda one: tf.cast(model.decoder(one[tf.newaxis], tokens)[0], tf.float32),
            z,
            fn_output_signature=tf.TensorSpec([None], tf.float32),
        )
        extra = iwae(
            likelihood,
            model.latents.prior().log_prob(z),
            model.latents.posterior(parameters).log_prob(z),
        ).extra
        return z, extra, parameters
