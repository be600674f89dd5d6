"""Requests that warm a server up, read with descriptors of their own."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2  # noqa: F401

from rlm_tf.layers import DiscretePolicy
from rlm_tf.models import ReinforceIMM
from rlm_tf.serving import export_policy

# The part of TensorFlow Serving's messages that matters: name, number and type of each
# field, as in `tensorflow_serving/apis/`.
_MESSAGES = {
    "ModelSpec": [("name", 1, "string"), ("signature_name", 3, "string")],
    "LogMetadata": [("model_spec", 1, "ModelSpec"), ("request_origin", 6, "string")],
    "PredictRequest": [("model_spec", 1, "ModelSpec"), ("inputs", 2, "map")],
    "PredictResponse": [],
    "PredictLog": [
        ("request", 1, "PredictRequest"),
        ("response", 2, "PredictResponse"),
    ],
    "PredictionLog": [
        ("log_metadata", 1, "LogMetadata"),
        ("predict_log", 6, "PredictLog"),
    ],
}
_FIELD = descriptor_pb2.FieldDescriptorProto


@pytest.fixture(scope="module")
def prediction_log():
    """The class of `PredictionLog` messages."""
    file = descriptor_pb2.FileDescriptorProto(
        name="warm_up_test.proto",
        package="warm_up_test",
        syntax="proto3",
        dependency=["tensorflow/core/framework/tensor.proto"],
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            added = message.field.add(
                name=field, number=number, label=_FIELD.LABEL_OPTIONAL
            )
            if kind == "string":
                added.type = _FIELD.TYPE_STRING
                continue
            added.type = _FIELD.TYPE_MESSAGE
            added.type_name = f".warm_up_test.{kind}"
            if kind == "map":
                added.label = _FIELD.LABEL_REPEATED
                added.type_name = f".warm_up_test.{name}.InputsEntry"
                entry = message.nested_type.add(name="InputsEntry")
                entry.options.map_entry = True
                entry.field.add(
                    name="key",
                    number=1,
                    type=_FIELD.TYPE_STRING,
                    label=_FIELD.LABEL_OPTIONAL,
                )
                entry.field.add(
                    name="value",
                    number=2,
                    type=_FIELD.TYPE_MESSAGE,
                    type_name=".tensorflow.TensorProto",
                    label=_FIELD.LABEL_OPTIONAL,
                )
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("warm_up_test.PredictionLog")
    return message_factory.GetMessageClass(found)


def requests_in(path, prediction_log):
    """Pairs of a signature and its inputs, of a model of some name."""
    file = path / "assets.extra" / "tf_serving_warmup_requests"
    for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
        log = prediction_log.FromString(record)
        # Nothing that these classes do not know.
        assert log.ByteSize() == len(record)
        assert log.SerializeToString(deterministic=True) == record
        request = log.predict_log.request
        inputs = {
            name: tf.constant(tf.make_ndarray(value))
            for name, value in request.inputs.items()
        }
        yield request.model_spec.name, request.model_spec.signature_name, inputs


@pytest.mark.landing
def test_every_signature_of_a_language_model_is_warmed_up(path, loaded, prediction_log):
    found = list(requests_in(path, prediction_log))
    assert [name for name, *_ in found] == ["there"] * 4
    assert [signature for _, signature, _ in found] == [
        "score",
        "next_token",
        "generate",
        "generate_default",
    ]
    for _, signature, inputs in found:
        loaded.signatures[signature](**inputs)
    lengths = loaded.signatures["score"](**found[0][2])["lengths"]
    assert lengths.numpy().tolist() == [9]


def test_a_policy_is_warmed_up_under_its_name(tmp_path, prediction_log):
    model = ReinforceIMM(DiscretePolicy(3, 4))
    path = export_policy(model, tmp_path / "grid" / "2", num_states=3)
    ((name, signature, inputs),) = requests_in(path, prediction_log)
    assert (name, signature) == ("grid", "act")
    act = tf.saved_model.load(str(path)).signatures["act"]
    assert np.all(act(**inputs)["actions"] >= 0)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"states must have shape \[N\], found"
    ):
        act(states=tf.constant(1), seed=tf.constant(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="seed must be a scalar"):
        act(states=tf.constant([1]), seed=tf.constant([1]))
