"""How large the benchmarks are."""

from __future__ import annotations

import dataclasses

# Rows but for their widths, in the table's order; some are measured at each width.
_ROWS = (
    "lstm",
    "cells",
    "ratios",
    "averages",
    "imm",
    "floors",
    "sampler",
    "memory",
    "reading",
    "kneser-ney",
    "large-counts",
    "serving",
    "latents",
    "latent-memory",
    "awd",
    "mixture-memory",
    "information",
    "encoders",
    "finetuning",
    "distillation",
    "store",
    "losses",
    "language-distillation",
    "seed-matching",
    "seed-linear",
    "seed-step",
    "seed-serving",
    "seed-tool",
    "grid",
    "logistic",
)
_OF_WIDTHS = {"lstm", "cells", "ratios", "imm", "floors", "sampler"}


@dataclasses.dataclass(frozen=True)
class Preset:
    """Sizes and repetitions.

    Attributes:
        vocabulary_size: V.
        batch_size: B.
        window: T, tokens that a step reads from each row.
        widths: Widths of the two-layer models that are timed.
        rounds: Repetitions of a timing at each width.
        averaging_width: Width of the two-layer model whose weights are averaged.
        averaging_batch: Rows and time steps of its batches.
        sampled_ks: Numbers of samples of the published sampler.
        sampled_rounds: Repetitions of its timings.
        longest_step: Seconds; a sampler's step that is expected to take longer is not
            run, its time is projected.
        memory_width: Width of the model whose peak memory is measured.
        memory_processes: Processes in which each point of memory is measured.
        crosstalk_ks: Numbers of samples of the crosstalk gradient there.
        direct_ks: Numbers of samples of the direct gradient there.
        peak_size: Rows of the square matrices whose product measures the peak.
        fit_tokens: Tokens that the Kneser-Ney models are fitted to; None: all.
        counted_tokens: Tokens that n-grams of order 5 are counted of.
        contexts: Distinct short contexts whose distributions are computed.
        scored_pairs: Pairs (context, word) that NLTK scores.
        grid_epochs: Epochs of a training on the toroidal grid.
        grid_runs: Seeds of each of the four arms there.
        logistic_runs: Data sets of logistic regression, trained side by side.
        logistic_sizes: Examples of a data set.
        logistic_steps: Steps of gradient descent.
        latent_samples: Samples K of an example of latent-variable models.
        latent_batch: Examples of their batches.
        latent_rounds: Repetitions of their timings.
        awd_batch: Rows and time steps of AWD-LSTM, and pairs of BMI.
        awd_width: Width of its two layers.
        awd_components: Softmaxes.
        mixture_components: Softmaxes whose memory is measured.
        mixture_units: Widths of the model's layers then, the embedding's in front.
        tool_tokens: Tokens whose information is estimated, at most.
        tool_segment: Tokens of a segment.
        tool_folds: Folds.
        seed_set: Documents that seeds are matched in (`kit.seed_list`).
        linear_set: Documents of classifiers.
        tool_rows: Documents of the command whose memory is measured.
        encoder_batch: Rows and tokens of a row of encoders.
        encoder_layers: Their layers.
        encoder_width: Their width; 64 for each head.
        image_batch: Images of a step of teachers and students.
        image_size: Their height and width.
        image_depth: Layers of their wide residual networks.
        image_methods: Ways to learn from a teacher that are timed beside KD.
        image_rounds: Repetitions of their timings.
        store_size: Examples and classes of a store of predictions, and ids of a batch.
        whole_figures: Whether Figure 3 of the IMM paper is computed in full.
    """

    vocabulary_size: int = 10_000
    batch_size: int = 20
    window: int = 35
    widths: tuple[int, ...] = (200, 650)
    rounds: tuple[int, ...] = (31, 15)
    averaging_width: int = 720  # 24 million parameters with 10,000 words
    averaging_batch: tuple[int, int] = (64, 70)
    sampled_ks: tuple[int, ...] = (1, 5, 10)
    sampled_rounds: int = 3
    longest_step: float = 30.0
    memory_width: int = 200
    memory_processes: int = 5
    crosstalk_ks: tuple[int, ...] = (1, 20)
    direct_ks: tuple[int, ...] = (1, 2, 5)
    peak_size: int = 2048
    fit_tokens: int | None = None
    counted_tokens: int = 50_000_000
    contexts: int = 350
    scored_pairs: int = 200
    grid_epochs: int = 100
    grid_runs: int = 30
    logistic_runs: int = 300
    logistic_sizes: tuple[int, ...] = (10, 50)
    logistic_steps: int = 200
    latent_samples: int = 16
    latent_batch: int = 256
    latent_rounds: int = 9
    awd_batch: tuple[int, int] = (12, 70)
    awd_width: int = 200
    awd_components: int = 3
    mixture_components: int = 15
    mixture_units: tuple[int, ...] = (280, 960, 960, 620)
    tool_tokens: int = 1_000_000
    tool_segment: int = 40
    tool_folds: int = 10
    seed_set: str = "20news-coarse"
    linear_set: str = "ag-news"
    tool_rows: int = 1_000_000
    encoder_batch: tuple[int, int] = (32, 64)
    encoder_layers: int = 4
    encoder_width: int = 128
    image_batch: int = 64
    image_size: int = 32
    image_depth: int = 16
    image_methods: tuple[str, ...] = (
        *("at", "sp", "rkd", "pkt", "nst", "dkd", "dist"),
        *("reverse_kd", "generalised_jsd", "standardised_kd"),
        *("fitnet", "cc", "vid", "ft", "ab", "crd", "crd_published", "sskd"),
    )
    image_rounds: int = 9
    store_size: tuple[int, int, int] = (50_000, 100, 64)
    whole_figures: bool = True


PRESETS = {
    "smoke": Preset(
        vocabulary_size=50,
        batch_size=3,
        window=6,
        widths=(8,),
        rounds=(2,),
        averaging_width=8,
        averaging_batch=(3, 6),
        sampled_ks=(1,),
        sampled_rounds=1,
        memory_width=8,
        memory_processes=1,
        crosstalk_ks=(1, 2),
        direct_ks=(),
        peak_size=64,
        fit_tokens=2_000,
        counted_tokens=3_000,
        contexts=10,
        scored_pairs=5,
        grid_epochs=3,
        grid_runs=2,
        logistic_runs=2,
        logistic_sizes=(4,),
        logistic_steps=5,
        latent_samples=2,
        latent_batch=4,
        latent_rounds=1,
        awd_batch=(3, 6),
        awd_width=8,
        awd_components=2,
        mixture_components=2,
        mixture_units=(8, 8, 8),
        seed_set="planted",
        linear_set="planted",
        tool_rows=1000,
        tool_tokens=900,
        tool_segment=3,
        tool_folds=3,
        encoder_batch=(3, 12),
        encoder_layers=1,
        encoder_width=8,
        image_batch=4,
        image_size=8,
        image_depth=10,
        image_methods=("at", "fitnet"),
        image_rounds=1,
        store_size=(50, 5, 4),
        whole_figures=False,
    ),
    "small": Preset(),
    "paper": Preset(
        rounds=(101, 51),
        sampled_rounds=9,
        longest_step=float("inf"),
        crosstalk_ks=(1, 2, 5, 10, 20),
        direct_ks=(1, 2, 5, 10),
        scored_pairs=2_000,
    ),
}


def row_names(*presets: Preset) -> list[str]:
    """Returns the names of the rows of presets, in the table's order."""
    widths = sorted({width for preset in presets for width in preset.widths})
    return [
        name
        for row in _ROWS
        for name in (
            [f"{row}-{width}" for width in widths] if row in _OF_WIDTHS else [row]
        )
    ]
