"""The cells of the benchmark in PyTorch, in a Python loop over time.

What does not depend on the state is one product for all time steps, as one would write
it: the inputs' part of the RLSTM's gates. A Mogrifier has no such part.
"""

from __future__ import annotations

import torch


class MogrifierLSTM(torch.nn.Module):
    """One layer of the Mogrifier LSTM with low-rank gates."""

    def __init__(self, width: int, rounds: int, rank: int):
        super().__init__()
        self.left = torch.nn.ModuleList(
            [torch.nn.Linear(width, rank, bias=False) for _ in range(rounds)]
        )
        self.right = torch.nn.ModuleList(
            [torch.nn.Linear(rank, width) for _ in range(rounds)]
        )
        self.gates = torch.nn.Linear(2 * width, 4 * width)

    def forward(
        self, inputs: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        outputs = []
        for x in inputs:
            for i, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
                if i % 2 == 0:
                    x = 2 * torch.sigmoid(right(left(h))) * x
                else:
                    h = 2 * torch.sigmoid(right(left(x))) * h
            i_t, f, g, o = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i_t) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs), (h, c)


class RewiredLSTM(torch.nn.Module):
    """One layer of the RLSTM."""

    def __init__(self, width: int):
        super().__init__()
        self.of_inputs = torch.nn.Linear(width, 2 * width)
        self.of_state = torch.nn.Linear(width, 3 * width, bias=False)
        self.forget = torch.nn.Linear(width, width)
        self.output = torch.nn.Linear(width, width)

    def forward(
        self, inputs: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        outputs = []
        for x_i, x_j in zip(*self.of_inputs(inputs).chunk(2, 2), strict=True):
            h_i, h_j, h_f = self.of_state(h).chunk(3, 1)
            i, j = torch.sigmoid(x_i + h_i), torch.tanh(x_j + h_j)
            f = torch.sigmoid(self.forget(i * j) + h_f)
            c = f * c + torch.minimum(i, 1 - f) * j
            h = torch.sigmoid(self.output(c)) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs), (h, c)
