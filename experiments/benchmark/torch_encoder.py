"""One training step of a masked language model in PyTorch, by its own encoder."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from experiments.benchmark.masked_rows import Batch
from experiments.benchmark.preset import Preset
from experiments.kit.machine import cores
from experiments.kit.timing import Step


class MaskedModel(torch.nn.Module):
    """Embeddings, `TransformerEncoder` and BERT's tied head, at masked places alone."""

    def __init__(self, preset: Preset, dropout: float) -> None:
        super().__init__()
        width, size = preset.encoder_width, preset.vocabulary_size
        self.tokens = torch.nn.Embedding(size, width)
        self.places = torch.nn.Embedding(preset.encoder_batch[1], width)
        self.norm = torch.nn.LayerNorm(width)
        self.dropout = torch.nn.Dropout(dropout)
        layer = torch.nn.TransformerEncoderLayer(
            width,
            max(1, width // 64),
            4 * width,
            dropout,
            activation="gelu",
            batch_first=True,
        )
        self.layers = torch.nn.TransformerEncoder(layer, preset.encoder_layers)
        self.dense = torch.nn.Linear(width, width)
        self.last_norm = torch.nn.LayerNorm(width)
        self.bias = torch.nn.Parameter(torch.zeros(size))

    def forward(self, shown: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Returns the logits `[B, M, V]` of masked places int `[B, M]`."""
        positions = torch.arange(shown.shape[1])
        embedded = self.norm(self.tokens(shown) + self.places(positions))
        features = self.layers(self.dropout(embedded))
        wanted = places.unsqueeze(-1).expand(-1, -1, features.shape[-1])
        hidden = torch.nn.functional.gelu(self.dense(features.gather(1, wanted)))
        return self.last_norm(hidden) @ self.tokens.weight.T + self.bias


def training_step(
    preset: Preset,
    batches: Sequence[Batch],
    seed: int,
    *,
    dropout: float,
    rate: float,
    clip_norm: float,
) -> Step:
    """Returns a step of AdamW with clipping on batches, read in turn."""
    torch.manual_seed(seed)
    torch.set_num_threads(cores())
    model = MaskedModel(preset, dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, eps=1e-6)
    data = itertools.cycle(
        [
            tuple(torch.tensor(p).long() for p in (b.tokens, b.shown, b.places))
            for b in batches
        ]
    )

    def step() -> float:
        tokens, shown, places = next(data)
        optimizer.zero_grad()
        logits = model(shown, places)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tokens.gather(1, places).flatten()
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        return loss.item()

    return step
