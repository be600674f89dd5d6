"""The rule of seed words inside a TensorFlow graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.labelling.seed_rule import SeedRule
from rlm_tf.layers.text.words import cut_published, cut_words


class MatchedTexts(NamedTuple):
    """What a rule says of texts.

    Attributes:
        labels: int32 `[N]`, places in the rule's `class_names`; -1: none.
        counts: int32 `[N, C]`, occurrences of each class' seeds.
    """

    labels: tf.Tensor
    counts: tf.Tensor


class SeedMatcher(tf.Module):
    """Labels texts as a `SeedRule` does, in an export.

    Args:
        rule: The rule. Its ties are "abstain" or "first": draws by a text's digest have
            no form in a graph.

    Raises:
        ValueError: If its ties are "random", or no seed can match anything.
    """

    def __init__(self, rule: SeedRule) -> None:
        super().__init__(name="seed_matcher")
        if rule.ties == "random":
            raise ValueError(
                "SeedMatcher: `rule` must have the ties abstain or first, found random."
            )
        seeds = [seed for seed in rule.seeds if seed.tokens]
        if not seeds:
            raise ValueError("SeedMatcher: no seed of `rule` can match anything.")
        self._tokenisation, self._ties = rule.tokenisation, rule.ties
        self._num_classes = len(rule.class_names)
        longest = max(len(seed.tokens) for seed in seeds)
        # Words are compared whole, or by their first characters.
        sizes = sorted({len(s.tokens[-1]) for s in seeds if s.is_prefix})
        keys: list[dict[str, int]] = [{} for _ in range(1 + len(sizes))]
        kinds = np.zeros([len(seeds), longest], np.int32)
        ids = np.full([len(seeds), longest], -1, np.int32)
        for row, seed in enumerate(seeds):
            for column, token in enumerate(seed.tokens):
                is_last = column == len(seed.tokens) - 1
                kind = 0
                if seed.is_prefix and is_last:
                    kind = 1 + sizes.index(len(token))
                kinds[row, column] = kind
                ids[row, column] = keys[kind].setdefault(token, len(keys[kind]))
        lengths = np.array([len(seed.tokens) for seed in seeds], np.int32)
        classes = np.array([seed.class_index for seed in seeds])
        with tf.init_scope():
            self._tables = [_table(own) for own in keys]
            self._kinds, self._ids = tf.constant(kinds), tf.constant(ids)
            self._lengths = tf.constant(lengths)
            self._classes = tf.one_hot(classes, self._num_classes, dtype=tf.int32)
        self._sizes, self._longest = sizes, longest

    def match(self, texts: tf.Tensor) -> MatchedTexts:
        """Labels texts.

        Args:
            texts: Strings `[N]`, any bytes; what is not UTF-8 becomes U+FFFD.
        """
        cut = cut_words if self._tokenisation == "words" else cut_published
        tokens = cut(tf.convert_to_tensor(texts, tf.string))
        number = tf.cast(tokens.nrows(), tf.int32)
        found = [self._tables[0].lookup(tokens.flat_values)]
        for size, table in zip(self._sizes, self._tables[1:], strict=True):
            # Shorter words have no such beginning, nor are such seeds.
            begin = tf.strings.substr(tokens.flat_values, 0, size, unit="UTF8_CHAR")
            found.append(table.lookup(begin))
        # What each token is, `[tokens + longest, kinds]`; nothing behind the last.
        known = tf.pad(
            tf.stack(found, axis=1), [[0, self._longest], [0, 0]], constant_values=-1
        )
        rows = tf.cast(tokens.value_rowids(), tf.int32)
        beyond = tf.pad(rows, [[0, self._longest]], constant_values=-1)
        fitting = self._fitting(known, beyond, rows)
        lengths = tf.reduce_max(
            tf.where(fitting.is_seed, self._lengths[tf.newaxis], 0), axis=1
        )
        best = fitting.is_seed & (self._lengths[tf.newaxis] == lengths[:, tf.newaxis])
        free = self._leftmost(fitting.places, lengths)
        classes = tf.matmul(
            tf.cast(best & free[:, tf.newaxis], tf.int32), self._classes
        )
        once = tf.cast(classes > 0, tf.int32)
        own = tf.gather(rows, fitting.places)
        counts = tf.math.unsorted_segment_sum(once, own, number)
        counts = tf.reshape(counts, [number, self._num_classes])
        return MatchedTexts(self._labels(counts), counts)

    def _fitting(
        self, known: tf.Tensor, beyond: tf.Tensor, rows: tf.Tensor
    ) -> _Fitting:
        """Returns places at which a seed may begin, and which seeds do."""
        places = tf.cast(tf.where(tf.reduce_any(known >= 0, axis=1)), tf.int32)[:, 0]
        is_seed = tf.ones([tf.size(places), tf.shape(self._ids)[0]], tf.bool)
        for column in range(self._longest):
            own = tf.gather(known, places + column)
            same = tf.gather(own, self._kinds[:, column], axis=1)
            wanted = self._ids[:, column][tf.newaxis]
            inside = tf.gather(beyond, places + column) == tf.gather(rows, places)
            fits = (same == wanted) & inside[:, tf.newaxis]
            is_seed &= fits | (wanted < 0)
        return _Fitting(places, is_seed)

    def _leftmost(self, places: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Returns which occurrences count: those behind the end of the one before."""
        if self._longest == 1:
            return lengths > 0

        def next_end(
            state: tuple[tf.Tensor, tf.Tensor], own: tuple[tf.Tensor, tf.Tensor]
        ) -> tuple[tf.Tensor, tf.Tensor]:
            place, length = own
            counts = (length > 0) & (place >= state[0])
            return tf.where(counts, place + length, state[0]), counts

        first = (tf.constant(0), tf.constant(False))
        return tf.scan(next_end, (places, lengths), first)[1]

    def _labels(self, counts: tf.Tensor) -> tf.Tensor:
        most = tf.reduce_max(counts, axis=1)
        labels = tf.argmax(counts, axis=1, output_type=tf.int32)
        none = most == 0
        if self._ties == "abstain":
            best = tf.cast(counts == most[:, tf.newaxis], tf.int32)
            none |= tf.reduce_sum(best, axis=1) > 1
        return tf.where(none, -1, labels)


class _Fitting(NamedTuple):
    """Where seeds begin: places `[M]`, and which seeds, bool `[M, S]`."""

    places: tf.Tensor
    is_seed: tf.Tensor


def _table(keys: dict[str, int]) -> tf.lookup.StaticHashTable:
    # An empty table cannot be made; no token has a blank in it.
    entries = keys or {" ": -1}
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant([*entries], tf.string),
            tf.constant([*entries.values()], tf.int32),
        ),
        default_value=-1,
    )
