"""A few steps of a preset, and the hours that the whole of it would take here."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, NamedTuple

import keras
import numpy as np
import tqdm

from experiments.imm_lm.config import RunConfig
from experiments.imm_lm.training import build_model
from experiments.kit import machine
from experiments.kit.run_settings import training_text
from rlm_tf.data import ContiguousBatches, Corpus, contiguous_batches
from rlm_tf.restricted import KneserNey
from rlm_tf.training import released_graphs

# One step of a cheap kind would be timed badly.
_SECONDS = 30.0


class Inputs(NamedTuple):
    """What every kind of step needs."""

    corpus: Corpus
    text: np.ndarray
    batches: ContiguousBatches
    restricted: KneserNey


def prepare(config: RunConfig, corpus: Corpus, steps: int) -> Inputs:
    """Cuts the text of a preset into batches and counts its n-grams.

    Raises:
        ValueError: If there is too little text for so many timed steps and one more.
    """
    text = training_text(corpus, config.fraction, config.batch_size)
    eos = corpus.vocabulary.eos_id
    batches = contiguous_batches(text, config.batch_size, config.window, prefix=eos)
    if steps >= batches.steps:
        raise ValueError(
            f"--project_steps must be below the {batches.steps} steps of an epoch, "
            f"found {steps}."
        )
    restricted = KneserNey(config.restricted_order).fit(text, len(corpus.vocabulary))
    return Inputs(corpus, text, batches, restricted)


def project(config: RunConfig, inputs: Inputs, steps: int) -> dict[str, Any]:
    """Times steps of a preset and of its parts, and multiplies.

    Sampled windows are run one after the other (crosstalk gradient), so a step with k
    samples costs the step with one and k - 1 times what a second one adds. One and two
    are timed; at width 1500 a step with ten would take longer than everything else here
    together. The hours are an upper bound: IMM is taken to act from the first epoch,
    where a start rule would begin later.

    Args:
        config: The settings, of the arm `imm-sampled`.
        inputs: What `prepare` returned.
        steps: Least number of steps timed of each kind, after one that is not. Of
            cheap kinds more are timed, for half a minute.

    Returns:
        Seconds a step of each kind, and the hours of an epoch and of all epochs.
    """
    corpus, text, batches, restricted = inputs
    size = len(corpus.vocabulary)
    seconds = {}
    for kind, changes in {
        "plain": {"arm": "none"},
        "one sample": {"arm": "imm-sampled", "k": 1, "every": 1},
        "two samples": {"arm": "imm-sampled", "k": 2, "every": 1},
        "in-batch": {"arm": "imm-in-batch"},
    }.items():
        with released_graphs():
            part = dataclasses.replace(config, **changes)  # type: ignore[arg-type]
            model = build_model(part, size, corpus, text, restricted)
            model.compile(keras.optimizers.SGD(config.learning_rate))
            times: list[float] = []
            for step in tqdm.trange(
                batches.steps, desc=kind, leave=False, disable=None
            ):
                if step > steps and sum(times) > _SECONDS:
                    break
                data = batches.dataset(start_step=step).take(1)
                began = time.perf_counter()
                model.fit(data, shuffle=False, verbose=0)
                times.append(time.perf_counter() - began)
            seconds[kind] = float(np.median(times[1:]))
            del model
        print(f"{kind}: {seconds[kind]:.2f} s/step", flush=True)
    per_epoch = hours_per_epoch(seconds, batches.steps, config.k, config.every)
    return {
        "name": "projection",
        "config": dataclasses.asdict(config),
        "steps_per_epoch": batches.steps,
        "seconds_per_step": seconds,
        "hours_per_epoch": per_epoch,
        "hours_of_all_epochs": {k: v * config.epochs for k, v in per_epoch.items()},
        "commit": machine.commit(),
    }


def hours_per_epoch(
    seconds: dict[str, float], steps: int, k: int, every: int
) -> dict[str, float]:
    """Returns the hours of an epoch: plain, in-batch, and k samples at times.

    Args:
        seconds: Of a step: "plain", "one sample", "two samples", "in-batch".
        steps: Steps of an epoch.
        k: Samples of every `every`-th step; the others have one.
        every: See `k`.
    """
    another = seconds["two samples"] - seconds["one sample"]
    sampled = seconds["one sample"] + another * (k - 1) / every
    each = {
        "plain": seconds["plain"],
        "in-batch": seconds["in-batch"],
        f"sampled, k={k} at every {every}th step": sampled,
    }
    return {kind: value * steps / 3600 for kind, value in each.items()}
