"""Documents and seed words of the tests of `rlm_tf seed_classify`."""

from __future__ import annotations

import csv
import json

import numpy as np

from rlm_tf.commands.seeds import settings

WORDS = {
    "sea": ["ship", "wave", "sail", "harbour", "captain"],
    "wood": ["tree", "leaf", "forest", "root", "branch"],
}
SEEDS = {"sea": ["ship", "harbour*"], "wood": ["tree", "forest", "sequoia"]}


def documents(number=120):
    """Returns texts of both classes, and two odd ones."""
    rng = np.random.default_rng(0)
    kinds = [*WORDS]
    found = []
    for i in range(number):
        words = [*rng.choice(WORDS[kinds[i % 2]], 3), *rng.choice(["the", "an"], 3)]
        found.append(" ".join(map(str, words)))
    return [*found, "\u4e2d\u6587, a 'quote'\nand a line", "!?"]


def write_files(folder):
    """Writes a table of documents, and seed words; returns the folder."""
    with open(folder / "corpus.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["key", "body"])
        table.writerows((f"d{i}", text) for i, text in enumerate(documents()))
    (folder / "seeds.json").write_text(json.dumps(SEEDS))
    return folder


def seed_settings(files, **options):
    """Returns settings of a training of seconds."""
    return settings.SeedClassifySettings(
        **{
            "texts": str(files / "corpus.csv"),
            "seed_words": str(files / "seeds.json"),
            "output_dir": str(files / "out"),
            "text_column": "body",
            "id_column": "key",
            "epochs": 12,
            "batch_size": 16,
            "learning_rate": 0.1,
            "iterations": 2,
            "to_label": 10,
            **options,
        }
    )
