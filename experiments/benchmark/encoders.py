"""Steps of masked language models, of ELECTRA and of fine-tuning with IMM."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from experiments.benchmark.masked_rows import Batch
from experiments.benchmark.preset import Preset
from experiments.benchmark.stream import Stream
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step, duration, train_function_step

_RATE, _CLIP_NORM, _EPSILON, _DROPOUT = 1e-3, 1.0, 1e-6, 0.1
_BATCHES, _CLASSES, _BANK = 4, 4, 4096
# Ids of [CLS] and [MASK], and the first of pieces (`rlm_tf.data.encoder_vocabulary`).
_CLS, _MASK, _PIECES = 2, 4, 5
_TORCH, _KERAS_HUB = "PyTorch", "keras-hub"


def measure_pretraining(
    preset: Preset,
    load: Callable[[], Stream],
    rounds: int,
    seeds: tuple[int, ...],
) -> Row:
    """Times masked language models beside peers, and ELECTRA beside them.

    The softmax is that of masked positions alone everywhere, embeddings are tied to it,
    and dropout acts; ours has absolute positions where peers have.
    """
    timings, stream = Timings(), load()
    firsts: dict[str, list[float]] = {"masked": [], "two": []}
    for seed in seeds:
        batches = _batches(preset, stream, seed)
        steps = {
            "masked": _masked_step(preset, batches, seed),
            "t5": _masked_step(preset, batches, seed, positions="t5"),
            "quarter": _electra_step(preset, batches, seed, preset.encoder_width // 4),
            "one": _electra_step(preset, batches, seed, decoupled=False),
            "two": _electra_step(preset, batches, seed, decoupled=True),
            _KERAS_HUB: _keras_hub_step(preset, batches, seed),
        }
        torch_step = _torch_step(preset, batches, seed)
        if torch_step is not None:
            steps[_TORCH] = torch_step
        for kind, taken in firsts.items():
            began = time.perf_counter()
            steps[kind]()
            taken.append(time.perf_counter() - began)
        timings.run(steps, rounds)
    rows, length = preset.encoder_batch
    size = f"{preset.encoder_layers} x {preset.encoder_width}"
    name = f"masked language model's step, {size}, {rows} rows of {length}"
    lines = []
    for peer in (_TORCH, _KERAS_HUB):
        if peer in timings.seconds:
            said, ratio = timings.text(peer), timings.ratio("masked", peer)
            line = (f"{peer}: {said}", ratio, "at most 1")
            lines.append(Line(name, timings.text("masked"), *line))
        else:
            lines.append(Line(name, timings.text("masked"), f"{peer}: not installed"))
    for what, ours, label, peer, target in (
        ("the same, T5's biases", "t5", "absolute positions", "masked", "at most 1.1"),
        (
            "ELECTRA, generator of a quarter of the width",
            "quarter",
            "masked language model",
            "masked",
            "at most 1.35",
        ),
        (
            "ELECTRA, generator as large, two optimisers",
            "two",
            "one optimiser, embeddings separate, too",
            "one",
            "at most 1.03",
        ),
    ):
        said, ratio = f"{label}: {timings.text(peer)}", timings.ratio(ours, peer)
        lines.append(Line(what, timings.text(ours), said, ratio, target))
    for kind, what in (("masked", "masked language model"), ("two", "that ELECTRA")):
        lines.append(
            Line(
                f"{what}: first step, traced",
                duration(max(firsts[kind])),
                target="at most 20 s",
            )
        )
    numbers = {"times": timings.numbers(), "firsts": firsts, "corpus": stream.name}
    return Row(lines, numbers)


def measure_finetuning(
    preset: Preset,
    load: Callable[[], Stream],
    rounds: int,
    seeds: tuple[int, ...],
) -> Row:
    """Times what IMM adds to fine-tuning with masked words, a position a text."""
    timings, stream = Timings(), load()
    for seed in seeds:
        batches = _batches(preset, stream, seed)
        steps = {
            kind: _finetuning_step(preset, batches, stream, seed, kind)
            for kind in ("", "bank", "sampled")
        }
        timings.run(steps, rounds)
    base = f"task and masked words: {timings.text('')}"
    lines = [
        Line(what, timings.text(kind), base, timings.ratio(kind, ""), target)
        for what, kind, target in (
            ("fine-tuning with IMM, bank", "bank", "at most 1.6"),
            ("the same with published contexts, k = 5", "sampled", ""),
        )
    ]
    return Row(lines, {"times": timings.numbers(), "corpus": stream.name})


def _batches(preset: Preset, stream: Stream, seed: int) -> list[Batch]:
    """Returns batches of rows of a text, each behind [CLS]."""
    import numpy as np

    from rlm_tf.data import mask_tokens

    rows, length = preset.encoder_batch
    pieces = np.resize(stream.tokens, (_BATCHES, rows, length)).astype(np.int32)
    tokens = np.minimum(pieces + _PIECES, stream.vocabulary_size - 1)
    tokens[:, :, 0] = _CLS
    found = []
    for number, own in enumerate(tokens):
        shown, masked = mask_tokens(
            own,
            own < _PIECES,
            mask_id=_MASK,
            vocabulary_size=stream.vocabulary_size,
            seed=_BATCHES * seed + number,
        )
        positions = np.asarray(masked).astype(np.int32)
        places = np.nonzero(positions)[1].reshape(rows, -1).astype(np.int32)
        found.append(Batch(own, np.asarray(shown), positions, places))
    return found


def _encoder(
    preset: Preset, seed: int, width: int | None = None, **options: Any
) -> Any:
    from rlm_tf.layers import TransformerEncoder

    width = width or preset.encoder_width
    return TransformerEncoder(
        preset.vocabulary_size,
        **{
            "num_layers": preset.encoder_layers,
            "width": width,
            "num_heads": max(1, width // 64),
            "embedding_width": preset.encoder_width,
            "max_length": preset.encoder_batch[1],
            "dropout": _DROPOUT,
            "positions": "absolute",
            "epsilon": _EPSILON,
            "seed": seed,
            **options,
        },
    )


def _adam(**options: Any) -> Any:
    import keras

    return keras.optimizers.AdamW(_RATE, epsilon=_EPSILON, **options)


def _tensors(batch: Batch) -> tuple[Any, ...]:
    import tensorflow as tf

    return tuple(tf.constant(part) for part in batch[:3])


def _masked_step(
    preset: Preset, batches: list[Batch], seed: int, positions: str = "absolute"
) -> Step:
    from rlm_tf.models import MaskedLanguageModel

    encoder = _encoder(preset, seed, positions=positions)
    model = MaskedLanguageModel(encoder, clip_norm=_CLIP_NORM, seed=seed)
    model.compile(_adam())
    return train_function_step(model, [(_tensors(batch),) for batch in batches])


def _electra_step(
    preset: Preset,
    batches: list[Batch],
    seed: int,
    width: int | None = None,
    *,
    decoupled: bool | None = None,
) -> Step:
    """Returns a step of ELECTRA.

    Args:
        preset: The sizes.
        batches: What it reads.
        seed: Of weights and draws.
        width: Of the generator; None: that of the detector.
        decoupled: Whether separate networks have an optimiser each; None: embeddings
            are shared.
    """
    from rlm_tf.models import Electra
    from rlm_tf.optimizers import DecoupledOptimizer

    model = Electra(
        _encoder(preset, seed + 1, width),
        _encoder(preset, seed),
        embeddings="shared" if decoupled is None else "separate",
        clip_norm=None if decoupled else _CLIP_NORM,
        seed=seed,
    )
    parts = ("generator", "discriminator")
    optimizer = _adam()
    if decoupled:
        optimizer = DecoupledOptimizer(
            {part: _adam() for part in parts}, dict.fromkeys(parts, _CLIP_NORM)
        )
    model.compile(optimizer)
    return train_function_step(model, [(_tensors(batch),) for batch in batches])


def _finetuning_step(
    preset: Preset, batches: list[Batch], stream: Stream, seed: int, kind: str
) -> Step:
    import numpy as np
    import tensorflow as tf

    from rlm_tf.models import (
        InBatchContexts,
        InducedFineTuning,
        MaskedLanguageModel,
        SampledPrefixes,
        SequenceClassifier,
    )
    from rlm_tf.restricted import KneserNey

    encoder = _encoder(preset, seed, num_segments=2, positions="t5")
    classifier = SequenceClassifier(encoder, _CLASSES, seed=seed)
    masked_model = MaskedLanguageModel(encoder, seed=seed)
    rows = np.concatenate([batch.tokens for batch in batches])
    contexts = {
        "": lambda: None,
        "bank": lambda: InBatchContexts(bank_size=_BANK),
        "sampled": lambda: SampledPrefixes(rows, 5),
    }[kind]()
    restricted = None
    if kind:
        pieces = np.minimum(stream.tokens + _PIECES, stream.vocabulary_size - 1)
        restricted = KneserNey(2).fit(pieces, stream.vocabulary_size).with_floor(1e-6)
    model = InducedFineTuning(
        classifier,
        masked_model,
        restricted,
        contexts,
        clip_norm=_CLIP_NORM,
        seed=seed,
    )
    model.compile(_adam())
    labels = tf.constant(np.arange(len(batches[0].tokens)) % _CLASSES, tf.int32)
    data = []
    for batch in batches:
        tokens, shown, positions = _tensors(batch)
        data.append(((tokens, tf.zeros_like(tokens), shown, positions), labels))
    return train_function_step(model, data)


def _keras_hub_step(preset: Preset, batches: list[Batch], seed: int) -> Step:
    import keras
    import keras_hub
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(seed)
    width = preset.encoder_width
    backbone = keras_hub.models.BertBackbone(
        preset.vocabulary_size,
        num_layers=preset.encoder_layers,
        num_heads=max(1, width // 64),
        hidden_dim=width,
        intermediate_dim=4 * width,
        dropout=_DROPOUT,
        max_sequence_length=preset.encoder_batch[1],
    )
    model = keras_hub.models.BertMaskedLM(backbone)
    model.compile(
        _adam(global_clipnorm=_CLIP_NORM),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    data = []
    for batch in batches:
        shown = tf.constant(batch.shown)
        inputs = {
            "token_ids": shown,
            "segment_ids": tf.zeros_like(shown),
            "padding_mask": tf.ones_like(shown),
            "mask_positions": tf.constant(batch.places),
        }
        targets = np.take_along_axis(batch.tokens, batch.places, axis=1)
        data.append((inputs, tf.constant(targets)))
    return train_function_step(model, data)


def _torch_step(preset: Preset, batches: list[Batch], seed: int) -> Step | None:
    try:
        import torch  # noqa: F401
    except ImportError:
        return None
    from experiments.benchmark.torch_encoder import training_step

    return training_step(
        preset, batches, seed, dropout=_DROPOUT, rate=_RATE, clip_norm=_CLIP_NORM
    )
