"""The encoder against loops in float64 and KerasHub; padding, Admin, checkpoints."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import (
    PositionBias,
    TransformerBlock,
    TransformerEncoder,
    admin_profile,
    admin_scale,
    relative_position_buckets,
)
from tests.layers.transformer.published import backbone_of, tensors_of, write_config
from tests.references import transformer as reference
from tests.references.layers import set_random_weights

_SIZES = {"num_layers": 2, "width": 8, "num_heads": 2, "feed_forward": 10}
_TOKENS = np.array([[5, 9, 7, 6, 8], [7, 7, 5, 0, 0]])
_PARTS = (
    "attention_norm",
    "query_key_value",
    "attention_output",
    "network_norm",
    "network_hidden",
    "network_output",
)


def make(**options) -> TransformerEncoder:
    encoder = TransformerEncoder(
        12, **_SIZES, **{"dropout": 0.0, "epsilon": 1e-5, "dtype": "float64", **options}
    )
    set_random_weights(encoder)
    return encoder


def _weights(block):
    return {
        name: [weight.numpy() for weight in getattr(block, name).weights]
        for name in _PARTS
    }


def _by_loops(encoder, row, activation=reference.gelu):
    """Returns what each layer gives of a row without padding, and may all see."""
    parts = encoder.embedding
    x = parts.token_embedding.embeddings.numpy()[row]
    if encoder.positions in ("absolute", "both"):
        x = x + parts.position_embedding.embeddings.numpy()[: len(row)]
    x = reference.layer_norm(x, *(w.numpy() for w in parts.norm.weights))
    if parts.width != encoder.width:
        kernel, bias = (w.numpy() for w in encoder.projection.weights)
        x = x @ kernel + bias
    bias = None
    if encoder.positions in ("t5", "both"):
        places = np.arange(len(row))
        buckets = relative_position_buckets(places - places[:, None])
        bias = encoder.position_bias.table.numpy()[buckets].transpose(2, 0, 1)
    found = []
    for block in encoder.blocks:
        omegas = None
        if encoder.residual_scaling == "admin":
            omegas = block.attention_residual.numpy(), block.network_residual.numpy()
        x = reference.post_norm_block(
            _weights(block),
            x,
            encoder.num_heads,
            bias=bias,
            omegas=omegas,
            activation=activation,
        )
        found.append(x)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"positions": "absolute", "max_length": 6, "activation": "gelu_tanh"},
        {"positions": "both", "embedding_width": 6, "residual_scaling": "admin"},
    ],
)
def test_layers_by_loops(options):
    encoder = make(**options)
    tanh = options.get("activation") == "gelu_tanh"
    found = encoder.hidden_states(_TOKENS)
    assert len(found) == 2
    for row, length in ((0, 5), (1, 3)):
        expected = _by_loops(
            encoder,
            _TOKENS[row][:length],
            reference.gelu_tanh if tanh else reference.gelu,
        )
        for layer, by_loops in zip(found, expected, strict=True):
            np.testing.assert_allclose(layer[row, :length], by_loops, rtol=1e-6)
    np.testing.assert_array_equal(encoder(_TOKENS), found[-1])


def test_what_each_token_may_see_by_loops():
    block = TransformerBlock(
        8, 2, 4, hidden_width=10, causal=False, positions="none", norm="post"
    )
    block.build((None, None, 8))
    set_random_weights(block)
    x = np.random.default_rng(1).normal(size=[2, 4, 8])
    mask = np.tril(np.ones([2, 4, 4], bool))
    mask[1, 3] = [False, True, False, True]
    found = block(tf.constant(x, tf.float32), visible=tf.constant(mask))
    for row in range(2):
        expected = reference.post_norm_block(_weights(block), x[row], 2, mask=mask[row])
        np.testing.assert_allclose(found[row], expected, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("positions", ["t5", "absolute", "both", "rotary"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_is_seen_by_nobody(positions, norm):
    encoder = make(positions=positions, norm=norm, max_length=9)
    longer = np.pad(_TOKENS, [(0, 0), (0, 4)])
    shown = encoder(longer).numpy()
    np.testing.assert_allclose(shown[0, :5], encoder(_TOKENS)[0], rtol=1e-9)
    np.testing.assert_allclose(
        shown[1, :3], encoder(_TOKENS[1:, :3])[0], rtol=1e-9, atol=1e-12
    )
    # What stands where padding is changes nothing, not even the gradient.
    table = encoder.embedding.token_embedding.embeddings
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(encoder(longer)[1, :3] ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(total, table.value))
    assert not gradient[0].numpy().any() and gradient[7].numpy().any()
    assert np.isfinite(encoder(np.zeros([1, 3], int))).all()


def test_places_are_known():
    rows = np.array([[[5, 6, 7]], [[7, 6, 5]]])
    for positions in ("t5", "absolute", "rotary"):
        encoder = make(positions=positions)
        there, back = (encoder(row).numpy() for row in rows)
        assert not np.allclose(there[0], back[0, ::-1], rtol=1e-3)
    # Distances alone count, where places have no embedding.
    encoder = make(positions="t5")
    whole = encoder(np.array([[0, 0, 5, 6, 7]])).numpy()
    np.testing.assert_allclose(whole[0, 2:], encoder(rows[0])[0], rtol=1e-9)


def test_gradients_are_those_of_finite_differences():
    encoder = make(positions="both", residual_scaling="admin", embedding_width=6)
    mix = np.random.default_rng(4).normal(size=(2, 5, 8)) * (_TOKENS != 0)[..., None]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(_TOKENS) * mix)
    weights = encoder.trainable_weights
    gradients = tape.gradient(loss, [w.value for w in weights])
    rng = np.random.default_rng(5)
    for weight, gradient in zip(weights, gradients, strict=True):
        move, kept, values = rng.normal(size=weight.shape), weight.numpy(), []
        for sign in (1, -1):
            weight.assign(kept + sign * 1e-6 * move)
            values.append(float(tf.reduce_sum(encoder(_TOKENS) * mix)))
        weight.assign(kept)
        expected = (values[0] - values[1]) / 2e-6
        found = np.sum(tf.convert_to_tensor(gradient) * move)
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5), weight.path


def test_dropout_acts_on_the_weights_of_attention():
    block = TransformerBlock(
        8,
        2,
        4,
        causal=False,
        positions="none",
        attention_weights_dropout=0.5,
        dtype="float64",
    )
    block.build((None, None, 8))
    x = tf.constant(np.random.default_rng(0).normal(size=[1, 4, 8]))
    np.testing.assert_array_equal(block(x), block(x))
    assert not np.allclose(block(x, training=True), block(x))
    block.attention_weights_dropout = 1e-12
    block.weights_dropout.rate = 1e-12
    # Nothing is lost: both ways of computing attention agree.
    np.testing.assert_allclose(block(x, training=True), block(x), rtol=1e-6)


def test_bfloat16_computes_and_variables_stay_single():
    encoder = make(dtype="mixed_bfloat16", dropout=0.1, positions="both")
    found = encoder(_TOKENS, training=True)
    assert found.dtype == tf.bfloat16 and np.isfinite(tf.cast(found, tf.float32)).all()
    assert {weight.dtype for weight in encoder.trainable_weights} == {"float32"}
    precise = make(dtype="float32", positions="both")
    np.testing.assert_allclose(
        tf.cast(encoder(_TOKENS), tf.float32)[0], precise(_TOKENS)[0], atol=0.3
    )


def test_heads_that_begin_at_neighbours_look_to_one_side_each():
    bias = PositionBias(2, num_buckets=8, max_distance=6, slope=0.5)
    bias.build()
    before, behind = bias(tf.range(5)).numpy()[0]
    # Distances of 2 and 3 share a bucket, and those from 4 to 6: 5 on average.
    np.testing.assert_allclose(before[4], [-2, -0.75, -0.75, 0, -2])
    np.testing.assert_allclose(before[0], [-2, -2.5, -3.25, -3.25, -4.5])
    np.testing.assert_allclose(behind, before[::-1, ::-1])
    made = TransformerEncoder(12, **_SIZES, position_slope=0.5, initializer_range=1e-9)
    np.testing.assert_allclose(
        made.position_bias.table[:3, 0], [-2, 0, -0.5], atol=1e-6
    )
    with pytest.raises(ValueError, match="slope"):
        PositionBias(2, slope=-1.0)


# === Admin ===


def test_omegas_begin_by_the_rule_or_by_a_profile():
    encoder = make(residual_scaling="admin")
    fresh = TransformerEncoder(12, **_SIZES, residual_scaling="admin")
    np.testing.assert_allclose(
        fresh.blocks[1].network_residual, np.full(8, admin_scale(4)), rtol=1e-6
    )
    omegas = encoder.profile_residuals(_TOKENS)
    assert omegas[0] == 1 and np.all(np.diff(omegas) > 0)
    # Measured once more with these omegas, networks add what was measured.
    hidden, seen = encoder.embedded(_TOKENS), encoder.seen(tf.constant(_TOKENS))
    bias, present = encoder.position_bias(tf.range(5)), _TOKENS != 0
    variances = []
    for block in encoder.blocks:
        mixed, _ = block.attention(hidden, visible=seen, bias=bias)
        hidden = block.after_attention(hidden, mixed)
        added = block.network(hidden)
        hidden = block.after_network(hidden, added)
        variances += [np.var(part.numpy()[present]) for part in (mixed, added)]
    np.testing.assert_allclose(omegas, admin_profile(variances), rtol=1e-6)
    assert encoder.blocks[1].network_residual.numpy() == pytest.approx([omegas[3]] * 8)


def test_mistakes_of_admin():
    with pytest.raises(ValueError, match='needs `norm="post"`, found'):
        make(residual_scaling="admin", norm="pre")
    with pytest.raises(ValueError, match='needs `residual_scaling="admin"`'):
        make().profile_residuals(_TOKENS)
    with pytest.raises(ValueError, match="nothing but padding"):
        make(residual_scaling="admin").profile_residuals(np.zeros([1, 2], int))


# === KerasHub ===


def _of_backbone(backbone, tokens, segments):
    inputs = {
        "token_ids": tokens,
        "segment_ids": segments,
        "padding_mask": (tokens != 0).astype(np.int32),
    }
    return backbone(inputs)["sequence_output"].numpy()


def test_it_is_the_bert_of_keras_hub():
    backbone = backbone_of()
    encoder = TransformerEncoder.from_keras_hub(backbone)
    segments = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
    found = encoder(_TOKENS, segments).numpy()
    expected = _of_backbone(backbone, _TOKENS, segments)
    present = _TOKENS != 0
    np.testing.assert_allclose(found[present], expected[present], atol=1e-4)
    assert encoder.dropout == 0.1
    assert TransformerEncoder.from_keras_hub(backbone, dropout=0.2).dropout == 0.2
    with pytest.raises(ValueError, match=r"expected a .*BertBackbone, found Seq"):
        TransformerEncoder.from_keras_hub(keras.Sequential())


def test_a_folder_in_hugging_faces_layout(tmp_path):
    """Tensors by their published names; tiny and random."""
    from safetensors.numpy import save_file

    backbone = backbone_of()
    write_config(tmp_path, backbone)
    with pytest.raises(FileNotFoundError, match="has no weights; expected model"):
        TransformerEncoder.from_checkpoint(tmp_path)
    own = TransformerEncoder.from_keras_hub(backbone)
    save_file(tensors_of(own, backbone), tmp_path / "model.safetensors")
    words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\ng"
    (tmp_path / "vocab.txt").write_text(words)
    encoder = TransformerEncoder.from_checkpoint(tmp_path)
    np.testing.assert_allclose(encoder(_TOKENS)[0], own(_TOKENS)[0], atol=1e-5)
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        TransformerEncoder.from_checkpoint(tmp_path / "nowhere")
    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="is no BERT checkpoint that KerasHub reads"):
        TransformerEncoder.from_checkpoint(tmp_path)


# === Files and mistakes ===


def test_a_file_has_all_of_it(tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    encoder = make(
        positions="both",
        residual_scaling="admin",
        embedding_width=6,
        num_segments=2,
        dtype="float32",
    )
    model = keras.Model(inputs, encoder(inputs))
    model.save(tmp_path / "a.keras")
    loaded = keras.saving.load_model(tmp_path / "a.keras")
    np.testing.assert_array_equal(loaded(_TOKENS), model(_TOKENS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": "learnt"}, "`positions` must be one of t5, absolute, both"),
        ({"norm": "none"}, "`norm` must be one of pre, post"),
        ({"width": 9}, "multiple of `num_heads`, found 9 and 2"),
        ({"dropout": 1.0}, r"`dropout` must lie in \[0, 1\), found 1.0"),
        ({"activation": "relu"}, "`activation` must be one of gelu, gelu_tanh"),
        ({"num_layers": 0}, "`num_layers` must be an integer >= 1, found 0"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(ValueError, match=message):
        TransformerEncoder(12, **{**_SIZES, **options})


def test_rows_that_are_too_long_for_absolute_positions():
    encoder = make(positions="absolute", max_length=4)
    with pytest.raises(ValueError, match=r"at most 4 tokens \(`max_length`\), found 5"):
        encoder(_TOKENS)
