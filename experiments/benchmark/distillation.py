"""Steps of teachers and students, beside plain ones and Keras' `Distiller`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.benchmark.preset import Preset
from experiments.benchmark.stream import Stream
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit.timing import Step, train_function_step

_CLASSES, _NEGATIVES, _K = 100, 256, 64
_RATE = 0.01
_PLACE = "stage3"
# Of losses that torchdistill has, too: which see logits, which maps.
_T, _LOGIT_LOSSES = 4.0, ("kd", "standardised_kd", "dist")
_MAP_LOSSES = ("attention", "activation_boundary")
# Learn nothing themselves and remember nothing.
_PLAIN = (
    *("at", "sp", "rkd", "pkt", "nst", "dkd", "dist"),
    *("reverse_kd", "generalised_jsd", "standardised_kd"),
)
# What CRD remembers of CIFAR-100, and compares an example with.
_PUBLISHED = (50_000, 16_384)


def measure_images(preset: Preset, rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times a student-oriented teacher, and every way to learn from one."""
    timings = Timings()
    for seed in seeds:
        batches = _batches(preset, seed)
        steps: dict[str, Step] = {
            "plain": _teacher_step(preset, batches, seed, plain=True),
            "soteacher": _teacher_step(preset, batches, seed, plain=False),
        }
        for name in ("kd", *preset.image_methods):
            steps[name] = _student_step(preset, batches, seed, name)
        for name in ("kd", "at"):
            steps[f"keras-{name}"] = _keras_step(preset, batches, seed, name)
            steps[f"ours-{name}"] = _ours_beside_keras(preset, batches, seed, name)
        timings.run(steps, rounds)
    size = f"{preset.image_size} x {preset.image_size}, batch {preset.image_batch}"
    depth = preset.image_depth
    lines = [
        Line(
            f"student-oriented teacher's step, WRN-{depth}-2, {size}",
            timings.text("soteacher"),
            f"labels alone: {timings.text('plain')}",
            timings.ratio("soteacher", "plain"),
            "at most 1.1",
        )
    ]
    kd = f"kd: {timings.text('kd')}"
    titles = {
        "crd": f"crd, {_NEGATIVES} negatives of {2 * preset.image_batch} examples",
        "crd_published": "crd, {1:,} negatives of {0:,} examples".format(*_PUBLISHED),
        "ab": "ab, its first stage",
    }
    lines += [
        Line(
            f"student's step, WRN-{depth}-1, "
            f"{titles.get(name, name.replace('_', ' '))}",
            timings.text(name),
            kd,
            timings.ratio(name, "kd"),
            "at most 1.3" if name in _PLAIN else "",
        )
        for name in preset.image_methods
    ]
    for name, what, target in (
        ("kd", "KD", "at most 1.05"),
        ("at", "attention of one layer", "at most 0.75"),
    ):
        lines.append(
            Line(
                f"student's step, {what}",
                timings.text(f"ours-{name}"),
                f"Keras' Distiller: {timings.text(f'keras-{name}')}",
                timings.ratio(f"ours-{name}", f"keras-{name}"),
                target,
            )
        )
    return Row(lines, {"times": timings.numbers()})


def measure_store(preset: Preset, rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times looking up and adding a batch of predictions, in memory and in files."""
    import tensorflow as tf

    from rlm_tf.training import TemporalEnsemble

    timings, (number, classes, batch) = Timings(), preset.store_size
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            ids = tf.constant(rng.choice(number, batch, replace=False))
            probs = tf.constant(rng.dirichlet(np.ones(classes), batch), tf.float32)
            steps: dict[str, Step] = {}
            for name, path in (("memory", None), ("files", f"{folder}/{seed}")):
                store = TemporalEnsemble(number, classes, path=path)
                store.update(ids, probs)
                store.end_epoch()

                steps[name] = _store_step(store, ids, probs)
            timings.run(steps, rounds)
    what = f"means of {number:,} x {classes}, {batch} ids read and added"
    lines = [
        Line(f"{what}, {title}", timings.text(name), target="at most 2 ms")
        for name, title in (("memory", "in memory"), ("files", "in mapped files"))
    ]
    return Row(lines, {"times": timings.numbers()})


def measure_language(
    preset: Preset,
    load: Callable[[], Stream],
    rounds: int,
    seeds: tuple[int, ...],
) -> Row:
    """Times learning from stored predictions beside a plain step of the same model."""
    from rlm_tf.data import PlacedBatches, contiguous_batches
    from rlm_tf.distillation import KD
    from rlm_tf.models import LanguageDistillation, TeacherPredictions

    timings, stream = Timings(), load()
    width = preset.widths[0]
    tokens = stream.tokens[: preset.batch_size * preset.window * 4]
    batches = contiguous_batches(tokens, preset.batch_size, preset.window, prefix=0)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            teacher = _language_model(preset, stream, width, 100 + seed)
            stored = TeacherPredictions.write(
                teacher, batches, f"{folder}/{seed}", k=min(_K, stream.vocabulary_size)
            )
            plain = [*batches.dataset()]
            placed = [*PlacedBatches(batches).dataset()]
            steps: dict[str, Step] = {}
            for name, source, data in (
                ("plain", None, plain),
                ("stored", stored, placed),
                ("living", teacher, plain),
            ):
                model = _language_model(preset, stream, width, seed)
                if source is not None:
                    model = LanguageDistillation(source, model, [(KD(1.0), 0.5)])
                model.compile("sgd")
                steps[name] = train_function_step(model, data)
            timings.run(steps, rounds)
    base = f"without a teacher: {timings.text('plain')}"
    lines = [
        Line(
            f"language model's step, width {width}, {what}",
            timings.text(name),
            base,
            timings.ratio(name, "plain"),
            target,
        )
        for name, what, target in (
            ("stored", "KD from stored predictions", "at most 1.15"),
            ("living", "KD from a teacher of its size that runs along", ""),
        )
    ]
    return Row(lines, {"times": timings.numbers(), "corpus": stream.name})


def measure_losses(preset: Preset, rounds: int, seeds: tuple[int, ...]) -> Row:
    """Times losses and their gradients, compiled, beside torchdistill's."""
    import torch

    from experiments.benchmark.torch_losses import torch_losses

    timings = Timings()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        batch, size = preset.image_batch, preset.image_size // 4
        shapes = dict.fromkeys(_MAP_LOSSES, (batch, size, size, 64))
        steps: dict[str, Step] = {}
        for name, theirs in torch_losses(_T).items():
            shape = shapes.get(name, (batch, _CLASSES))
            teacher, student = (
                rng.normal(size=shape).astype(np.float32) for _ in range(2)
            )
            steps[name] = _loss_step(name, teacher, student)
            # Its maps have channels in front.
            tensors = (
                torch.tensor(x.transpose(0, 3, 1, 2) if len(shape) == 4 else x)
                for x in (teacher, student)
            )
            steps[f"theirs-{name}"] = _torch_loss_step(theirs, *tensors)
        timings.run(steps, rounds)
    lines = [
        Line(
            f"loss and gradient, batch {preset.image_batch}, {name.replace('_', ' ')}",
            timings.text(name),
            f"torchdistill: {timings.text(f'theirs-{name}')}",
            timings.ratio(name, f"theirs-{name}"),
        )
        for name in torch_losses(_T)
    ]
    return Row(lines, {"times": timings.numbers()})


def _loss_step(name: str, teacher: Any, student: Any) -> Step:
    import tensorflow as tf

    from rlm_tf.objectives import distillation, feature_distillation, feature_relations

    options: dict[str, Any] = {"temperature": _T} if name in _LOGIT_LOSSES else {}
    if name == "dist":
        options |= {"beta": 1.0, "gamma": 2.0}
    modules = (distillation, feature_distillation, feature_relations)
    loss = next(getattr(m, name) for m in modules if hasattr(m, name))
    t, s = tf.constant(teacher), tf.Variable(student)

    @tf.function(jit_compile=True)
    def once() -> Any:
        with tf.GradientTape() as tape:
            found = tf.reduce_mean(loss(t, s, **options).loss)
        return found, tape.gradient(found, s)

    return lambda: float(once()[0])


def _torch_loss_step(loss: Any, teacher: Any, student: Any) -> Step:
    import torch

    student = student.requires_grad_()

    def once() -> float:
        found = loss(teacher, student)
        torch.autograd.grad(found, student)
        return float(found.detach())

    return once


def _store_step(store: Any, ids: Any, probs: Any) -> Step:
    import tensorflow as tf

    @tf.function
    def once() -> Any:
        means, _ = store.targets(ids)
        store.update(ids, probs)
        return tf.reduce_sum(means)

    return lambda: float(once())


def _batches(preset: Preset, seed: int) -> list[Any]:
    """Returns batches ((x, ids), labels)."""
    rng = np.random.default_rng(seed)
    size = preset.image_size
    found = []
    for number in range(2):
        x = rng.normal(size=[preset.image_batch, size, size, 3]).astype(np.float32)
        ids = np.arange(preset.image_batch) + number * preset.image_batch
        labels = rng.integers(0, _CLASSES, preset.image_batch)
        found.append(((x, ids), labels))
    return found


def _network(preset: Preset, widen: int, seed: int) -> Any:
    import keras

    from rlm_tf.models.image import wide_resnet

    keras.utils.set_random_seed(seed)
    shape = (preset.image_size, preset.image_size, 3)
    return wide_resnet(preset.image_depth, widen, _CLASSES, input_shape=shape)


def _sgd() -> Any:
    import keras

    return keras.optimizers.SGD(_RATE, momentum=0.9)


def _teacher_step(preset: Preset, batches: list[Any], seed: int, plain: bool) -> Step:
    from rlm_tf.models import StudentOrientedTeacher
    from rlm_tf.training import TemporalEnsemble

    options: dict[str, Any] = {"lipschitz": 0.0, "consistency": 0.0}
    if not plain:
        number = 2 * preset.image_batch
        options = {"ensemble": TemporalEnsemble(number, _CLASSES)}
    model = StudentOrientedTeacher(_network(preset, 2, seed), epochs=1, **options)
    model.compile(_sgd())
    return train_function_step(model, batches)


def _student_step(preset: Preset, batches: list[Any], seed: int, name: str) -> Step:
    from rlm_tf.models import Distillation

    labels = np.concatenate([own for _, own in batches])
    losses, student_weight = _losses(name, labels, seed)
    model = Distillation(
        _network(preset, 2, seed),
        _network(preset, 1, 10 + seed),
        losses,
        student_weight=student_weight,
    )
    model.compile(_sgd())
    return train_function_step(model, batches)


def _losses(name: str, labels: np.ndarray, seed: int) -> tuple[Any, float]:
    """Returns strategies with their weights, and that of the labels."""
    from rlm_tf.distillation import GeneralisedJSD, ReverseKD, StandardisedKD, recipe

    others = {
        "reverse_kd": ReverseKD(_T),
        "generalised_jsd": GeneralisedJSD(0.5, _T),
        "standardised_kd": StandardisedKD(_T),
    }
    if name in others:
        return [(others[name], 0.5)], 0.5
    negatives = _NEGATIVES
    if name == "crd_published":
        number, negatives = _PUBLISHED
        more = np.random.default_rng(seed).integers(0, _CLASSES, number - len(labels))
        name, labels = "crd", np.concatenate([labels, more])
    found = recipe(name, labels=labels, negatives=negatives)
    if found.first_losses:
        # AB's own stage, before that of KD.
        return found.first_losses, 0.0
    return found.losses, found.student_weight


def _strategy(name: str) -> Any:
    from rlm_tf.distillation import KD, AttentionTransfer

    return KD(4.0) if name == "kd" else AttentionTransfer(_PLACE, _PLACE)


def _ours_beside_keras(
    preset: Preset, batches: list[Any], seed: int, name: str
) -> Step:
    from rlm_tf.models import Distillation

    model = Distillation(
        _network(preset, 2, seed),
        _network(preset, 1, 10 + seed),
        [(_strategy(name), 0.5)],
        student_weight=0.5,
    )
    model.compile(_sgd())
    return train_function_step(model, [(x, labels) for (x, _), labels in batches])


def _keras_step(preset: Preset, batches: list[Any], seed: int, name: str) -> Step:
    import keras

    model = keras.distillation.Distiller(
        _network(preset, 2, seed),
        _network(preset, 1, 10 + seed),
        [_strategy(name)],
        student_loss_weight=0.5,
    )
    model.compile(
        _sgd(),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    plain = [(x, labels) for (x, _), labels in batches]
    model.make_train_function()
    turn = iter(range(10**9))

    def step() -> float:
        batch = plain[next(turn) % len(plain)]
        return float(model.train_function(iter([batch]))["total_loss"])

    return step


def _language_model(preset: Preset, stream: Stream, width: int, seed: int) -> Any:
    from rlm_tf.models import RecurrentLanguageModel

    return RecurrentLanguageModel(
        stream.vocabulary_size, width, 2, dropout=0.5, seed=seed, loss_scale=35.0
    )
