"""In-batch induced models inside the training step."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import InBatchContexts
from tests.models.imm import imm_fixtures as fixtures
from tests.references import imm_reference as reference
from tests.references.in_batch_bank import NaiveInBatch
from tests.replica_steps import after_steps

# A few steps each: tracing graphs took most of the time.
pytestmark = pytest.mark.eager


def _element(words=None, batch_size=4, window=10):
    return next(iter(fixtures.batches(words, batch_size, window).dataset()))


def _naive_imm(model, restricted, element, min_count):
    """Mean over positions of Eq. (15) with all positions of the batch as contexts."""
    (tokens, _), _, weights = element
    length = restricted.context_length
    probs = reference.softmax(model(tokens).numpy().astype(np.float64))
    members: dict[tuple[int, ...], list[np.ndarray]] = {}
    for row in range(tokens.shape[0]):
        for step in range(length - 1, tokens.shape[1]):
            if weights[row, step] > 0:
                context = tuple(tokens.numpy()[row, step - length + 1 : step + 1])
                members.setdefault(context, []).append(probs[row, step])
    total, number = 0.0, 0
    for context, samples in members.items():
        if len(samples) < min_count:
            continue
        target = restricted.probs_numpy(np.array([context]))[0]
        loss = reference.imm_loss(target, np.mean(samples, axis=0))
        total, number = total + len(samples) * loss, number + len(samples)
    return total / number, number


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("min_count", [1, 4])
def test_whole_corpus_as_a_batch_is_exact_enumeration(order, min_count):
    words = fixtures.stream(60)
    element = _element(words, 1, 60)
    restricted = fixtures.restricted_model(order, words)
    model = fixtures.wrapper(
        InBatchContexts(min_count=min_count), restricted=restricted
    )
    expected, number = _naive_imm(model.model, restricted, element, min_count)
    logs = model.fit(tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False)
    np.testing.assert_allclose(logs.history["imm"], [expected], rtol=1e-5)
    whole = 60 - order + 2
    np.testing.assert_allclose(
        logs.history["imm_coverage"], [number / whole], rtol=1e-5
    )


def test_padding_and_incomplete_contexts_have_no_weight():
    words = fixtures.stream(33)
    element = _element(words, 2, 20)
    assert np.any(element[2] == 0)
    restricted = fixtures.restricted_model(3)
    model = fixtures.wrapper(InBatchContexts(min_count=1), restricted=restricted)
    expected, _ = _naive_imm(model.model, restricted, element, 1)
    logs = model.fit(tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False)
    np.testing.assert_allclose(logs.history["imm"], [expected], rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"separate_clipping": True},
        {"pass_mode": "evaluation"},
        {"pass_mode": "evaluation", "separate_clipping": True},
    ],
)
def test_options_agree_without_dropout_and_clipping(options):
    element = _element()
    expected = fixtures.step_gradient(
        fixtures.wrapper(InBatchContexts(min_count=2)), element
    )
    plain = fixtures.step_gradient(
        fixtures.compiled(fixtures.language_model()), element
    )
    found = fixtures.step_gradient(
        fixtures.wrapper(InBatchContexts(min_count=2, **options)), element
    )
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.abs(expected - plain).max() > 1e-3


def test_only_separate_clipping_keeps_the_tape():
    """A tape that is kept costs second derivatives in the graph of the step."""
    for separate, clip_norm, kept in (
        (False, 0.1, False),
        (True, None, False),
        (True, 0.1, True),
    ):
        contexts = InBatchContexts(separate_clipping=separate)
        model = fixtures.wrapper(contexts, clip_norm=clip_norm)
        assert model.differentiates_apart == kept


def test_separate_clipping_clips_each_term():
    element = _element()
    plain = fixtures.step_gradient(
        fixtures.compiled(fixtures.language_model()), element
    )
    both = fixtures.step_gradient(
        fixtures.wrapper(InBatchContexts(), coefficient=1.0), element
    )
    own = both - plain
    found = fixtures.step_gradient(
        fixtures.wrapper(
            InBatchContexts(separate_clipping=True), coefficient=0.3, clip_norm=0.05
        ),
        element,
    )
    expected = 0.05 * plain / np.linalg.norm(plain)
    expected += 0.3 * 0.05 * own / np.linalg.norm(own)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_evaluation_pass_is_without_dropout_and_leaves_the_state_alone():
    element = _element()
    dropped = fixtures.language_model(dropout=0.5)
    model = fixtures.wrapper(
        InBatchContexts(min_count=1, pass_mode="evaluation"), model=dropped
    )
    expected, _ = _naive_imm(dropped, model.restricted_models[0], element, 1)
    logs = model.fit(tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False)
    np.testing.assert_allclose(logs.history["imm"], [expected], rtol=1e-5)
    other = fixtures.compiled(fixtures.language_model(dropout=0.5))
    other.fit(tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False)
    for found, wanted in zip(
        tf.nest.flatten(dropped.carried_states(training=True)),
        tf.nest.flatten(other.carried_states(training=True)),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_several_restricted_models_add_up():
    element = _element()
    bigram, trigram = fixtures.restricted_model(2), fixtures.restricted_model(3)
    contexts = {"min_count": 2}
    plain = fixtures.step_gradient(
        fixtures.compiled(fixtures.language_model()), element
    )
    one = fixtures.step_gradient(
        fixtures.wrapper(
            InBatchContexts(**contexts), restricted=bigram, coefficient=0.5
        ),
        element,
    )
    two = fixtures.step_gradient(
        fixtures.wrapper(
            InBatchContexts(**contexts), restricted=trigram, coefficient=0.25
        ),
        element,
    )
    model = fixtures.wrapper(
        InBatchContexts(**contexts), restricted=[(bigram, 0.5), (trigram, 0.25)]
    )
    both = fixtures.step_gradient(model, element)
    np.testing.assert_allclose(both - plain, one + two - 2 * plain, atol=3e-6)


@pytest.mark.parametrize("separate", [False, True])
def test_two_replicas_equal_one_device_with_the_same_pools(two_replicas, separate):
    """Pools are per replica, so the single device averages over the same two pools."""
    element = _element(batch_size=8)
    clip, coefficient = 0.2, 0.7

    def contexts():
        return InBatchContexts(min_count=4, separate_clipping=separate)

    alone = fixtures.wrapper(contexts(), coefficient=coefficient)
    nll, imm, weight = [], [], []
    with tf.GradientTape(persistent=True) as tape:
        for half in (slice(0, 4), slice(4, 8)):
            (tokens, start), y, w = element
            main, induced = alone._terms(
                (tokens[half], start[half]), y[half], w[half], training=True
            )
            nll.append(tf.reduce_mean(main.loss))
            imm.append(tf.reduce_sum(induced.loss * induced.weights))
            weight.append(tf.reduce_sum(induced.weights))
        main_loss = tf.add_n(nll) / 2
        induced_loss = tf.add_n(imm) / tf.add_n(weight)

    coverage = float(alone.coverage_metric.result())
    alone.coverage_metric.reset_state()
    alone.objective_terms(*element, training=True)
    whole_coverage = float(alone.coverage_metric.result())

    def gradient(loss):
        gradients = tape.gradient(loss, [v.value for v in alone.trainable_variables])
        return np.concatenate([np.ravel(tf.convert_to_tensor(g)) for g in gradients])

    def clipped(vector):
        return vector * min(1.0, clip / np.linalg.norm(vector))

    if separate:
        expected = clipped(gradient(main_loss)) + coefficient * clipped(
            gradient(induced_loss)
        )
    else:
        expected = clipped(gradient(main_loss) + coefficient * gradient(induced_loss))
    before = fixtures.flat_weights(alone)
    model = after_steps(
        two_replicas,
        lambda: fixtures.wrapper(contexts(), coefficient=coefficient, clip_norm=clip),
        [element],
        rate=0.5,
    )
    logs = model.get_metrics_result()
    found = (before - fixtures.flat_weights(model)) / 0.5
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(logs["imm"], induced_loss, rtol=1e-5)
    # What two replicas lack: contexts that each of them has too rarely.
    np.testing.assert_allclose(logs["imm_coverage"], coverage, rtol=1e-6)
    assert coverage < whole_coverage


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "`min_count` must be an integer >= 1"),
        ({"min_count": "5"}, "`min_count` must be an integer >= 1, found '5'"),
        ({"pass_mode": "dream"}, "`pass_mode` must be"),
        ({"bank_size": -1}, "`bank_size` must be an integer >= 0"),
        ({"bank_size": 7.5}, "`bank_size` must be an integer >= 0"),
        ({"bank_target": 9}, "`bank_target` needs a bank: `bank_size` is 0"),
        ({"bank_size": 9, "bank_target": 4}, "`bank_target` must be an integer >= 5"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=f"InBatchContexts: .*{message}"):
        InBatchContexts(**options)


def test_sample_weights_multiply_the_share_of_their_position():
    (x, y, _) = _element()
    weights = np.random.default_rng(4).choice([0.0, 0.5, 2.0], y.shape)
    model = fixtures.eager(InBatchContexts(min_count=2))
    naive = NaiveInBatch(model.restricted_models[0], 2, bank_size=0)
    predictions = reference.softmax(model.model(x[0]).numpy().astype(np.float64))
    losses, counted, _ = naive.step(x[0].numpy(), weights, predictions)
    logs = fixtures.step(model, (x, y, weights.astype(np.float32)))
    np.testing.assert_allclose(logs["imm"], [sum(losses) / sum(counted)], rtol=1e-5)


def test_default_of_min_count_asks_for_more_with_a_bank():
    assert InBatchContexts().min_count == 1
    assert InBatchContexts(bank_size=10).min_count == 5
    assert InBatchContexts(min_count=2, bank_size=10).min_count == 2
    with pytest.raises(ValueError, match="`bank_target` must be an integer >= 5"):
        InBatchContexts(bank_size=10, bank_target=4)


def test_options_of_sampled_contexts_are_refused():
    with pytest.raises(ValueError, match="belong to SampledContexts"):
        fixtures.wrapper(InBatchContexts(), gradient="crosstalk")
