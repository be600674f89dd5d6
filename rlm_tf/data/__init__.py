"""Vocabularies, corpora, contiguous batches, noising, synthetic tasks."""

from rlm_tf.data.batches.contiguous_batches import ContiguousBatches, contiguous_batches
from rlm_tf.data.batches.noising import Noising
from rlm_tf.data.batches.sentence_batches import SentenceBatches
from rlm_tf.data.synthetic.linear_discriminant import LinearDiscriminant
from rlm_tf.data.synthetic.reverse_copy import ReverseCopy
from rlm_tf.data.synthetic.uniform_symbols import UniformSymbols
from rlm_tf.data.text.corpora import Corpus, corpus_names, load_corpus, load_text_corpus
from rlm_tf.data.text.corpus_summary import CorpusSummary, SplitSizes
from rlm_tf.data.text.vocabulary import Vocabulary

__all__ = [
    "ContiguousBatches",
    "Corpus",
    "CorpusSummary",
    "LinearDiscriminant",
    "Noising",
    "ReverseCopy",
    "SentenceBatches",
    "SplitSizes",
    "UniformSymbols",
    "Vocabulary",
    "contiguous_batches",
    "corpus_names",
    "load_corpus",
    "load_text_corpus",
]
