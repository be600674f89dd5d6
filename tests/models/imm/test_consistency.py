"""Whether the objectives are consistent: what their minimisers are, Proposition 5.1.

Sources are realizable by the models and known exactly, so the distance of what long
training finds from the truth is a number, not an impression.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from experiments.imm_consistency.source import ExactSource
from rlm_tf.models import InBatchContexts, InducedModelMatching, SampledContexts
from rlm_tf.objectives.imm import noising_cross_entropy
from rlm_tf.objectives.in_batch import Groups, grouped_induced_cross_entropy
from rlm_tf.restricted import RestrictedModel
from tests.references.class_source import ClassSource

# === Exact objectives ===


_SOURCES = [ExactSource.proposition_5_1(), ExactSource.random_trigram()]


@pytest.mark.parametrize("source", _SOURCES)
@pytest.mark.parametrize("coefficient", [0.2, 1.0])
def test_imm_finds_the_truth_and_noising_does_not(source, coefficient):
    found = source.minimise("induced", coefficient)
    assert source.kl_divergence(found) < 1e-6
    found = source.minimise("noising", coefficient)
    closed_form = source.noising_minimiser(coefficient)
    np.testing.assert_allclose(found, closed_form, atol=1e-6)
    assert source.kl_divergence(closed_form) > 0.01


@pytest.mark.parametrize(
    ("coefficient", "distance", "excess"),
    [(0.2, 0.0431244587, -0.1023795108), (1.0, 0.1706793800, -0.8395450390)],
)
def test_numbers_of_proposition_5_1(coefficient, distance, excess):
    """`g(Q) = noising(Q) - noising(P)` is negative: noising prefers others to P."""
    source = ExactSource.proposition_5_1()
    np.testing.assert_allclose(source.restricted, [[0.57, 0.43], [0.5, 0.5]], 1e-12)
    # The paper prints -1.1.
    uniform = np.full((2, 2, 2), 0.5)
    np.testing.assert_allclose(source.g(uniform), -1.0979583173, atol=1e-9)
    minimiser = source.noising_minimiser(coefficient)
    np.testing.assert_allclose(source.kl_divergence(minimiser), distance, atol=1e-9)
    total = source.kl_divergence(minimiser) + coefficient * source.g(minimiser)
    np.testing.assert_allclose(total, excess, atol=1e-9)


@pytest.mark.parametrize("source", _SOURCES)
def test_expected_losses_by_loops(source, rng):
    """Naive sums over full contexts and outcomes."""
    probs = rng.dirichlet(np.ones(source.probs.shape[2]), size=source.probs.shape[:2])
    cross_entropy = induced = noising = 0.0
    for s, e in np.ndindex(*source.pi.shape):
        q = probs[s, e]
        cross_entropy -= source.pi[s, e] * np.sum(source.probs[s, e] * np.log(q))
        noising -= source.pi[s, e] * np.sum(source.restricted[s] * np.log(q))
    for s, weight in enumerate(source.pi.sum(axis=1)):
        mean = sum(
            source.pi[s, e] / weight * probs[s, e] for e in range(source.pi.shape[1])
        )
        induced -= weight * np.sum(source.restricted[s] * np.log(mean))
    log_probs = tf.constant(np.log(probs))
    np.testing.assert_allclose(source.cross_entropy(log_probs), cross_entropy)
    np.testing.assert_allclose(source.induced(log_probs), induced)
    np.testing.assert_allclose(source.noising(log_probs), noising)


# === The in-batch loss ===


def test_bias_of_the_mean_of_n_predictions_is_of_second_order():
    """`E[-sum P log mean_n Q] - (-sum P log Q_bar)` is `c2 / n + c3 / n^2 + ...`.

    `c2 = (1/2) sum_y P(y) Var Q(y) / Q_bar(y)^2`. With two extended contexts the
    number of draws of the first is binomial, so the expectation is a sum of n + 1
    terms, each a group of the in-batch loss: no tolerance for chance is needed. The
    next term of the expansion of the logarithm, with the third moment m3 and the
    variance v of Q(y) / Q_bar(y), is `c3 = sum_y P(y) (3 v^2 / 4 - m3 / 3)`; what
    remains is at most `|c3| / n^3` here.
    """
    share = 0.3
    logits = np.log([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    target = np.array([0.4, 0.35, 0.25])
    probs = np.exp(logits)
    mean = share * probs[0] + (1 - share) * probs[1]
    ratio = probs / mean - 1
    moments = [share * ratio[0] ** k + (1 - share) * ratio[1] ** k for k in (2, 3)]
    second = 0.5 * target @ moments[0]
    third = target @ (0.75 * moments[0] ** 2 - moments[1] / 3)
    exact = -target @ np.log(mean)
    for n in (1, 2, 5, 10, 20, 50):
        first = np.arange(n)[np.newaxis] < np.arange(n + 1)[:, np.newaxis]
        rows = logits[np.where(first, 0, 1).reshape(-1)]
        groups = Groups(
            tf.range(n * (n + 1)),
            tf.repeat(tf.range(n + 1), n),
            tf.constant(np.tile(target, (n + 1, 1))),
        )
        losses = grouped_induced_cross_entropy(tf.constant(rows), groups).loss
        weights = scipy.stats.binom.pmf(np.arange(n + 1), n, share)
        bias = weights @ losses.numpy() - exact
        assert bias > 0
        assert abs(bias - second / n - third / n**2) < abs(third) / n**3
        if n == 1:
            noising = noising_cross_entropy(np.tile(target, (2, 1)), np.log(probs)).loss
            np.testing.assert_allclose(
                bias + exact, [share, 1 - share] @ noising.numpy()
            )


class ExactBigram(RestrictedModel):
    """The exact restricted model of a source."""

    context_length = 1

    def __init__(self, probs: np.ndarray):
        super().__init__()
        self.vocabulary_size = len(probs)
        self.table = tf.constant(probs, tf.float32)

    def log_probs(self, short_contexts):
        return tf.math.log(tf.gather(self.table, short_contexts))


class TabularModel(keras.Model):
    """The family of `ClassSource`: logits looked up by class(u), v and group(w)."""

    def __init__(self, source: ClassSource):
        super().__init__()
        self.num_classes, words, _ = source.probs.shape
        self.vocabulary_size = words
        self.groups = source.groups
        self.table = self.add_weight(
            shape=(self.num_classes * words, source.groups.max() + 1),
            initializer="zeros",
        )
        self.bias = self.add_weight(shape=(words,), initializer="zeros")
        self.built = True

    def rows(self, states):
        rows = tf.gather(tf.convert_to_tensor(self.table), states)
        return tf.gather(rows, self.groups, axis=-1) + self.bias

    def call(self, tokens):
        previous = tf.concat([tokens[:, :1], tokens[:, :-1]], axis=1)
        states = previous % self.num_classes * self.vocabulary_size + tokens
        return self.rows(states)

    def probs(self):
        states = tf.range(self.num_classes * self.vocabulary_size)
        logits = tf.reshape(
            self.rows(states), [self.num_classes, self.vocabulary_size, -1]
        )
        return tf.nn.softmax(logits).numpy()


def _train(source, windows, coefficient, contexts):
    """Returns `KL(P || Q)` after one pass over fresh batches of 20 x 35 positions."""
    model = TabularModel(source)
    wrapper = InducedModelMatching(
        model, ExactBigram(source.bigram), contexts, coefficient
    )
    schedule = keras.optimizers.schedules.CosineDecay(0.1, len(windows))
    wrapper.compile(keras.optimizers.Adam(schedule))
    # The first position of a window does not see the word before it.
    weights = np.ones((20, windows.shape[-1] - 1), np.float32)
    weights[:, 0] = 0
    data = tf.data.Dataset.from_tensor_slices(windows)
    data = data.map(lambda words: (words[:, :-1], words[:, 1:], tf.constant(weights)))
    wrapper.fit(data.prefetch(2), verbose=0, shuffle=False)
    return source.kl_divergence(model.probs())


@pytest.mark.landing
@pytest.mark.slow
def test_in_batch_loss_is_nearly_consistent_where_noising_is_not():
    """Proposition 5.1 at the batch size of Penn Treebank, 20 x 35 positions.

    300 words of Zipf-like frequency, lambda = 1: 12 % of the positions are alone with
    their short context and 37 % have fewer than five predictions. Measured KL(P || Q)
    in nats, after as many batches as here and after more:

                                   700     1000
        plain                      0.0067  0.0053
        in-batch, min_count 5      0.0081  0.0063
        in-batch, min_count 1      0.0326  0.0317
        noising, closed form       0.1167
        P_bar itself               0.3180

    0.005 is what 1000 batches leave undetermined. The theory orders them: a context
    with n predictions has 1/n of noising's bias, to second order.
    """
    source = ClassSource(300, 2, 6, concentration=0.3, seed=1)
    windows = source.windows(20 * 700, 37).reshape(700, 20, 37)
    noising = source.kl_divergence((source.probs + source.bigram) / 2)
    plain = _train(source, windows, 0.0, InBatchContexts())
    one, five = (
        _train(source, windows, 1.0, InBatchContexts(min_count=count))
        for count in (1, 5)
    )
    assert plain < 0.01
    assert five < 0.01
    assert five < one / 3
    assert one < noising / 2.5
    assert noising > 0.1


@pytest.mark.landing
@pytest.mark.slow
def test_one_sample_is_noising_and_ten_are_nearly_consistent():
    """The published sampler on the same source: k = 1 behaves like noising.

    Measured KL(P || Q) in nats after 250 batches of 20 x 35 positions, lambda = 1:

        plain                      0.0153
        sampled, k = 10            0.0118
        sampled, k = 1             0.1210
        noising, closed form       0.1167
    """
    source = ClassSource(300, 2, 6, concentration=0.3, seed=1)
    windows = source.windows(20 * 250, 37).reshape(250, 20, 37)
    # One word in 400 has the end of another stream before it.
    stream = source.windows(250, 400).ravel()
    noising = source.kl_divergence((source.probs + source.bigram) / 2)
    plain = _train(source, windows, 0.0, InBatchContexts())
    one, ten = (
        _train(source, windows, 1.0, SampledContexts(stream, k, window=2))
        for k in (1, 10)
    )
    assert plain < 0.025
    assert ten < plain
    assert one == pytest.approx(noising, rel=0.1)
