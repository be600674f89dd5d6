"""The simple peer: Kneser-Ney alone, scored on all tokens, by order and amount."""

from __future__ import annotations

import time
from typing import Any

from experiments.kit import machine
from experiments.kit.drawing import table
from experiments.kit.run_settings import text_digest
from rlm_tf import evaluation
from rlm_tf.data import Corpus
from rlm_tf.restricted import KneserNey

ORDERS = (1, 2, 3, 4, 5, 6)
FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def measure(corpus: Corpus) -> dict[str, Any]:
    """Returns the row: perplexities of every order and part of the training text.

    A floor, tuned on the validation text, gives words that the part lacks a
    probability, so that all tokens count.
    """
    eos, cells = corpus.vocabulary.eos_id, []
    for fraction in FRACTIONS:
        text = corpus.train[: int(len(corpus.train) * fraction)]
        for order in ORDERS:
            began = time.perf_counter()
            model = KneserNey(order).fit(text, len(corpus.vocabulary))
            seconds = time.perf_counter() - began
            floor = evaluation.tune_floor(model, corpus.valid, prefix=eos)
            floored = model.with_floor(floor)
            cell: dict[str, Any] = {
                "order": order,
                "train_tokens": len(text),
                "floor": floor,
                "fit_seconds": seconds,
            }
            for split in ("valid", "test"):
                found = evaluation.perplexity_of(
                    evaluation.restricted_target_log_probs(
                        floored, getattr(corpus, split), prefix=eos
                    ),
                    getattr(corpus.num_bytes, split, None),
                )
                cell[split] = found.perplexity
                cell[f"{split}_bits_per_byte"] = found.bits_per_byte
            cells.append(cell)
    return {
        "name": "n_grams",
        "command": f"python -m experiments.imm_lm --n_grams --corpus={corpus.name}",
        "commit": machine.commit(),
        "corpus": {"name": corpus.name, "text_sha256": text_digest(corpus)},
        "cells": cells,
        "machine": machine.environment()["machine"],
        "finished": time.strftime("%Y-%m-%d"),
    }


def n_grams_table(row: dict[str, Any]) -> str:
    """Returns perplexities, validation / test, by amount of text and order."""
    cells = {(cell["train_tokens"], cell["order"]): cell for cell in row["cells"]}
    amounts = sorted({amount for amount, _ in cells})
    orders = sorted({order for _, order in cells})
    lines = []
    for amount in amounts:
        found = [cells[amount, order] for order in orders]
        best = min(found, key=lambda cell: cell["valid"])
        lines.append(
            (
                f"{amount:,}",
                *(f"{cell['valid']:.1f} / {cell['test']:.1f}" for cell in found),
                f"{best['floor']:.3f}",
                f"{best['test_bits_per_byte']:.3f}",
            )
        )
    titles = ("training tokens", *(f"order {order}" for order in orders))
    return table((*titles, "floor of the best", "its bits per byte, test"), lines)
