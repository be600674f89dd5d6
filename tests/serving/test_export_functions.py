"""Exported classifiers and policies, answering in a process without this library."""

from __future__ import annotations

import json
import subprocess
import sys

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import LinearDiscriminant
from rlm_tf.envs import collected_trajectories, trajectory_draws
from rlm_tf.layers import DiscretePolicy
from rlm_tf.models import (
    LogisticIMM,
    NeighborModelMatching,
    ReinforceIMM,
    StudentOrientedTeacher,
)
from rlm_tf.serving import export_classifier, export_policy

_PROGRAM = """
import json, sys
import numpy as np, tensorflow as tf
assert "rlm_tf" not in sys.modules
signature = tf.saved_model.load(sys.argv[1]).signatures[sys.argv[2]]
inputs = {k: tf.constant(v, d) for k, (v, d) in json.loads(sys.argv[3]).items()}
print(json.dumps({k: v.numpy().tolist() for k, v in signature(**inputs).items()}))
"""


def _answer(path, name, **inputs):
    """What a bare process gets; inputs are pairs of a list and a dtype."""
    arguments = [str(path), name, json.dumps(inputs)]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _classifier(rng) -> LogisticIMM:
    task = LinearDiscriminant()
    x, y = task.sample(20, rng)
    model = LogisticIMM(task.restricted())
    model.compile(keras.optimizers.SGD(1.0))
    model.fit(x, y, epochs=20, batch_size=20, verbose=0)
    return model


@pytest.mark.landing
def test_a_classifier_answers_in_a_bare_process(rng, tmp_path):
    model = _classifier(rng)
    path = export_classifier(model, tmp_path / "deep" / "classifier")
    x = rng.uniform(-1, 1, (5, 3)).astype(np.float32)
    answer = _answer(path, "classify", examples=(x.tolist(), "float32"))
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(np.array(answer["probabilities"])[:, 1], expected, 1e-5)
    np.testing.assert_array_equal(answer["labels"], expected > 0.5)


def test_a_batch_of_zero_and_any_network(rng, tmp_path):
    network = keras.Sequential(
        [
            keras.Input((2, 2, 1)),
            keras.layers.Flatten(),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(3),
        ]
    )
    model = NeighborModelMatching(network)
    model.compile(keras.optimizers.SGD(0.1))
    pictures = rng.normal(3.0, 2.0, (20, 2, 2, 1))
    model.fit(pictures, rng.integers(3, size=20), epochs=5, verbose=0)
    path = export_classifier(model, tmp_path / "classifier")
    classify = tf.saved_model.load(str(path)).signatures["classify"]
    nothing = classify(examples=tf.zeros([0, 2, 2, 1]))
    assert nothing["probabilities"].shape == (0, 3) and nothing["labels"].shape == (0,)
    x = tf.constant(rng.normal(size=(4, 2, 2, 1)), tf.float32)
    found = classify(examples=x)["probabilities"]
    np.testing.assert_allclose(found, tf.nn.softmax(network(x)), atol=1e-6)
    moved = network.layers[1].moving_mean.numpy()
    assert np.abs(moved).max() > 0.1


@pytest.mark.landing
def test_a_policy_answers_in_a_bare_process(tmp_path):
    policy = DiscretePolicy(9, 4, 5, seed=2)
    before = tf.nn.softmax(policy(np.arange(9))).numpy()
    model = ReinforceIMM(policy)
    model.compile(keras.optimizers.Adam(0.1))
    env = gymnasium.make("rlm_tf/ToroidalGrid-v0", size=3)
    draws = trajectory_draws(1, epochs=5, steps=8, batch=2, num_states=9)
    data = collected_trajectories(env, model.action_probs, draws)
    model.fit(data, epochs=5, steps_per_epoch=1, shuffle=False, verbose=0)
    assert np.abs(model.action_probs(np.arange(9)) - before).max() > 0.1
    path = export_policy(model, tmp_path / "policy", num_states=9)
    states = [0, 3, 3, 8, 9, -1]
    inputs = {"states": (states, "int32"), "seed": (7, "int32")}
    answer = _answer(path, "act", **inputs)
    probs = tf.nn.softmax(policy(np.array(states[:4]))).numpy()
    np.testing.assert_allclose(np.array(answer["probabilities"])[:4], probs, atol=1e-6)
    np.testing.assert_array_equal(answer["best_actions"][:4], probs.argmax(axis=1))
    assert np.all(np.isnan(np.array(answer["probabilities"])[4:]))
    assert answer["actions"][4:] == answer["best_actions"][4:] == [-1, -1]
    act = tf.saved_model.load(str(path)).signatures["act"]
    again = act(states=tf.constant(states), seed=tf.constant(7))
    assert again["actions"].numpy().tolist() == answer["actions"]


def test_actions_are_drawn_from_their_probabilities(tmp_path):
    policy = DiscretePolicy(3, 4, 5, seed=2)
    path = export_policy(ReinforceIMM(policy), tmp_path / "policy", num_states=3)
    act = tf.saved_model.load(str(path)).signatures["act"]
    count = 20_000
    answer = act(states=tf.ones(count, tf.int32), seed=tf.constant(3))
    found = np.bincount(answer["actions"].numpy(), minlength=4) / count
    expected = tf.nn.softmax(policy(np.array([1]))).numpy()[0]
    np.testing.assert_allclose(found, expected, atol=5 * 0.5 / np.sqrt(count))


def test_files_hold_no_restricted_model(rng, tmp_path):
    path = export_classifier(_classifier(rng), tmp_path / "classifier")
    names = [
        name for name, _ in tf.train.list_variables(str(path / "variables/variables"))
    ]
    # The kernel, the bias and the bookkeeping of the file.
    values = [name for name in names if name.endswith("VARIABLE_VALUE")]
    assert len(values) == 2


def test_mistakes(rng, tmp_path):
    model = _classifier(rng)
    with pytest.raises(ValueError, match="must be a ReinforceIMM, found LogisticIMM"):
        export_policy(model, tmp_path / "policy", num_states=3)
    with pytest.raises(ValueError, match=r"does not say what its inputs are"):
        export_classifier(keras.Sequential(), tmp_path / "classifier")
    policy = ReinforceIMM(DiscretePolicy(3, 4))
    with pytest.raises(ValueError, match=r"must be at most 3, .*; found 4"):
        export_policy(policy, tmp_path / "policy", num_states=4)
    with pytest.raises(ValueError, match="`num_states` must be an integer >= 1"):
        export_policy(policy, tmp_path / "policy", num_states=0)
    diverged = DiscretePolicy(3, 4)
    diverged.weights[0].assign(diverged.weights[0] * np.nan)
    with pytest.raises(ValueError, match=r"export_policy: the weight \S+ holds NaN"):
        export_policy(ReinforceIMM(diverged), tmp_path / "policy", num_states=3)
    export_classifier(model, tmp_path / "classifier")
    with pytest.raises(FileExistsError, match="already holds a SavedModel"):
        export_classifier(model, tmp_path / "classifier")
    export_classifier(model, tmp_path / "classifier", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["classifier"]


def test_any_classifier_with_a_temperature_and_names(tmp_path):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input([4, 2]), keras.layers.Flatten()])
    model.add(keras.layers.Dense(3))
    wrapped = StudentOrientedTeacher(model, epochs=1)
    export_classifier(
        wrapped, tmp_path / "m", temperature=2.5, class_names=["a", "b", "c"]
    )
    classify = tf.saved_model.load(str(tmp_path / "m")).signatures["classify"]
    x = np.random.default_rng(1).normal(size=(5, 4, 2)).astype("float32")
    found = classify(examples=tf.constant(x))
    expected = np.asarray(tf.nn.softmax(model(x) / 2.5))
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-6)
    best = expected.argmax(axis=1)
    np.testing.assert_array_equal(found["labels"], best)
    assert [name.decode() for name in found["names"].numpy()] == [
        "abc"[i] for i in best
    ]
    assert classify(examples=tf.zeros([0, 4, 2]))["labels"].shape == [0]
    with pytest.raises(ValueError, match="`class_names` must be 3 names, found 2"):
        export_classifier(model, tmp_path / "n", class_names=["a", "b"])
    with pytest.raises(ValueError, match="`temperature` must"):
        export_classifier(model, tmp_path / "n", temperature=0.0)
    inputs = keras.Input([None, 2])
    free = keras.Model(inputs, keras.layers.Dense(3)(inputs[:, 0]))
    with pytest.raises(ValueError, match="all axes of examples but the first must be"):
        export_classifier(free, tmp_path / "n")


class _Sum(keras.Model):
    """A classifier of two inputs that does not say what it takes."""

    def __init__(self):
        super().__init__(name="sum")
        self.dense = keras.layers.Dense(3)

    def call(self, inputs, training=False):
        a, b = inputs.values() if isinstance(inputs, dict) else inputs
        return self.dense(a + b)


def test_several_inputs_and_models_that_do_not_say_theirs(tmp_path, rng):
    a, b = (rng.normal(size=(4, 2)).astype("float32") for _ in range(2))
    first, second = keras.Input([2], name="first"), keras.Input([2], name="second")
    functional = keras.Model([first, second], keras.layers.Dense(3)(first + second))
    model = _Sum()
    model([a, b])
    cases = (
        (functional, None, ("first", "second")),
        (model, (a, b), ("examples_1", "examples_2")),
        (model, {"left": a, "right": b}, ("left", "right")),
    )
    for number, (own, example, names) in enumerate(cases):
        path = export_classifier(own, tmp_path / f"{number}", example=example)
        classify = tf.saved_model.load(str(path)).signatures["classify"]
        found = classify(**{names[0]: tf.constant(a), names[1]: tf.constant(b)})
        expected = tf.nn.softmax(own([a, b]))
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-6)
    with pytest.raises(ValueError, match="sum does not say what its inputs are"):
        export_classifier(model, tmp_path / "none")
