"""One training step of AWD-LSTM-MoS in PyTorch, as its authors' code takes one.

Weight drop is a mask on the recurrent matrix that a call of `torch.nn.LSTM` is given,
dropout is locked over time, words of the embedding are dropped whole, and the mixture
is computed by its softmaxes, 1e-8 added to every probability.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.func import functional_call
from torch.nn import functional

from experiments.kit.machine import cores
from experiments.kit.timing import Step


class AWD(torch.nn.Module):
    """AWD-LSTM with a mixture of softmaxes.

    Args:
        vocabulary_size: V.
        embedding_width: E.
        units: Widths of the layers.
        components: K.
        rates: `word`, `input`, `layer`, `output`, `projection`, `weight`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_width: int,
        units: tuple[int, ...],
        components: int,
        rates: dict[str, float],
    ) -> None:
        super().__init__()
        self.rates = rates
        self.components = components
        self.units = units
        self.embedding = torch.nn.Embedding(vocabulary_size, embedding_width)
        torch.nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        sizes = [embedding_width, *units]
        self.layers = torch.nn.ModuleList(
            torch.nn.LSTM(before, after) for before, after in itertools.pairwise(sizes)
        )
        self.latent = torch.nn.Linear(units[-1], components * embedding_width)
        self.prior = torch.nn.Linear(units[-1], components, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(vocabulary_size))

    def forward(
        self, tokens: torch.Tensor, states: list[Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[Any]]:
        """Maps tokens `[T, B]` to log-probabilities `[T B, V]`, outputs and states."""
        rates = self.rates
        table = self.embedding.weight
        kept = torch.rand(len(table), 1) >= rates["word"]
        hidden = functional.embedding(tokens, table * kept / (1 - rates["word"]))
        hidden = _locked(hidden, rates["input"])
        found = []
        for number, layer in enumerate(self.layers):
            weights: dict[str, torch.Tensor] = dict(layer.named_parameters())
            weights["weight_hh_l0"] = functional.dropout(
                weights["weight_hh_l0"], rates["weight"]
            )
            hidden, state = functional_call(layer, weights, (hidden, states[number]))
            found.append(state)
            if number < len(self.layers) - 1:
                hidden = _locked(hidden, rates["layer"])
        raw = hidden
        dropped = _locked(raw, rates["output"])
        width = table.shape[1]
        latent = _locked(torch.tanh(self.latent(dropped)), rates["projection"])
        logits = latent.reshape(-1, width) @ table.T + self.bias
        probs = torch.softmax(logits, -1).reshape(-1, self.components, len(table))
        prior = torch.softmax(self.prior(dropped), -1).reshape(-1, self.components, 1)
        mixed = (probs * prior).sum(1)
        return torch.log(mixed + 1e-8), raw, dropped, found


def _locked(values: torch.Tensor, rate: float) -> torch.Tensor:
    """Drops the same features `[B, D]` at all of the first axis."""
    kept = torch.rand(1, *values.shape[1:]) >= rate
    return values * kept / (1 - rate)


def training_step(
    model: AWD,
    data: list[Any],
    learning_rate: float,
    clip_norm: float,
    penalties: tuple[float, float],
) -> Step:
    """Returns a step of SGD with clipping, with activation penalties.

    Args:
        model: The model.
        data: Batches of inputs and targets, `[B, T]` each, read in turn.
        learning_rate: Of SGD.
        clip_norm: Limit of the gradient's global norm.
        penalties: Of activations, and of their changes.
    """
    torch.set_num_threads(cores())
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    batches = itertools.cycle(
        [(torch.tensor(x.T.copy()), torch.tensor(y.T.copy())) for x, y in data]
    )
    rows = data[0][0].shape[0]
    states: list[Any] = [
        tuple(torch.zeros(1, rows, width) for _ in range(2)) for width in model.units
    ]

    def step() -> float:
        nonlocal states
        tokens, targets = next(batches)
        optimizer.zero_grad()
        log_probs, raw, dropped, states = model(tokens, states)
        states = [tuple(value.detach() for value in state) for state in states]
        loss = functional.nll_loss(log_probs, targets.flatten())
        loss = loss + penalties[0] * dropped.pow(2).mean()
        loss = loss + penalties[1] * (raw[1:] - raw[:-1]).pow(2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        return loss.item()

    return step
