"""Vocabularies, corpora, contiguous batches, noising, synthetic tasks."""

from rlm_tf.data.batches import ContiguousBatches, contiguous_batches
from rlm_tf.data.corpora import Corpus, corpus_names, load_corpus, load_text_corpus
from rlm_tf.data.linear_discriminant import LinearDiscriminant
from rlm_tf.data.noising import Noising
from rlm_tf.data.reverse_copy import ReverseCopy
from rlm_tf.data.sentence_batches import SentenceBatches
from rlm_tf.data.uniform_symbols import UniformSymbols
from rlm_tf.data.vocabulary import Vocabulary

__all__ = [
    "ContiguousBatches",
    "Corpus",
    "LinearDiscriminant",
    "Noising",
    "ReverseCopy",
    "SentenceBatches",
    "UniformSymbols",
    "Vocabulary",
    "contiguous_batches",
    "corpus_names",
    "load_corpus",
    "load_text_corpus",
]
