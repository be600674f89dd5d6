"""Trains a classifier of documents from a few seed words for each class.

    rlm_tf seed_classify --texts=corpus.csv --seed_words=seeds.json --output_dir=DIR

Documents that have seed words are labelled by them; a linear model of tf-idf learns
from these, words deleted at random so that it does not learn the rule back, and then
from its own surest predictions on all documents. Ends with DIR/predictions.csv (id,
label, probability, seed_label), DIR/saved_model, which answers strings, and
DIR/report.html. DIR/to_label.csv has the documents whose true labels would tell most of
how good it is: given back as --labels (id,label), the same command adds the accuracy
and its interval. Killed or interrupted, it goes on.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.seeds.settings import (
    SeedClassifySettings,
    check_seed_classify_settings,
)


def main() -> None:
    """Trains, and writes the report."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands.seeds import running

    running.run(config_from_flags(SeedClassifySettings()))


PROGRAM = Program(
    "rlm_tf seed_classify",
    __doc__,
    main,
    settings=SeedClassifySettings(),
    check=check_seed_classify_settings,
)

if __name__ == "__main__":
    start(PROGRAM)
