"""Settings of latent-variable models: what they may be, presets, studies, spaces."""

from __future__ import annotations

import dataclasses

import keras
import pytest

from experiments.kit.vae_config import VaeConfig, check_config, without_idle
from experiments.kit.vae_model import build_model
from experiments.mi_vae import report, studies, sweep, training
from rlm_tf.models import count_parameters

_SMOKE = studies.PRESETS["smoke"]
_SENTENCES = dataclasses.replace(VaeConfig(), corpus="python-docs")


def test_spaces_of_table_5_2():
    def names(**changes):
        config = dataclasses.replace(_SENTENCES, **changes)
        return {*sweep.space_of(config, "dropout")} - {
            "learning_rate",
            "input_dropout",
            "state_dropout",
            "output_dropout",
        }

    assert names(objective="kl") == {"lambda_"}
    assert names(objective="renyi") == {"lambda_", "alpha"}
    assert names(objective="power") == {"alpha"}
    assert names(objective="alpha_iwae") == {"alpha"}
    assert names(latents="quantised") == {
        "num_latents",
        "num_categories",
        "commitment",
        "decay",
    }
    published = {
        "learning_rate": (1e-4, 1e-2, True),
        "lambda_": (-0.05, 0.9999, False),
        "alpha": (0.86, 16.0, True),
        "input_dropout": (0.0, 0.9, False),
        "state_dropout": (0.0, 0.8, False),
        "output_dropout": (0.0, 0.95, False),
        "l2": (5e-6, 1e-3, True),
        "num_latents": (1, 8, False),
        "num_categories": (2, 20, False),
        "commitment": (0.01, 20.0, True),
        "decay": (0.9, 0.99999, True),
    }
    config = dataclasses.replace(_SENTENCES, objective="renyi")
    quantised = dataclasses.replace(config, latents="quantised")
    found = {
        **sweep.space_of(config, "dropout"),
        **sweep.space_of(quantised, "l2"),
    }
    assert {k: (r.low, r.high, r.log) for k, r in found.items()} == published
    integers = {name for name, values in found.items() if values.integer}
    assert integers == {"num_latents", "num_categories"}
    assert "l2" in sweep.space_of(_SMOKE, "l2")
    with pytest.raises(ValueError, match="needs --corpus"):
        sweep.space_of(_SMOKE, "dropout")


def test_presets_and_studies_are_possible():
    kinds = {}
    for number, study in enumerate(studies.STUDIES.values()):
        for config in study([1]).values():
            check_config(config)
            kinds[number, report.line_of({"config": dataclasses.asdict(config)})] = (
                config
            )
    for config in [*studies.PRESETS.values(), *kinds.values()]:
        check_config(config)
        build_model(dataclasses.replace(config, units=2), 11)


def test_published_models_have_the_published_layers():
    """Section 5.7.1: width 128, two layers; embedded categories have one more."""
    symbols, width = 10_000, 128
    layer = width * width + width
    encoder = symbols * width + 2 * layer
    softmax = width * symbols + symbols
    normal = 2 * (width * 40 + 40) + (40 * width + width) + layer
    categorical = (width * 80 + 80) + 80 * width + layer
    for name, between in (("paper", normal), ("paper-vimco", categorical)):
        model = build_model(studies.PRESETS[name], symbols)
        assert count_parameters(model) == encoder + between + softmax, name


def test_adam_has_no_momentum():
    for config in (_SMOKE, dataclasses.replace(_SMOKE, learning_rate=0.01)):
        optimizer = training.prepare(config).model.optimizer
        assert isinstance(optimizer, keras.optimizers.Adam)
        assert (optimizer.beta_1, optimizer.beta_2) == (0.0, 0.999)
        assert optimizer.epsilon == 1e-8
        rate = optimizer.get_config()["learning_rate"]
        assert rate == pytest.approx(config.learning_rate)


@pytest.mark.parametrize("name", sorted(studies.PRESETS))
def test_every_preset_has_a_quantised_baseline(name):
    """What it has set for estimates is left out; what a user gives is refused."""
    preset = dataclasses.replace(
        studies.PRESETS[name], latents="quantised", num_latents=2, num_categories=3
    )
    config = without_idle(preset)
    check_config(config)
    assert (config.lambda_, config.units) == (0.0, preset.units)
    given = dataclasses.replace(preset, lambda_=0.3)
    with pytest.raises(ValueError, match="--lambda_ changes nothing with --latents=q"):
        check_config(without_idle(given, ["lambda_"]))
    assert without_idle(studies.PRESETS[name]) == studies.PRESETS[name]


def test_every_run_of_the_study_can_be_made():
    runs = studies.symbols([1])
    halved = sum(
        line["num_samples"] == 64 or line["grouping"] == "terms"
        for line in studies.LINES.values()
    )
    quantised = [name for name in runs if name.startswith("vq-vae")]
    assert len(runs) - len(quantised) == 4 * len(studies.LINES) - 2 * halved
    assert len(quantised) == 6
    for config in runs.values():
        check_config(config)
    for line in studies.LINES.values():
        small = dataclasses.replace(VaeConfig(**line), num_symbols=5, units=3)
        model = build_model(small, 5)
        assert model.most_samples == max(
            line["num_samples"], line["divergence_samples"]
        )


def test_lines_are_named_by_what_they_share():
    config = dataclasses.asdict(dataclasses.replace(_SMOKE, divergence_samples=1))
    assert report.line_of({"config": config}) == "dreg 4/1 kl"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latents": "other"}, "--latents must be"),
        ({"steps": 7}, "multiple of --epochs"),
        ({"input_dropout": 0.1}, "give --corpus"),
        ({"fraction": 0.0}, "--fraction must lie in"),
        ({"learning_rate": 0.0}, "--learning_rate must be positive"),
        ({"divergence_samples": -1}, "--divergence_samples must be at least 0"),
        (
            {"shared_dropout": False},
            "--shared_dropout changes nothing without",
        ),
        ({"most_tokens": 5}, "--most_tokens changes nothing without --corpus"),
        (
            {"num_categories": 3},
            "--num_categories changes nothing with --latents=n",
        ),
        ({"commitment": 1.0}, "--commitment changes nothing with --latents=normal"),
        (
            {"latents": "categorical", "estimator": "vimco", "latent_size": 7},
            "--latent_size changes nothing with --latents=categorical",
        ),
        (
            {"latents": "quantised", "estimator": "vimco"},
            "--estimator changes nothing with --latents=quantised",
        ),
        ({"corpus": "ptb"}, "--num_symbols changes nothing with --corpus"),
        ({"grouping": "terms"}, "--grouping=terms is for --divergence_samples that"),
        ({"objective": "alpha_iwae"}, "needs --alpha; at 1 it is iwae"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_config(dataclasses.replace(_SMOKE, **changes))
