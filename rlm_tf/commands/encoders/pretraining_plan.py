"""What `rlm_tf pretrain` has chosen, and the model that follows from it."""

from __future__ import annotations

import dataclasses
from typing import cast

import keras

from rlm_tf.command_line.wording import number_of
from rlm_tf.data import Masking, Vocabulary
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import Electra, MaskedLanguageModel
from rlm_tf.models.encoders.electra import Embeddings
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.optimizers.spared import spare_biases

# As the thesis has them (table A.1).
_BETA_2, _EPSILON, _WEIGHT_DECAY = 0.98, 1e-6, 0.01
# As ELECTRA's code has it.
_ELECTRA_BETA_2 = 0.999
# Small encoders learn sooner so than with normalisation behind and the 0.02 of larger
# ones; and sooner where heads begin by looking at neighbours: after 600 steps on
# WikiText-2 4.2 nats a masked piece against 5.8, of which much is its `<unk>` in three
# pieces; without that, after 300 steps, 5.8 against 6.7 (frequency alone: 6.5).
_INITIALIZER_RANGE, _POSITION_SLOPE = 0.05, 0.5
_EMBEDDINGS = {
    "disentangled": "whose embeddings the encoder adds its own to",
    "separate": "embeddings of its own",
    "shared": "the same embeddings",
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that the model and its training depend on besides the text.

    Attributes:
        look: Steps between two looks at held-out text.
        looks: How many there are.
        seconds: Most time for training; None: any.

    The others are those of `PretrainSettings`.
    """

    objective: str
    vocabulary_size: int
    width: int
    num_layers: int
    num_heads: int
    generator_layers: int
    documents: bool
    length: int
    batch_size: int
    look: int
    looks: int
    warm_up: int
    learning_rate: float
    generator_learning_rate: float
    discriminator_weight: float
    mask_ratio: float
    clip_norm: float
    dropout: float
    seed: int
    seconds: float | None
    whole_words: bool = False
    two_texts: bool = False
    embeddings: str = "separate"
    variant: str = "thesis"

    @property
    def is_original(self) -> bool:
        """Whether masks, positions and Adam are those of ELECTRA's code."""
        return self.variant == "electra"

    @property
    def steps(self) -> int:
        """Of training."""
        return self.look * self.looks

    def lines(self) -> list[str]:
        """Returns what is printed of the choices."""
        found = [
            f"encoder: {number_of('layer', self.num_layers)} of width {self.width}, "
            f"{number_of('head', self.num_heads)}, rows of {self.length} tokens, "
            f"{self.batch_size} a step",
            f"{number_of('step', self.steps)}, rate {self.learning_rate:g} after "
            f"{number_of('step', self.warm_up)}, then falling to 0; dropout "
            f"{self.dropout:g}",
        ]
        if self.whole_words:
            found.append("words are masked whole")
        if self.two_texts:
            found.append("rows of two texts")
        if self.objective == "electra":
            rate = f"rate {self.generator_learning_rate:g}"
            if self.embeddings == "shared":
                rate = "one optimiser for both"
            found.append(
                f"generator: {number_of('layer', self.generator_layers)} of that "
                f"width, {_EMBEDDINGS[self.embeddings]}, {rate}"
            )
        if self.is_original:
            found.append(
                "masks, positions and Adam's beta_2 as ELECTRA's code has them"
            )
        return found


def build(plan: Plan) -> keras.Model:
    """Returns the compiled model of a plan."""
    keras.utils.set_random_seed(plan.seed)

    def encoder(layers: int, seed: int) -> TransformerEncoder:
        return TransformerEncoder(
            plan.vocabulary_size,
            num_layers=layers,
            width=plan.width,
            num_heads=plan.num_heads,
            num_segments=2,
            dropout=plan.dropout,
            positions="absolute" if plan.is_original else "t5",
            norm="pre",
            initializer_range=_INITIALIZER_RANGE,
            position_slope=0.0 if plan.is_original else _POSITION_SLOPE,
            epsilon=_EPSILON,
            seed=seed,
        )

    main = encoder(plan.num_layers, plan.seed)
    if plan.objective == "masked":
        model: keras.Model = MaskedLanguageModel(
            main, clip_norm=plan.clip_norm, seed=plan.seed
        )
        model.compile(_adam(plan, plan.learning_rate))
        return model
    model = Electra(
        encoder(plan.generator_layers, plan.seed + 1),
        main,
        discriminator_weight=plan.discriminator_weight,
        embeddings=cast(Embeddings, plan.embeddings),
        clip_norm=plan.clip_norm if plan.embeddings == "shared" else None,
        seed=plan.seed,
    )
    if plan.embeddings == "shared":
        model.compile(_adam(plan, plan.learning_rate))
        return model
    model.compile(
        DecoupledOptimizer(
            {
                "generator": _adam(plan, plan.generator_learning_rate),
                "discriminator": _adam(plan, plan.learning_rate),
            },
            dict.fromkeys(("generator", "discriminator"), plan.clip_norm),
        )
    )
    return model


def masking(plan: Plan, vocabulary: Vocabulary) -> Masking:
    """Returns what masks the batches of a plan."""
    return Masking(
        vocabulary,
        ratio=plan.mask_ratio,
        scheme="electra" if plan.is_original else "mask",
        whole_words=plan.whole_words,
        seed=plan.seed,
    )


def _adam(plan: Plan, rate: float) -> keras.optimizers.Optimizer:
    optimizer = keras.optimizers.AdamW(
        rate,
        weight_decay=_WEIGHT_DECAY,
        beta_2=_ELECTRA_BETA_2 if plan.is_original else _BETA_2,
        epsilon=_EPSILON,
    )
    return spare_biases(optimizer)
