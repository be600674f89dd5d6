"""KerasHub's causal language models as language models of this library."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity
from rlm_tf.models.language.batch import checked_batch, tokens_of
from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.objective_model.term import TermLoss, TermSpec


@keras.saving.register_keras_serializable("rlm_tf")
class KerasHubLanguageModel(ObjectiveModel):
    """A causal model of KerasHub (GPT-2, Llama, Gemma, ...), to be fine-tuned.

    KerasHub's models take a dictionary of token ids and a padding mask; this one takes
    tokens `[B, T]`, or `(tokens, start)` as `contiguous_batches` gives them, and gives
    logits `[B, T, V]`. So `fit()` on contiguous batches, `InducedModelMatching`,
    evaluation, generation and exports (with a `context_length`) work with it as with
    any model without states: every window starts afresh.

        import keras_hub

        gpt2 = keras_hub.models.GPT2CausalLM.from_preset("gpt2_base_en")
        model = KerasHubLanguageModel(gpt2)
        tokens = gpt2.preprocessor.tokenizer(text)     # int32 [N], the ids to train on
        batches = contiguous_batches(tokens, 4, 128, prefix=gpt2_end_of_text_id)

    A preset is downloaded, or a folder that `save_to_preset` has written, or one with
    `config.json` and `model.safetensors`. Ids are those of KerasHub's own tokeniser:
    training, restricted models, IMM and evaluation need nothing else. Exports and
    `generate_text` take strings, and for these a `Vocabulary` with as many tokens; for
    a tokeniser that this library's rules cannot express there are none, and KerasHub's
    own `generate` and exports remain.

    Padding is left to the weights of targets: all tokens are attended to, each by those
    behind it.

    Args:
        causal_lm: A `keras_hub.models.CausalLM`; its weights are trained.
        clip_norm: See `ObjectiveModel`.
        loss_scale: See `ObjectiveModel`.
        bits_per_character: Whether training and evaluation log that metric, too.
        **kwargs: `l2`, see `ObjectiveModel`, and those of `keras.Model`.

    Attributes:
        vocabulary_size: V, that of its backbone.
        longest_window: Most tokens of a window, of models with learnt positions; None:
            no limit.

    Raises:
        ValueError: If it is no causal model of KerasHub, or KerasHub is not installed.
    """

    def __init__(
        self,
        causal_lm: keras.Model,
        *,
        clip_norm: float | None = None,
        loss_scale: float = 1.0,
        bits_per_character: bool = False,
        **kwargs: Any,
    ) -> None:
        if not isinstance(causal_lm, _causal_lm_class()):
            raise ValueError(
                "KerasHubLanguageModel: `causal_lm` must be a keras_hub.models.CausalLM"
                f", found {type(causal_lm).__name__}."
            )
        # `compile` scales the loss by the policy of the outer model.
        kwargs = {"dtype": causal_lm.dtype_policy, **kwargs}
        super().__init__(clip_norm=clip_norm, loss_scale=loss_scale, **kwargs)
        self.causal_lm = causal_lm
        self.bits_per_character = bits_per_character
        self.vocabulary_size = int(causal_lm.backbone.vocabulary_size)
        longest = getattr(causal_lm.backbone, "max_sequence_length", None)
        self.longest_window = None if longest is None else int(longest)
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the model has its weights."""

    # === Computation ===

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns logits `[B, T, V]` for tokens `[B, T]` or `(tokens, start)`.

        Raises:
            ValueError: If the axes are others, or the window is too long.
        """
        tokens = tokens_of(inputs)
        check_shapes(type(self).__name__, tokens=(tokens, "B T"))
        length = tokens.shape[1]
        longest = self.longest_window
        if None not in (length, longest) and length > longest:
            raise ValueError(
                f"KerasHubLanguageModel: {type(self.causal_lm).__name__} has positions "
                f"for windows of at most {longest} tokens, found {length}: use a "
                "shorter `window`."
            )
        return self.causal_lm(_inputs(tokens), training=training)

    def hidden_features(
        self, tokens: tf.Tensor, states: Any = None, training: bool = False
    ) -> list[tf.Tensor]:
        """Returns what the backbone gives, `[[B, T, F]]`, for tokens `[B, T]`."""
        return [self.causal_lm.backbone(_inputs(tokens), training=training)]

    # === Objective ===

    @property
    def term_specs(self) -> list[TermSpec]:
        return [TermSpec("nll")]

    def objective_terms(
        self, x: Any, y: Any, sample_weight: Any, training: bool
    ) -> dict[str, TermLoss]:
        name = type(self).__name__
        x, y = checked_batch(name, x, y, sample_weight, self.vocabulary_size)
        logits = at_least_single(self(x, training=training))
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        return {"nll": TermLoss(nll, sample_weight)}

    def make_term_metrics(self, name: str) -> list[keras.metrics.Metric]:
        bits = [BitsPerCharacter()] if self.bits_per_character else []
        return [keras.metrics.Mean(name=name), Perplexity(), *bits]

    # === Config ===

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> KerasHubLanguageModel:
        """Returns the model of a config; KerasHub's classes are registered before."""
        _causal_lm_class()
        return super().from_config(config, custom_objects)

    def get_config(self) -> dict[str, Any]:
        causal_lm = keras.saving.serialize_keras_object(self.causal_lm)
        # KerasHub compiles its models when they are made; this one is trained instead.
        causal_lm.pop("compile_config", None)
        return {
            **super().get_config(),
            "causal_lm": causal_lm,
            "bits_per_character": self.bits_per_character,
        }


def _inputs(tokens: tf.Tensor) -> dict[str, tf.Tensor]:
    tokens = tf.cast(tokens, tf.int32)
    return {"token_ids": tokens, "padding_mask": tf.ones_like(tokens)}


def _causal_lm_class() -> Any:
    """Returns KerasHub's base class; importing it takes seconds."""
    try:
        import keras_hub
    except ImportError as error:
        raise ValueError(
            "KerasHubLanguageModel needs the package keras-hub, which could not be "
            f"imported ({error}): `pip install keras-hub`."
        ) from error
    return keras_hub.models.CausalLM
