"""Counts n-grams and trains the model of a plan."""

from __future__ import annotations

import math
import pathlib
import sys
import time
from typing import Any, NamedTuple

import keras
import numpy as np
import tqdm

from rlm_tf import distribution, evaluation
from rlm_tf.averaging import TwoTailedAveraging, WeightAveraging
from rlm_tf.command_line.wording import number_of
from rlm_tf.commands.training import architectures, pairs
from rlm_tf.commands.training.plan import Plan
from rlm_tf.data import Corpus, contiguous_batches
from rlm_tf.layers import LSTMCell
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RegularizedLanguageModel,
    TransformerLanguageModel,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.training import (
    DivergenceGuard,
    ExactResume,
    LearningRateHalving,
    MetricsLog,
    TimeLimit,
    free_graphs_on_exit,
    interruptible,
    read_metrics_log,
)

_CHECKPOINT_SECONDS = 60.0
_HALVINGS = 3
# Validation tokens that are looked at while training.
_MOST_LOOKED_AT = 100_000
_PROBE_STEPS = 4
_SECONDS_BETWEEN_LINES = 5.0


class Fitted(NamedTuple):
    """A trained model.

    Attributes:
        model: The model, wrapped if it matched an induced one.
        averages: Holds its best weights.
        epochs: Passes over the text, the last of which may be a part.
        seconds: That training took.
        earlier: Those of them that were before this process.
        why: Why it ended.
        curve: One dictionary an epoch.
    """

    model: keras.Model
    averages: WeightAveraging
    epochs: float
    seconds: float
    earlier: float
    why: str
    curve: list[dict[str, Any]]


def fit_n_gram(
    corpus: Corpus, counted: np.ndarray | None, order: int
) -> tuple[KneserNey, float]:
    """Returns the n-gram model of all text that may be counted, and its seconds.

    With a floor that is tuned on the validation text, all tokens can be scored.
    """
    began = time.perf_counter()
    text = corpus.train if counted is None else np.concatenate([corpus.train, counted])
    model = KneserNey(order).fit(text, len(corpus.vocabulary))
    floor = evaluation.tune_floor(model, corpus.valid, prefix=corpus.vocabulary.eos_id)
    return model.with_floor(floor), time.perf_counter() - began


def build_model(
    plan: Plan, corpus: Corpus, counted: KneserNey | None, strategy: str = "default"
) -> keras.Model:
    """Returns the compiled model of a plan.

    Args:
        plan: The plan.
        corpus: For the restricted model of induced model matching.
        counted: The n-gram model of more text, which is matched then.
        strategy: Of tf.distribute.
    """
    keras.utils.set_random_seed(plan.seed)
    # Rates and norms refer to losses summed over a window.
    options: dict[str, Any] = {
        "clip_norm": plan.clip_norm,
        "loss_scale": float(plan.window),
    }
    with distribution.strategy(strategy).scope():
        model = _network(plan, {**options, "l2": plan.l2})
        if plan.imm:
            restricted = counted or KneserNey(plan.restricted_order).fit(
                corpus.train, plan.vocabulary_size
            )
            model = InducedModelMatching(
                model,
                restricted,
                InBatchContexts(),
                plan.coefficient,
                **options,
            )
        if plan.bmi:
            model = pairs.with_bmi(plan, corpus, model, options)
        model.compile(_optimizer(plan))
    return model


def _optimizer(plan: Plan) -> keras.optimizers.Optimizer:
    beta_1 = architectures.OF[plan.architecture].beta_1
    options: dict[str, Any] = {"beta_1": beta_1, "epsilon": 1e-8}
    if plan.weight_decay:
        options["weight_decay"] = plan.weight_decay
        return keras.optimizers.AdamW(plan.learning_rate, **options)
    return keras.optimizers.Adam(plan.learning_rate, **options)


def _network(plan: Plan, options: dict[str, Any]) -> keras.Model:
    if plan.architecture == "transformer":
        dropout, outputs = plan.dropouts
        return TransformerLanguageModel(
            plan.vocabulary_size,
            plan.width,
            plan.num_layers,
            architectures.NUM_HEADS,
            architectures.CONTEXT_LENGTH,
            dropout=dropout,
            output_dropout=outputs,
            seed=plan.seed,
            **options,
        )
    inputs, between, states, outputs = plan.dropouts
    return RegularizedLanguageModel(
        plan.vocabulary_size,
        LSTMCell(plan.width, cap_input_gate=True, state_dropout=states, seed=plan.seed),
        plan.num_layers,
        input_dropout=inputs,
        layer_dropout=between,
        output_dropout=outputs,
        seed=plan.seed,
        **options,
    )


def step_seconds(plan: Plan, corpus: Corpus, counted: KneserNey | None) -> float:
    """Returns how long a training step takes, with a model that is thrown away."""
    tokens = corpus.train[: plan.batch_size * plan.window * _PROBE_STEPS]
    batches = pairs.batches_of(plan, corpus, tokens)
    with free_graphs_on_exit():
        model = build_model(plan, corpus, counted)
        data = batches.dataset
        model.fit(data, epochs=1, shuffle=False, verbose=0)
        times = []
        for _ in range(2):
            began = time.perf_counter()
            model.fit(data, epochs=1, shuffle=False, verbose=0)
            times.append((time.perf_counter() - began) / batches.steps)
    return min(times)


def fit(
    plan: Plan,
    corpus: Corpus,
    counted: KneserNey | None,
    folder: pathlib.Path,
    *,
    strategy: str = "default",
    resume: bool = True,
) -> Fitted:
    """Trains the model of a plan; a killed run goes on from its last checkpoint."""
    eos = corpus.vocabulary.eos_id
    model = build_model(plan, corpus, counted, strategy)
    data = pairs.batches_of(plan, corpus, corpus.train)
    valid = contiguous_batches(
        corpus.valid[:_MOST_LOOKED_AT], plan.batch_size, plan.window, prefix=eos
    )
    averages = TwoTailedAveraging(
        valid.dataset(), monitor="nll", every_steps=plan.every_steps
    )
    limit = TimeLimit(
        plan.seconds or 1e9,
        # Before the first evaluation there are no weights to keep.
        may_stop=lambda: plan.every_steps is None or bool(averages.evaluations),
    )
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    halving = LearningRateHalving(
        "averaged_loss",
        max_decays=_HALVINGS,
        reload_best=False,
        patience=plan.patience,
    )
    progress = Progress(plan, averages, limit)
    saver = ExactResume(
        folder / "checkpoints",
        data,
        [
            averages,
            *pairs.held_out(plan, corpus),
            log,
            halving,
            DivergenceGuard(recover=True, monitor="averaged_loss", also=[averages]),
            limit,
            *pairs.switch_of(plan),
        ],
        every_seconds=_CHECKPOINT_SECONDS,
        resume=resume,
    )
    began = time.monotonic()
    with interruptible(saver):
        model.fit(
            data.dataset,
            epochs=plan.epochs,
            shuffle=False,
            callbacks=[saver, progress],
            verbose=0,
        )
    earlier = max(limit.spent - (time.monotonic() - began), 0.0)
    curve = read_metrics_log(folder / "metrics.jsonl")
    steps = int(np.asarray(model.optimizer.iterations))
    epochs = min(steps / data.steps, len(curve))
    # Of a huge text a small part.
    epochs = round(epochs, 1) if epochs >= 1 else float(f"{epochs:.2g}")
    why = "all epochs are done"
    if limit.stopped:
        why = "the time is over"
    elif len(curve) < plan.epochs:
        why = (
            f"validation has not improved for {number_of('epoch', plan.patience)}, "
            f"after {number_of('halving', _HALVINGS)} of the learning rate"
        )
    return Fitted(model, averages, epochs, limit.spent, earlier, why, curve)


class Progress(keras.callbacks.Callback):
    """Prints a line an evaluation, of frequent ones the latest every few seconds.

    On a terminal a bar shows the steps between.
    """

    def __init__(self, plan: Plan, averages: WeightAveraging, limit: TimeLimit) -> None:
        super().__init__()
        self._plan = plan
        self._averages = averages
        self._limit = limit
        self._shown = 0
        self._time_shown = -math.inf
        self._epoch = 0
        self._bar: tqdm.tqdm | None = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._bar is None:
            # What is restored by now was shown before.
            self._shown = len(self._averages.evaluations)
        self._epoch = epoch
        self._bar = tqdm.tqdm(
            total=self.params.get("steps"),
            desc=f"epoch {epoch + 1}",
            unit="step",
            leave=False,
            disable=None,
        )

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(" ".join(self._left()), refresh=False)
            self._bar.update(batch - self._bar.n)
        self._show()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._bar is not None:
            self._bar.close()
        self._show()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._time_shown = -math.inf
        self._show()

    def _left(self) -> list[str]:
        if self._plan.seconds is None:
            return []
        left = max(self._plan.seconds - self._limit.spent, 0.0)
        return [f"{left / 60:.1f} min left"]

    def _show(self) -> None:
        found = self._averages.evaluations
        due = time.monotonic() - self._time_shown >= _SECONDS_BETWEEN_LINES
        if len(found) > self._shown and due:
            row = found[-1]
            of = "" if self._plan.seconds else f" of {self._plan.epochs:,}"
            shown = [f"epoch {self._epoch + 1}{of}, step {row['step']:,}:"]
            shown.append(f"validation {np.exp(row['loss']):.2f}")
            shown.append(f"(best {np.exp(self._averages.best_loss):.2f})")
            shown += self._left()
            tqdm.tqdm.write("  ".join(shown), file=sys.stdout)
            sys.stdout.flush()
            self._shown, self._time_shown = len(found), time.monotonic()
