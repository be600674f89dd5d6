"""Settings of `rlm_tf seed_classify`; every field is a flag."""

from __future__ import annotations

import dataclasses
import math
import pathlib

from rlm_tf.command_line.flags import setting
from rlm_tf.commands.settings import check_given, check_text_file

SETTINGS = "settings.json"
# Written last.
RESULTS = "report.json"
DELETIONS = ("random", "seeds", "all_seeds", "none")
USES = ("estimate", "train", "both")
# As in `rlm_tf.models`, which would import TensorFlow.
KINDS = ("linear", "averaged", "convolutional", "recurrent")


@dataclasses.dataclass(frozen=True)
class SeedClassifySettings:
    """Settings of `rlm_tf seed_classify`."""

    texts: str | None = setting(
        None,
        "Documents: .csv or .tsv with a line of names of columns, .jsonl, or of any "
        "other name a document a line; also .gz; or python-docs: paragraphs of the "
        "embedded corpus.",
    )
    seed_words: str | None = setting(
        None, 'JSON: lists of words by class, {"sea": ["ship", "sail*"], ...}.'
    )
    output_dir: str | None = setting(None, "Where everything is written.")
    text_column: str = setting("text", "Of the documents.")
    id_column: str | None = setting(
        None, 'Of their ids; without: "id" if there is one, else they are numbered.'
    )
    encoding: str = setting("utf-8", "Of the documents.")
    labels: str | None = setting(
        None, "A CSV id,label of true labels, from which the accuracy is estimated."
    )
    use_labels: str = setting(
        "estimate",
        f"What they are for: {', '.join(USES)} (cross-fitted: no label judges a "
        "classifier that has learnt from it).",
    )
    label_weight: float = setting(
        10.0, "Of a true label beside one of seeds, where they are trained on."
    )
    to_label: int = setting(50, "Documents in to_label.csv, whose labels tell most.")

    encoder: str = setting(
        "linear",
        f"{', '.join(KINDS)}; or the folder of `rlm_tf pretrain` or of a published "
        "BERT.",
    )
    deletion: str = setting(
        "random",
        f"Of words as it trains: {', '.join(DELETIONS)} (of the own label, or of all).",
    )
    deletion_ratio: float | None = setting(
        None, "Share of the words that goes; none: the best one by the words' number."
    )
    threshold: float = setting(
        0.0,
        "Predictions less probable than this are left blank, in predictions.csv and by "
        "the SavedModel; numbers of the report are of all.",
    )
    iterations: int = setting(5, "Of training on its own predictions.")
    epochs: int | None = setting(
        None, "Of each training; none: 8, or more where documents are few."
    )
    learning_rate: float | None = setting(
        None, "The highest, of Adam; none: what suits the encoder."
    )
    batch_size: int = setting(64, "Documents of a step.")
    length: int = setting(300, "Words or pieces of a document that are read.")
    max_size: int = setting(50_000, "Words that the classifier knows.")
    seed: int = setting(0, "Of all draws.")
    resume: bool = setting(True, "Go on where a killed run was.")
    overwrite: bool = setting(False, "Replace a run of other settings.")


def check_seed_classify_settings(settings: SeedClassifySettings) -> None:
    """Raises ValueError for settings that no run can have, or a missing file."""
    check_given("rlm_tf seed_classify", settings, "texts", "seed_words", "output_dir")
    for name in ("texts", "seed_words", "labels"):
        check_text_file(name, getattr(settings, name), embedded=name == "texts")
    for name, allowed in (("deletion", DELETIONS), ("use_labels", USES)):
        value = getattr(settings, name)
        if value not in allowed:
            raise ValueError(
                f"--{name} must be one of {', '.join(allowed)}; found {value!r}."
            )
    if settings.use_labels != "estimate" and settings.labels is None:
        raise ValueError(f"--use_labels={settings.use_labels} needs --labels.")
    if settings.encoder not in KINDS and not pathlib.Path(settings.encoder).is_dir():
        raise ValueError(
            f"--encoder must be one of {', '.join(KINDS)}, or a folder that is there; "
            f"found {settings.encoder!r}."
        )
    ratio = settings.deletion_ratio
    if ratio is not None and not 0 <= ratio < 1:
        raise ValueError(f"--deletion_ratio must lie in [0, 1), found {ratio}.")
    if ratio is not None and settings.deletion != "random":
        raise ValueError(
            f"--deletion_ratio is of --deletion=random, found {settings.deletion}."
        )
    if not 0 <= settings.threshold < 1:
        raise ValueError(f"--threshold must lie in [0, 1), found {settings.threshold}.")
    for name, least in (
        ("to_label", 1),
        ("iterations", 0),
        ("epochs", 1),
        ("batch_size", 1),
        ("length", 1),
        ("max_size", 1),
        ("seed", 0),
    ):
        value = getattr(settings, name)
        if value is not None and value < least:
            raise ValueError(f"--{name} must be at least {least}, found {value}.")
    for name in ("learning_rate", "label_weight"):
        value = getattr(settings, name)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"--{name} must be positive, found {value}.")
