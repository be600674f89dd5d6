"""Vocabularies, corpora, contiguous batches, noising, synthetic tasks."""

from rlm_tf.data.batches.contiguous_batches import ContiguousBatches, contiguous_batches
from rlm_tf.data.batches.looks import Looks
from rlm_tf.data.batches.noising import Noising
from rlm_tf.data.batches.placed_batches import PlacedBatches
from rlm_tf.data.batches.segment_pairs import SegmentPairs
from rlm_tf.data.batches.segments import Segments
from rlm_tf.data.batches.sentence_batches import SentenceBatches
from rlm_tf.data.batches.sentence_pairs import SentencePairs
from rlm_tf.data.batches.variable_windows import VariableWindows
from rlm_tf.data.images.image_batches import ImageBatches
from rlm_tf.data.images.image_file_batches import ImageFileBatches
from rlm_tf.data.images.labelled_images import LabelledImages
from rlm_tf.data.images.published_images import (
    ImageFiles,
    cifar100,
    digits,
    image_folder,
    tiny_imagenet,
)
from rlm_tf.data.labelled.ag_news import load_ag_news
from rlm_tf.data.labelled.document_batches import DocumentBatches
from rlm_tf.data.labelled.documents import (
    Documents,
    document_names,
    load_documents,
    load_seeds,
)
from rlm_tf.data.labelled.glue import load_glue
from rlm_tf.data.labelled.labelled_batches import LabelledBatches
from rlm_tf.data.labelled.labelled_texts import LabelledTexts
from rlm_tf.data.labelled.table_files import read_labelled
from rlm_tf.data.masking.mask_tokens import MaskedTokens, mask_tokens
from rlm_tf.data.masking.masked_copy import MaskedCopy
from rlm_tf.data.masking.masked_count import masked_count, max_masked
from rlm_tf.data.masking.masking import Masking
from rlm_tf.data.synthetic.linear_discriminant import LinearDiscriminant
from rlm_tf.data.synthetic.markov_source import MarkovSource
from rlm_tf.data.synthetic.mixed_features import MixedFeatures, MixedSample
from rlm_tf.data.synthetic.reverse_copy import ReverseCopy
from rlm_tf.data.synthetic.topic_source import TopicSource
from rlm_tf.data.synthetic.uniform_symbols import UniformSymbols
from rlm_tf.data.text.bert_vocabulary import BertVocabulary, bert_vocabulary
from rlm_tf.data.text.corpora import Corpus, corpus_names, load_corpus, load_text_corpus
from rlm_tf.data.text.corpus_summary import CorpusSummary, SplitSizes
from rlm_tf.data.text.special_tokens import (
    SpecialIds,
    encoder_vocabulary,
    special_ids,
)
from rlm_tf.data.text.vocabulary import Vocabulary

__all__ = [
    "BertVocabulary",
    "ContiguousBatches",
    "Corpus",
    "CorpusSummary",
    "DocumentBatches",
    "Documents",
    "ImageBatches",
    "ImageFileBatches",
    "ImageFiles",
    "LabelledBatches",
    "LabelledImages",
    "LabelledTexts",
    "LinearDiscriminant",
    "Looks",
    "MarkovSource",
    "MaskedCopy",
    "MaskedTokens",
    "Masking",
    "MixedFeatures",
    "MixedSample",
    "Noising",
    "PlacedBatches",
    "ReverseCopy",
    "SegmentPairs",
    "Segments",
    "SentenceBatches",
    "SentencePairs",
    "SpecialIds",
    "SplitSizes",
    "TopicSource",
    "UniformSymbols",
    "VariableWindows",
    "Vocabulary",
    "bert_vocabulary",
    "cifar100",
    "contiguous_batches",
    "corpus_names",
    "digits",
    "document_names",
    "encoder_vocabulary",
    "image_folder",
    "load_ag_news",
    "load_corpus",
    "load_documents",
    "load_glue",
    "load_seeds",
    "load_text_corpus",
    "mask_tokens",
    "masked_count",
    "max_masked",
    "read_labelled",
    "special_ids",
    "tiny_imagenet",
]
