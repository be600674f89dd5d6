"""The AWD-LSTM with a mixture of softmaxes, as it was published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.models.language.batch import tokens_of
from rlm_tf.models.language.regularized_language_model import RegularizedLanguageModel

# Half-width of the uniform distribution that the embedding starts with.
_EMBEDDING_SCALE = 0.1


@keras.saving.register_keras_serializable("rlm_tf")
class AWDLanguageModel(RegularizedLanguageModel):
    """AWD-LSTM (Merity et al. 2017, arXiv 1708.02182), AWD-LSTM-MoS (Yang et al. 2017).

    Stacked LSTM layers of several widths with weight drop, word dropout, dropout locked
    over time and penalties of activations; a tied softmax, or a mixture of them. The
    defaults are those of Penn Treebank:

        AWDLanguageModel(10_000, embedding_width=280, units=(960, 960, 620),
                         mixture_components=15, clip_norm=0.25, l2=1.2e-6)

    has 21,490,460 parameters. It is trained by gradient descent at rate 20 on windows
    of about 70 steps (`rlm_tf.data.VariableWindows`), then averaged from
    `rlm_tf.averaging.TriggeredAverage(5, rule="released")` on.

    Weights start as in the released code: the embedding from U(-0.1, 0.1), recurrent
    layers from U(-1/sqrt(H), 1/sqrt(H)), other maps from U(-1/sqrt(D), 1/sqrt(D)), D
    being the width of their inputs. There, an LSTM has two biases, which take together
    twice the step of the one here; biases before mixture components start at 0 here.
    Nothing is added to forget gates. Word probabilities are the exact logarithms of the
    mixture; the released code adds 1e-8 to the probability of every word.

    Args:
        vocabulary_size: V.
        embedding_width: E.
        units: Widths of the recurrent layers.
        mixture_components: K softmaxes; 1: one, without a map before it if the last
            layer has width E.
        weight_drop: Rate of weight drop on recurrent matrices.
        word_dropout: Rate of words whose embedding is zeroed.
        input_dropout: Rate on embedded words.
        layer_dropout: Rate between layers.
        output_dropout: Rate on the last layer.
        projection_dropout: Rate on the vectors of mixture components.
        activation_penalty: Coefficient alpha of AR.
        temporal_penalty: Coefficient beta of TAR.
        recompute_logits: Whether losses keep the logits of one softmax in memory
            instead of those of all; see `MixtureSoftmaxOutput`.
        base_window: The window of which a step counts whole; one of T time steps counts
            T / base_window, as gradient descent at a rate that is scaled so. None: all
            count the same.
        jit_loop: Whether XLA compiles the recurrent loop; see `Recurrent`.
        seed: Of initialisation and dropout.
        **kwargs: Of `StatefulLanguageModel` (`clip_norm`, `loss_scale`, `l2`,
            `bits_per_character`) and of `keras.Model`.

    Raises:
        ValueError: If a size is not positive, a rate not in [0, 1) or a penalty
            negative.
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        embedding_width: int,
        units: Sequence[int],
        mixture_components: int,
        weight_drop: float = 0.5,
        word_dropout: float = 0.1,
        input_dropout: float = 0.4,
        layer_dropout: float = 0.225,
        output_dropout: float = 0.4,
        projection_dropout: float = 0.29,
        activation_penalty: float = 2.0,
        temporal_penalty: float = 1.0,
        recompute_logits: bool = False,
        base_window: int | None = None,
        jit_loop: bool | str = "auto",
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if isinstance(units, int) or not len(units):
            raise ValueError(
                f"{name}: `units` must be the widths of the layers, such as (960, 960, "
                f"620), found {units!r}."
            )
        for width in units:
            check_integer(name, "units", width, 1)
        self.units = tuple(int(width) for width in units)
        if base_window is not None:
            check_integer(name, "base_window", base_window, 1)
        self.base_window = base_window
        self.weight_drop = weight_drop
        super().__init__(
            vocabulary_size,
            [_cell(width, weight_drop, kwargs.get("dtype")) for width in self.units],
            len(self.units),
            embedding_width=embedding_width,
            connections="stacked",
            tied=True,
            mixture_components=mixture_components,
            input_dropout=input_dropout,
            layer_dropout=layer_dropout,
            output_dropout=output_dropout,
            projection_dropout=projection_dropout,
            word_dropout=word_dropout,
            locked_dropout=True,
            activation_penalty=activation_penalty,
            temporal_penalty=temporal_penalty,
            recompute_logits=recompute_logits,
            jit_loop=jit_loop,
            seed=seed,
            **kwargs,
        )

    def make_initializer(
        self, weight: str, fan_in: int, seed: int
    ) -> keras.initializers.Initializer:
        scale = 1 / math.sqrt(fan_in)
        if weight == "embedding":
            scale = _EMBEDDING_SCALE
        return keras.initializers.RandomUniform(-scale, scale, seed)

    def step_factor(self, x: Any) -> float | tf.Tensor | None:
        if self.base_window is None:
            return None
        steps = tf.shape(tokens_of(x))[1]
        return tf.cast(steps, tf.float32) / self.base_window

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in (
            "cell",
            "num_layers",
            "connections",
            "tied",
            "locked_dropout",
            "reset_rate",
        ):
            config.pop(name)
        return {
            **config,
            "units": self.units,
            "weight_drop": self.weight_drop,
            "base_window": self.base_window,
        }


def _cell(width: int, weight_drop: float, dtype: Any) -> LSTMCell:
    scale = 1 / math.sqrt(width)
    kernel, recurrent, bias = (
        keras.initializers.RandomUniform(-scale, scale, seed) for seed in range(3)
    )
    return LSTMCell(
        width,
        forget_bias=0.0,
        weight_drop=weight_drop,
        kernel_initializer=kernel,
        recurrent_initializer=recurrent,
        bias_initializer=bias,
        seed=0,
        dtype=dtype,
    )
