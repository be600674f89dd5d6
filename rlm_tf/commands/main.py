"""`rlm_tf COMMAND`, and `python -m rlm_tf.commands COMMAND`."""

from __future__ import annotations

import difflib
import importlib
import sys

from rlm_tf.command_line.program import start

COMMANDS = {
    "train": "the best language model that a text and some minutes allow",
    "evaluate": "perplexity and bits per byte of a trained model on another text",
    "compare": "what several trained models reached, side by side",
    "score": "the log-probability of each line of standard input",
    "generate": "what a trained model says after a text",
    "coherence": "mutual information of far segments, of texts and of models",
    "distil": "a smaller model that learns from what larger ones say",
    "export": "a trained model as a SavedModel for serving",
    "classifier": "a classifier of texts, from plain text and few examples",
    "pretrain": "its first half: an encoder from a text",
    "finetune": "its second half: a classifier from an encoder and examples",
    "seed_classify": "a classifier of documents from a few words of each class",
    "classify": "the class of each line of standard input",
    "fill_mask": "the most probable words for each [MASK] of a text",
}


def main() -> None:
    """Starts the command that is named first."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name.lstrip("-") in ("help", "h"):
        print(usage())
        return
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        sys.exit(
            f"error: the command must be one of {', '.join(COMMANDS)}; found "
            f"{name!r}{hint}"
        )
    sys.argv = [f"rlm_tf {name}", *sys.argv[2:]]
    start(importlib.import_module(f"rlm_tf.commands.{name}").PROGRAM)


def usage() -> str:
    """Returns what `rlm_tf --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  rlm_tf {name:{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "Language models from little text.",
            "",
            *lines,
            "",
            "rlm_tf COMMAND --help lists the flags of a command.",
        ]
    )
