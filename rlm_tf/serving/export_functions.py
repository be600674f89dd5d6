"""Writes classifiers and policies as SavedModels."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.models import ReinforceIMM
from rlm_tf.models.distillation.trained_classifier import classifier_of
from rlm_tf.models.imm.neighbor_matching import NeighborMatching
from rlm_tf.numerics import at_least_single
from rlm_tf.serving.arguments import checked_scalar, checked_shape
from rlm_tf.serving.saved_model import check_weights, write_saved_model

_TOLERANCE = 1e-5
_CHECKED = 7


def export_classifier(
    model: keras.Model,
    path: str | os.PathLike[str],
    *,
    temperature: float = 1.0,
    class_names: Sequence[str] | None = None,
    example: Any = None,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a classifier with the signature `classify`.

    It takes `examples`, `[N, ...]`, and returns `probabilities` `[N, K]` and `labels`
    int32 `[N]`, the most probable ones, with `class_names` also `names`, strings `[N]`;
    N may be zero. Of a model of several inputs it takes each by the name that the model
    or `example` has for it. Restricted models, teachers and training data stay behind.

    Args:
        model: A `LogisticIMM` or `NeighborModelMatching`, or any Keras model whose
            outputs are logits `[N, K]`; of a `Distillation` the student, of
            a `StudentOrientedTeacher` the model is written.
        path: Directory to be made.
        temperature: What logits are divided by.
        class_names: K names.
        example: Inputs `[B, ...]`, an array or a dictionary or tuple of several, of
            models that do not say what they take, such as subclassed ones.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: See `write_saved_model`.
        ValueError: If `model` is no classifier, an argument does not fit, the
            SavedModel's numbers are not the model's, or a weight holds NaN or infinity.
    """
    name = "export_classifier"
    structure = classifier_inputs(name, model, temperature, example)
    model = classifier_of(model)
    specs: list[tf.TensorSpec] = tf.nest.flatten(structure)

    @tf.function(input_signature=specs)
    def classify(*parts: tf.Tensor) -> dict[str, tf.Tensor]:
        given = [
            checked_shape("classify", spec.name, part, spec.shape)
            for spec, part in zip(specs, parts, strict=True)
        ]
        examples = tf.nest.pack_sequence_as(structure, given)
        if isinstance(model, NeighborMatching):
            logits = model.class_log_probs(examples, training=False)
        else:
            logits = model(examples, training=False)
        probs = tf.nn.softmax(at_least_single(logits) / temperature)
        labels = tf.argmax(probs, axis=-1, output_type=tf.int32)
        found = {"probabilities": probs, "labels": labels}
        if class_names is not None:
            found["names"] = tf.gather(tf.constant(list(class_names)), labels)
        return found

    classes = classify.get_concrete_function().structured_outputs["probabilities"].shape
    if class_names is not None and len(class_names) != classes[-1]:
        raise ValueError(
            f"{name}: `class_names` must be {classes[-1]} names, found "
            f"{len(class_names)}."
        )
    rng = np.random.default_rng(0)
    inputs = {
        spec.name: tf.cast(
            np.abs(rng.normal(size=(_CHECKED, *spec.shape[1:]))), spec.dtype
        )
        for spec in specs
    }
    return _export(name, model, classify, inputs, path, overwrite)


def classifier_inputs(
    name: str, model: Any, temperature: float, example: Any = None
) -> Any:
    """Returns what a classifier takes, which needs to be known for an export.

    It need not be trained.

    Args:
        name: Of who asks; messages begin with it.
        model: As of `export_classifier`.
        temperature: Likewise.
        example: Likewise.

    Returns:
        A specification, or a list or dictionary of such.

    Raises:
        ValueError: If it does not say what it takes, or another argument does not fit.
    """
    _check_kind(name, model, keras.Model)
    check_range(name, 1e-6, 1e6, temperature=temperature)
    model = classifier_of(model)
    if isinstance(model, NeighborMatching):
        return tf.TensorSpec((None, *model.example_shape), name="examples")
    inputs = getattr(model, "inputs", None)
    if inputs:
        names = [each.name for each in inputs] if len(inputs) > 1 else ["examples"]
        specs = [
            _spec_of(each.shape, keras.backend.standardize_dtype(each.dtype), own)
            for each, own in zip(inputs, names, strict=True)
        ]
    elif example is None:
        raise ValueError(
            f"{name}: {model.name} does not say what its inputs are (a functional "
            "model does); give `example=`."
        )
    elif isinstance(example, dict):
        return {
            own: _spec_of(np.shape(part), tf.convert_to_tensor(part).dtype, own)
            for own, part in example.items()
        }
    else:
        several = isinstance(example, tuple | list)
        parts = list(example) if several else [example]
        specs = [
            _spec_of(
                np.shape(part),
                tf.convert_to_tensor(part).dtype,
                f"examples_{number}" if several else "examples",
            )
            for number, part in enumerate(parts, start=1)
        ]
    for spec in specs:
        if None in spec.shape[1:]:
            raise ValueError(
                f"{name}: all axes of {spec.name} but the first must be known, found "
                f"{list(spec.shape)}."
            )
    return specs[0] if len(specs) == 1 else specs


def _spec_of(shape: Sequence[int | None], dtype: Any, name: str) -> tf.TensorSpec:
    """Returns what any number of examples are like."""
    return tf.TensorSpec((None, *shape[1:]), dtype, name=name)


def export_policy(
    model: ReinforceIMM,
    path: str | os.PathLike[str],
    *,
    num_states: int,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a policy with the signature `act`.

    It takes `states`, int32 `[N]`, and `seed`, int32, and returns `probabilities`
    `[N, A]`, `actions` int32 `[N]` drawn from them, and `best_actions`, the most
    probable ones. One seed gives one draw; a state that is none gets probabilities nan
    and action -1.

    Args:
        model: A policy over numbered states.
        path: Directory to be made.
        num_states: States are in `[0, num_states)`.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: See `write_saved_model`.
        ValueError: If `model` is no such model, or the SavedModel's numbers are not
            the model's, or a weight holds NaN or infinity.
    """
    _check_kind("export_policy", model, ReinforceIMM)
    check_integer("export_policy", "num_states", num_states, 1)
    known_states = getattr(model.policy, "num_states", num_states)
    if num_states > known_states:
        raise ValueError(
            f"export_policy: `num_states` must be at most {known_states}, the states "
            f"that the policy knows; found {num_states}."
        )

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int32, name="states"),
            tf.TensorSpec([], tf.int32, name="seed"),
        ]
    )
    def act(states: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        states = checked_shape("act", "states", states, (None,))
        seed = checked_scalar("act", "seed", seed)
        known = (states >= 0) & (states < num_states)
        logits = tf.cast(model(tf.where(known, states, 0)), tf.float32)
        probs = tf.nn.softmax(logits)
        uniforms = tf.random.stateless_uniform(
            [tf.shape(states)[0], 1], tf.stack([seed, 0]), alg="philox"
        )
        passed = uniforms >= tf.cumsum(probs, axis=-1)[:, :-1]
        actions = tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)
        best = tf.argmax(probs, axis=-1, output_type=tf.int32)
        return {
            "probabilities": tf.where(known[:, tf.newaxis], probs, np.nan),
            "actions": tf.where(known, actions, -1),
            "best_actions": tf.where(known, best, -1),
        }

    rng = np.random.default_rng(0)
    inputs = {
        "states": tf.constant(rng.integers(num_states, size=_CHECKED), tf.int32),
        "seed": tf.constant(1),
    }
    return _export("export_policy", model, act, inputs, path, overwrite)


def _check_kind(function: str, model: Any, kind: type) -> None:
    if not isinstance(model, kind):
        raise ValueError(
            f"{function}: `model` must be a {kind.__name__}, found "
            f"{type(model).__name__}."
        )


def _export(
    function: str,
    model: keras.Model,
    answer: Any,
    inputs: dict[str, tf.Tensor],
    path: str | os.PathLike[str],
    overwrite: bool,
) -> pathlib.Path:
    """Writes one `tf.function` of a model; its outputs for `inputs` must survive."""
    name = answer.__name__
    signature = answer.get_concrete_function()
    module = tf.Module()
    # The weights that the function reads, and nothing else of the model.
    module.variables_read = list(signature.graph.variables)
    read = {id(variable) for variable in module.variables_read}
    weights = [w for w in model.weights if id(w.value) in read]
    check_weights(function, weights, tables=True)

    def check(written: pathlib.Path) -> None:
        loaded = tf.saved_model.load(str(written)).signatures
        expected, found = answer(*inputs.values()), loaded[name](**inputs)
        for key, value in expected.items():
            if value.dtype == tf.string:
                # Of labels, which are compared.
                continue
            error = np.max(np.abs(found[key].numpy() - value.numpy()), initial=0)
            if not error <= _TOLERANCE:
                raise ValueError(
                    f"{function}: the SavedModel's `{key}` of `{name}` differ from the "
                    f"model's by up to {error:.3g}; nothing was written."
                )

    signatures, requests = {name: signature}, {name: inputs}
    return write_saved_model(module, signatures, path, check, requests, overwrite)
