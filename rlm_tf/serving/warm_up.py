"""Requests with which TensorFlow Serving warms an export up before it answers.

They are a TFRecord file of `tensorflow.serving.PredictionLog` messages. The classes of
these messages come with TensorFlow Serving's own package, which nothing else needs: the
few fields are written in protocol buffers' wire format.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping

import tensorflow as tf

# The only place where TensorFlow Serving looks.
WARM_UP_FILE = pathlib.PurePath("assets.extra", "tf_serving_warmup_requests")
# Who wrote a record: its `log_metadata.request_origin`.
_ORIGIN = b"rlm_tf.serving"

# Numbers of fields: PredictionLog.log_metadata, .predict_log; PredictLog.request;
# LogMetadata.request_origin; PredictRequest.model_spec, .inputs; ModelSpec.name,
# .signature_name; and of the entries of a map.
_LOG_METADATA, _PREDICT_LOG = 1, 6
_REQUEST = 1
_REQUEST_ORIGIN = 6
_MODEL_SPEC, _INPUTS = 1, 2
_NAME, _SIGNATURE_NAME = 1, 3
_KEY, _VALUE = 1, 2


def write_warm_up(
    directory: pathlib.Path,
    name: str,
    requests: Iterable[tuple[str, Mapping[str, tf.Tensor]]],
) -> None:
    """Writes requests, one a record, into a SavedModel's `assets.extra`.

    Args:
        directory: Of the SavedModel.
        name: Of the model, as it is served.
        requests: Pairs of a signature's name and its inputs.
    """
    file = directory / WARM_UP_FILE
    file.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as writer:
        for signature, inputs in requests:
            writer.write(_prediction_log(name, signature, inputs))


def is_own_warm_up(file: pathlib.Path) -> bool:
    """Whether a file holds requests that `write_warm_up` wrote, and nothing else.

    An empty one is a person's, who wants no warming up.
    """
    own = _field(_LOG_METADATA, _field(_REQUEST_ORIGIN, _ORIGIN))
    try:
        records = list(tf.data.TFRecordDataset(str(file)).as_numpy_iterator())
    except tf.errors.OpError:
        return False
    return bool(records) and all(record.startswith(own) for record in records)


def _prediction_log(
    name: str, signature: str, inputs: Mapping[str, tf.Tensor]
) -> bytes:
    spec = _field(_NAME, name.encode()) + _field(_SIGNATURE_NAME, signature.encode())
    request = _field(_MODEL_SPEC, spec)
    for key, value in sorted(inputs.items()):
        proto = tf.make_tensor_proto(value).SerializeToString()
        request += _field(_INPUTS, _field(_KEY, key.encode()) + _field(_VALUE, proto))
    return _field(_LOG_METADATA, _field(_REQUEST_ORIGIN, _ORIGIN)) + _field(
        _PREDICT_LOG, _field(_REQUEST, request)
    )


def _field(number: int, content: bytes) -> bytes:
    """Returns a field of bytes: its number and kind, its length, and the content."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Returns an integer in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])
