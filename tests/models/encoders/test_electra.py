"""ELECTRA: both losses, who gets which gradient, embeddings, what a weight changes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import Electra, MaskedLanguageModel
from rlm_tf.objectives import replaced_tokens
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.optimizers.part_owners import part_owners
from tests.models.encoders.toy import encoder, masked, texts
from tests.replica_steps import after_steps

_BATCH = masked(texts())
_EMBEDDINGS = ["shared", "separate", "disentangled"]


def make(embeddings="separate", **options):
    dtype = options.pop("dtype", "float64")
    return Electra(
        encoder(dtype=dtype),
        encoder(width=8, num_layers=2, seed=1, dtype=dtype),
        embeddings=embeddings,
        **options,
    )


def _terms(model, training=True):
    found = model.objective_terms(_BATCH, None, None, training=training)
    return {
        name: tf.reduce_sum(term.loss * tf.cast(term.weights, term.loss.dtype))
        / tf.cast(tf.reduce_sum(term.weights), term.loss.dtype)
        for name, term in found.items()
    }


@pytest.mark.parametrize("embeddings", _EMBEDDINGS)
def test_losses_are_those_of_both_networks(embeddings, monkeypatch):
    model = make(embeddings)
    drawn = []

    def corrupted(*args, **kwargs):
        drawn.append(replaced_tokens.corrupted_tokens(*args, **kwargs))
        return drawn[-1]

    monkeypatch.setattr("rlm_tf.models.encoders.electra.corrupted_tokens", corrupted)
    found = _terms(model)
    tokens, shown, positions = _BATCH
    alone = model.generator.objective_terms(_BATCH, None, None, training=False)["nll"]
    assert float(found["generator"]) == pytest.approx(np.mean(alone.loss), rel=1e-9)
    seen = tokens.copy()
    seen[positions == 1] = drawn[0].numpy()
    logits = model(seen).numpy()
    labels = seen != tokens
    losses = np.logaddexp(0, logits) - labels * logits
    expected = losses[tokens != 0].mean()
    assert float(found["discriminator"]) == pytest.approx(expected, rel=1e-9)
    assert shown is not seen and labels.any()


@pytest.mark.parametrize("embeddings", _EMBEDDINGS)
def test_who_gets_which_gradient(embeddings):
    model = make(embeddings)
    generator = [model.generator.encoder.blocks[0].network_hidden.kernel]
    discriminator = [
        model.discriminator.blocks[0].network_hidden.kernel,
        model.detection_head.logit.kernel,
    ]
    tables = [
        model.generator.encoder.embedding.token_embedding.embeddings,
        model.discriminator.embedding.token_embedding.embeddings,
    ]
    assert (tables[0] is tables[1]) == (embeddings == "shared")
    with tf.GradientTape(persistent=True) as tape:
        terms = _terms(model)
    of = {
        name: [
            tape.gradient(loss, variable.value)
            for variable in (*generator, *discriminator, *tables)
        ]
        for name, loss in terms.items()
    }
    has = {name: [g is not None for g in found] for name, found in of.items()}
    shares = embeddings == "shared"
    assert has["generator"] == [True, False, False, True, shares]
    assert has["discriminator"] == [False, True, True, shares, True]


def test_disentangled_embeddings_begin_as_the_generators():
    model = make("disentangled")
    base = model.generator.encoder.embedding
    own = model.discriminator.embedding
    np.testing.assert_array_equal(own.matrix(), base.matrix())
    table = own.token_embedding.embeddings
    assert not table.numpy().any()
    change = np.random.default_rng(0).normal(size=table.shape)
    table.assign(change)
    base.token_embedding.embeddings.assign_add(2 * change)
    np.testing.assert_allclose(own.matrix(), base.matrix() + table)
    # To be fine-tuned: the same numbers, and nothing that another model owns.
    alone = model.encoder()
    np.testing.assert_array_equal(alone(_BATCH[0]), model.discriminator(_BATCH[0]))
    base.token_embedding.embeddings.assign_add(change)
    assert not np.allclose(alone(_BATCH[0]), model.discriminator(_BATCH[0]))
    config = type(alone).from_config(alone.get_config())
    config.set_weights(alone.get_weights())
    np.testing.assert_array_equal(alone(_BATCH[0]), config(_BATCH[0]))
    assert make("separate").encoder().embedding.matrix().shape == (20, 4)


def test_logs_and_what_a_right_generator_leaves():
    model = make()
    # A generator that is always right: nothing is replaced.
    logits = tf.one_hot(_BATCH[0], 20, 50.0, 0.0, dtype=tf.float64)
    model.generator.logits_at = lambda shown, places, *_: tf.gather_nd(logits, places)
    model.compile("sgd", run_eagerly=True)
    found = model.evaluate(_BATCH, verbose=0, return_dict=True)
    assert found["replaced"] == 0 and found["f1"] == 0
    assert found["generator_accuracy"] == 1 and found["generator"] < 1e-6
    assert found["loss"] == pytest.approx(
        found["generator"] + 50 * found["discriminator"], rel=1e-6
    )


@pytest.mark.parametrize("embeddings", _EMBEDDINGS)
def test_a_file_has_all_of_it(tmp_path, embeddings):
    model = make(embeddings, dtype="float32", temperature=0.7, discriminator_weight=9.0)
    model.compile("adam", run_eagerly=True)
    model.train_on_batch(_BATCH)
    model.save(tmp_path / "a.keras")
    loaded = keras.saving.load_model(tmp_path / "a.keras")
    np.testing.assert_array_equal(loaded(_BATCH[0]), model(_BATCH[0]))
    np.testing.assert_array_equal(
        loaded.generator(_BATCH[1]), model.generator(_BATCH[1])
    )
    assert loaded.temperature == 0.7 and loaded.discriminator_weight == 9.0
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    assert loaded.optimizer.iterations == 1


def test_a_batch_without_masked_tokens():
    """The generator has no loss and no gradient; all is as it was written."""
    model = make()
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    before = [v.numpy() for v in model.generator.trainable_variables]
    tokens = texts()
    logs = model.train_on_batch(
        (tokens, tokens, np.zeros_like(tokens)), return_dict=True
    )
    assert logs["generator"] == logs["generator_gradient_norm"] == logs["replaced"] == 0
    assert logs["discriminator"] > 0 and np.isfinite(logs["discriminator"])
    for variable, old in zip(model.generator.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(variable, old)


# === Why there are two optimisers ===


def _trained(weight, embeddings="separate", epsilon=1e-30, clip_norm=None, steps=3):
    """Returns all weights after some steps of Adam, by owner, place and path."""
    # In double precision epsilon would count beside gradients that are rounding noise.
    model = make(
        embeddings, discriminator_weight=weight, clip_norm=clip_norm, dtype="float32"
    )
    model.compile(keras.optimizers.Adam(0.01, epsilon=epsilon), run_eagerly=True)
    for step in range(steps):
        model.train_on_batch(masked(texts(seed=step), seed=step))
    owners = part_owners(model.parts)
    # Both networks have the same paths.
    return {
        (owners[id(v)], place, v.path): v.numpy()
        for place, v in enumerate(model.trainable_variables)
    }


def _is_noise(path):
    """Whether a variable has no gradient but roundings."""
    return "key" in path and path.endswith("bias")


def _equal(one, other):
    return all(np.array_equal(one[key], other[key]) for key in one)


def test_without_sharing_and_clipping_the_weight_changes_nothing():
    """To the bit, for a power of two."""
    assert _equal(_trained(1.0), _trained(64.0))


def _moved(**options):
    """Returns the largest changes by a weight of 64 instead of 1, by owner."""
    one, other = (_trained(weight, **options) for weight in (1.0, 64.0))
    moved: dict[str, float] = {}
    for (owner, place, path), values in one.items():
        if not _is_noise(path):
            away = float(np.abs(values - other[owner, place, path]).max())
            moved[owner] = max(moved.get(owner, 0.0), away)
    return moved


def test_with_shared_embeddings_it_does():
    """In the first step these alone move otherwise, by up to two rates; then all."""
    first = _moved(embeddings="shared", steps=1)
    assert first == {"generator": 0, "discriminator": 0, "shared": first["shared"]}
    assert first["shared"] == pytest.approx(0.02, rel=1e-3)
    assert min(_moved(embeddings="shared").values()) > 1e-3


def test_with_clipping_together_it_does():
    """Adam's first step knows no scale; then the factor's changes move both."""
    assert max(_moved(clip_norm=0.5, steps=1).values()) < 1e-6
    assert min(_moved(clip_norm=0.5).values()) > 1e-3


def test_with_an_epsilon_it_does():
    """Of the weighted network alone: its gradients come out of epsilon's reach."""
    moved = _moved(epsilon=1e-6)
    assert moved["generator"] == 0 and moved["discriminator"] > 1e-3


def test_a_weight_of_fifty_changes_roundings_alone():
    """No power of two; what has no gradient but roundings, key biases, goes astray."""
    one, other = _trained(1.0), _trained(50.0)
    assert not _equal(one, other)
    for key, values in one.items():
        away = np.abs(values - other[key]).max()
        assert _is_noise(key[-1]) or away < 1e-5, key
    assert any(_is_noise(path) for *_, path in one)


@pytest.mark.parametrize("embeddings", _EMBEDDINGS)
def test_norms_of_each_networks_gradient_before_clipping(embeddings):
    model = make(embeddings, clip_norm=1e-3)
    with tf.GradientTape() as tape:
        terms = _terms(model)
        loss = terms["generator"] + 50 * terms["discriminator"]
    # With these draws once more.
    model.draw_seeds.state.assign(make(embeddings).draw_seeds.state)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    table = model.discriminator.embedding.weights
    expected: dict[str, float] = {}
    for variable, gradient in zip(variables, gradients, strict=True):
        owner = "discriminator"
        if any(variable is v for v in model.generator.trainable_variables):
            owner = "generator"
            if embeddings == "shared" and any(variable is v for v in table):
                owner = "shared"
        square = np.sum(np.square(tf.convert_to_tensor(gradient)))
        expected[owner] = expected.get(owner, 0.0) + float(square)
    model.compile("sgd", run_eagerly=True)
    logs = model.train_on_batch(_BATCH, return_dict=True)
    found = {name: value for name, value in logs.items() if name.endswith("_norm")}
    names = {f"{part}_gradient_norm": s**0.5 for part, s in expected.items()}
    assert found == pytest.approx(names, rel=1e-5)
    assert len(found) == (3 if embeddings == "shared" else 2)
    assert not [
        n
        for n in model.evaluate(_BATCH, verbose=0, return_dict=True)
        if n.endswith("_norm")
    ]


def test_each_network_has_its_rate_and_clip_norm():
    model = make()
    rates = {"generator": 0.5, "discriminator": 0.25}
    model.compile(
        DecoupledOptimizer(
            {name: keras.optimizers.SGD(rate) for name, rate in rates.items()},
            {"generator": 0.1, "discriminator": 0.2},
        ),
        run_eagerly=True,
    )
    parts = model.part_variables()
    before = {name: [v.numpy() for v in own] for name, own in parts.items()}
    model.train_on_batch(_BATCH)
    for name, norm in (("generator", 0.05), ("discriminator", 0.05)):
        moves = [
            v.numpy() - old for v, old in zip(parts[name], before[name], strict=True)
        ]
        moved = np.sqrt(sum(np.sum(move**2) for move in moves))
        assert moved == pytest.approx(norm, rel=1e-4)
    shared = make("shared")
    with pytest.raises(ValueError, match='give `embeddings="separate"` or "disent'):
        shared.compile(DecoupledOptimizer({"generator": keras.optimizers.SGD(1.0)}))


@pytest.mark.landing
@pytest.mark.parametrize("embeddings", ["shared", "separate"])
def test_two_replicas_equal_one(embeddings, two_replicas):
    """The original, and that of the thesis; masks and draws go by the global row."""

    def optimizer():
        if embeddings == "shared":
            return keras.optimizers.SGD(0.02)
        rates = {"generator": 0.05, "discriminator": 0.02}
        return DecoupledOptimizer(
            {name: keras.optimizers.SGD(rate) for name, rate in rates.items()},
            dict.fromkeys(rates, 1.0),
        )

    def build():
        clip_norm = 1.0 if embeddings == "shared" else None
        return make(embeddings, dtype="float32", clip_norm=clip_norm, seed=2)

    alone, together = (
        after_steps(strategy, build, [(_BATCH,)] * 3, optimizer=optimizer)
        for strategy in (tf.distribute.get_strategy(), two_replicas)
    )
    start = build()
    for one, other, before in zip(
        alone.trainable_variables,
        together.trainable_variables,
        start.trainable_variables,
        strict=True,
    ):
        np.testing.assert_allclose(np.array(other), one, atol=1e-6, err_msg=one.path)
        assert "key" in one.path or np.any(one.numpy() != before.numpy()), one.path


# === Mistakes ===


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embeddings": "tied"}, "`embeddings` must be one of shared, separate, dis"),
        ({"temperature": 0.0}, "`temperature` must be finite and positive, found 0"),
        ({"discriminator_weight": -1.0}, "must be finite and not negative, found -1"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_encoders_that_do_not_fit():
    other = encoder(embedding_width=6)
    for embeddings, message in (
        ("shared", "shared by encoders of one `width`, found 6 and 4"),
        ("disentangled", "of one `embedding_width`, found 6 and 4"),
    ):
        with pytest.raises(ValueError, match=message):
            Electra(other, encoder(), embeddings=embeddings)
    one = encoder()
    with pytest.raises(ValueError, match="must be two encoders, found one"):
        Electra(one, one, embeddings="separate")
    with pytest.raises(ValueError, match="`generator` must be an rlm_tf"):
        Electra(MaskedLanguageModel(encoder()), encoder())
    with pytest.raises(ValueError, match="one vocabulary, found sizes 20 and 9"):
        Electra(encoder(), type(encoder())(9, num_layers=1, width=4, num_heads=2))
