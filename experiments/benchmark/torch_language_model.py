"""One training step of a language model in PyTorch, as its documentation writes one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from experiments.benchmark.preset import Preset
from experiments.kit.machine import cores
from experiments.kit.timing import Step

# Maps embedded tokens `[T, B, width]` and states to outputs and the next states.
Recurrent = Callable[[torch.Tensor, list[Any]], tuple[torch.Tensor, list[Any]]]


def training_step(
    preset: Preset,
    width: int,
    data: list[Any],
    seed: int,
    make: Callable[[], tuple[torch.nn.Module, list[Any], Recurrent]],
    learning_rate: float,
    clip_norm: float,
    *,
    compiled: bool = False,
) -> Step:
    """Returns a step of embedding, recurrence and softmax under SGD with clipping.

    Args:
        preset: For the size of the vocabulary.
        width: Of embeddings and of the recurrence's outputs.
        data: Batches of inputs and targets, `[B, T]` each, read in turn.
        seed: Of the initial weights.
        make: Returns the module of the recurrence, its zero states, and what runs it.
        learning_rate: Of SGD.
        clip_norm: Limit of the gradient's global norm.
        compiled: Whether `torch.compile` makes the loss and its gradient.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(cores())
    embedding = torch.nn.Embedding(preset.vocabulary_size, width)
    recurrence, states, run = make()
    output = torch.nn.Linear(width, preset.vocabulary_size)
    modules = torch.nn.ModuleList([embedding, recurrence, output])
    optimizer = torch.optim.SGD(modules.parameters(), lr=learning_rate)
    # Time first, as PyTorch recommends for speed.
    batches = itertools.cycle(
        [(torch.tensor(x.T.copy()), torch.tensor(y.T.copy())) for x, y in data]
    )

    def loss_of(tokens: Any, targets: Any, states: list[Any]) -> Any:
        hidden, states = run(embedding(tokens), states)
        loss = torch.nn.functional.cross_entropy(
            output(hidden).flatten(0, 1), targets.flatten()
        )
        return loss, states

    forward = torch.compile(loss_of) if compiled else loss_of

    def step() -> float:
        nonlocal states
        optimizer.zero_grad()
        loss, states = forward(*next(batches), states)
        states = [tuple(s.detach() for s in state) for state in states]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(modules.parameters(), clip_norm)
        optimizer.step()
        return loss.item()

    return step
