"""Latent-variable models of symbols in PyTorch, written in the obvious way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional


class SymbolVAE(torch.nn.Module):
    """Encoder, posterior and decoder of the synthetic task."""

    def __init__(self, num_symbols: int, units: int, discrete: bool):
        super().__init__()
        self.discrete = discrete
        self.encoder = torch.nn.Sequential(
            torch.nn.Embedding(num_symbols, units),
            torch.nn.Linear(units, units),
            torch.nn.Tanh(),
            torch.nn.Linear(units, units),
            torch.nn.Tanh(),
        )
        self.head = torch.nn.Linear(units, 80)
        first = torch.nn.Linear(80 if discrete else 40, units, bias=not discrete)
        layers = [first] if discrete else [first, torch.nn.Tanh()]
        layers += [torch.nn.Linear(units, units), torch.nn.Tanh()]
        self.decoder = torch.nn.Sequential(*layers, torch.nn.Linear(units, num_symbols))

    def log_likelihood(self, latents: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Returns ln p(x|z) `[K, B]` of latents `[K, B, ...]`."""
        samples = latents.shape[0]
        logits = self.decoder(latents.reshape(samples, len(x), -1))
        log_probs = functional.log_softmax(logits, dim=-1)
        targets = x.expand(samples, len(x)).unsqueeze(-1)
        return log_probs.gather(-1, targets).squeeze(-1)


def training_step(
    num_symbols: int,
    units: int,
    data: list[np.ndarray],
    seed: int,
    samples: int,
    discrete: bool,
    lambda_: float,
) -> Callable[[], Any]:
    """Returns a step of VIMCO (discrete) or DReG with the KL objective, with Adam."""
    torch.manual_seed(seed)
    model = SymbolVAE(num_symbols, units, discrete)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, betas=(0.0, 0.999))
    batches = itertools.cycle([torch.tensor(x, dtype=torch.int64) for x in data])
    loss_of = _vimco if discrete else _dreg

    def step() -> float:
        x = next(batches)
        optimiser.zero_grad()
        loss = loss_of(model, x, samples, lambda_)
        optimiser.step()
        return loss

    return step


def _objective(a: Any, likelihood: Any, lambda_: float, dim: int = 0) -> Any:
    """(1 - lambda) S + lambda U from log-weights a."""
    evidence = torch.logsumexp(a, dim) - math.log(a.shape[dim])
    u_hat = (torch.softmax(a, dim) * likelihood).sum(dim)
    return (1 - lambda_) * evidence + lambda_ * u_hat


def _vimco(model: SymbolVAE, x: Any, samples: int, lambda_: float) -> float:
    logits = model.head(model.encoder(x)).reshape(len(x), 8, 10)
    posterior = torch.distributions.OneHotCategorical(logits=logits)
    z = posterior.sample((samples,))
    score = posterior.log_prob(z).sum(-1)
    likelihood = model.log_likelihood(z, x)
    a = likelihood - 8 * math.log(10) - score
    objective = _objective(a, likelihood, lambda_)
    with torch.no_grad():
        swapped_a, swapped_l = (_swapped(values, samples) for values in (a, likelihood))
        baseline = _objective(swapped_a, swapped_l, lambda_, dim=1)
        signal = objective - baseline
    surrogate = objective + (signal * score).sum(0)
    loss = -surrogate.mean()
    loss.backward()
    return float(-objective.mean().detach())


def _swapped(values: Any, samples: int) -> Any:
    """`[K, K, B]`: for each sample, all with its value replaced by the others' mean."""
    means = (values.sum(0) - values) / (samples - 1)
    repeated = values.expand(samples, *values.shape).clone()
    index = torch.arange(samples)
    repeated[index, index] = means
    return repeated


def _dreg(model: SymbolVAE, x: Any, samples: int, lambda_: float) -> float:
    mean, log_variance = model.head(model.encoder(x)).chunk(2, dim=-1)
    scale = torch.exp(0.5 * log_variance)
    z = torch.distributions.Normal(mean, scale).rsample((samples,))
    likelihood = model.log_likelihood(z, x)
    prior = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(-1)
    held = torch.distributions.Normal(mean.detach(), scale.detach())
    a = likelihood + prior - held.log_prob(z).sum(-1)
    objective = _objective(a, likelihood, lambda_)
    with torch.no_grad():
        w = torch.softmax(a, 0)
        on_a = w**2 * (
            (1 - lambda_) + 2 * lambda_ * (likelihood - (w * likelihood).sum(0))
        )
        on_likelihood = lambda_ * w**2
    decoder = list(model.decoder.parameters())
    encoder = [*model.encoder.parameters(), *model.head.parameters()]
    batch = len(x)
    own = torch.autograd.grad(-objective.sum() / batch, decoder, retain_graph=True)
    path = -(on_a * a + on_likelihood * likelihood).sum() / batch
    through = torch.autograd.grad(path, encoder)
    for parameter, gradient in zip([*decoder, *encoder], [*own, *through], strict=True):
        parameter.grad = gradient
    return float(-objective.mean().detach())
