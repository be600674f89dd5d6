"""Induced models from the predictions that a batch holds anyway."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Literal, NamedTuple

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.models.imm.matching import Induced, Matched, Matching, Window
from rlm_tf.models.imm.prediction_bank import PredictionBank
from rlm_tf.models.imm.short_contexts import (
    BatchGroups,
    context_keys,
    group_by_context,
    keep_groups,
    position_weights,
    short_contexts,
)
from rlm_tf.models.language.batch import tokens_of
from rlm_tf.models.language.interface import LanguageModelInterface
from rlm_tf.objectives.in_batch import Groups, grouped_induced_cross_entropy
from rlm_tf.restricted.restricted_model import RestrictedModel

_MIN_COUNT_WITH_BANK = 5


class InBatchContexts(tf.Module):
    """The positions of a batch that share a short context are its extended contexts.

    Their predictions were computed by the main forward pass, so the induced model of
    every short context in the batch, Eq. (9) restricted to the batch, costs a few sums,
    where the published sampler runs the model k times more.

    The number n of predictions behind an induced model is what the batch gives. n = 1
    is the noising loss of Eq. (16), which pulls the full model towards the restricted
    one; the mean of few predictions is biased the same way, by a half over n times the
    relative variance of the predictions to second order. Hence `min_count`, below which
    a position has weight 0, and a bank of recent predictions that raises n. The bank's
    have no gradient; that of the batch's is enlarged to stand for them.

    Without a bank `min_count` is 1 unless another is given. A higher one does not only
    leave out the biased induced models: the frequent contexts that remain share the
    whole coefficient (see below), although of them the text itself says enough. On an
    eighth of Penn Treebank, with a bigram of that eighth, validation perplexity falls
    by 10 as `min_count` falls from 10 to 1. With a restricted model of much more text
    the bias costs more, and a bank is worth its time.

    The term is the mean over the positions whose group is large enough. With contexts
    of one word each of them has the weight `coefficient / coverage` beside a position's
    main loss; `coverage`, logged as `imm_coverage`, is their share of the positions
    with a whole short context (with longer ones, window starts have none). With rarer
    contexts (a higher `min_count`, a restricted model of higher order) a coefficient
    therefore acts on fewer positions and more strongly on each: compare settings at
    equal `coefficient / coverage`, too. A position of sample weight 0 is no
    context; other sample weights multiply its share of the term, and every prediction
    counts as one in its induced model. How many stand behind a position is logged as
    `imm_count`, the mean; its quartiles over the last epoch of training are
    `model.count_quantiles.result()`, `imm_count_p25`, `_p50` and `_p75`.

    Of several replicas, each groups the positions of its own rows and has a bank of its
    own. So R replicas do not take the step of one device here: the term is the mean
    over the groups of all replicas, which are smaller, and fewer are large enough. On
    Penn Treebank (bigrams, 20 rows of 35 words, `min_count` 5) the coverage is 0.39 on
    one device, 0.32 on two and 0.25 on four.

    Args:
        min_count: Least number of predictions (batch and bank) behind an induced model;
            None: 5 with a bank, 1 without.
        pass_mode: `"training"` averages the main pass's own predictions (dropout on);
            `"evaluation"` runs the window again without dropout from the same states.
        separate_clipping: Whether the gradients of the main loss and of IMM are clipped
            each on its own, at the price of a backward pass, or together.
        bank_size: Positions in the bank; 0: no bank. Needs a model with features.
        bank_target: The bank fills a group up to this number of predictions; None means
            `min_count`.

    Raises:
        ValueError: If an argument is out of range.
    """

    brings_gradient = False

    def __init__(
        self,
        *,
        min_count: int | None = None,
        pass_mode: Literal["training", "evaluation"] = "training",
        separate_clipping: bool = False,
        bank_size: int = 0,
        bank_target: int | None = None,
    ):
        super().__init__(name="in_batch_contexts")
        if min_count is None:
            min_count = _MIN_COUNT_WITH_BANK if bank_size else 1
        check_integer("InBatchContexts", "min_count", min_count, 1)
        check_integer("InBatchContexts", "bank_size", bank_size, 0)
        if pass_mode not in ("training", "evaluation"):
            raise ValueError(
                "InBatchContexts: `pass_mode` must be 'training' or 'evaluation', "
                f"found {pass_mode!r}."
            )
        if bank_target is not None:
            # Groups filled up to less than `min_count` would be filled in vain.
            check_integer("InBatchContexts", "bank_target", bank_target, min_count)
            if not bank_size:
                raise ValueError(
                    "InBatchContexts: `bank_target` needs a bank: `bank_size` is 0."
                )
        self.min_count = min_count
        self.pass_mode = pass_mode
        self.separate_clipping = separate_clipping
        self.bank_size = bank_size
        self.bank_target = bank_target
        self.banks: list[PredictionBank] = []
        self._splits: list[bool] = []
        self.owner: weakref.ref[keras.Model] | None = None

    def prepare(self, matching: Matching) -> None:
        """Creates the banks, one for each restricted model; called by the wrapper.

        Raises:
            ValueError: If a bank is asked of a model without features, or if the
                wrapper asks for what only sampled contexts do.
        """
        how = (matching.gradient, matching.every, matching.variant)
        if how != ("direct", 1, "paper"):
            raise ValueError(
                "InducedModelMatching: `gradient`, `every` and `variant` other than "
                "their defaults belong to SampledContexts; with InBatchContexts one "
                "pass serves all, at every step."
            )
        alone = not self.bank_size and self.min_count == 1
        self._splits = [
            alone and restricted.has_sparse_probs()
            for restricted in matching.restricted_models
        ]
        if not self.bank_size:
            self.banks = []
            return
        view = matching.view
        if not view.has_features:
            raise ValueError(
                "InBatchContexts: `bank_size` needs a language model that maps "
                "features to logits (like RecurrentLanguageModel), found "
                f"{type(view.model).__name__}."
            )
        self.banks = [
            PredictionBank(
                self.bank_size,
                view.model.training_feature_width,
                view.model.compute_dtype,
            )
            for _ in matching.restricted_models
        ]

    def match(self, matching: Matching, window: Window) -> Matched:
        """Runs the model on a batch and returns what its predictions induce."""
        view, tokens = matching.view, tokens_of(window.inputs)
        evaluation = None
        if self.pass_mode == "evaluation":
            states = view.starting_states(window.inputs)
            evaluation = view.evaluation_outputs(window.inputs, states)
        outputs = view.outputs(window.inputs, training=True)
        source = outputs if evaluation is None else evaluation
        jointly = evaluation is None and not self.separate_clipping
        all_weights, all_grouped = [], []
        for index, restricted in enumerate(matching.restricted_models):
            weights = position_weights(
                tokens, restricted.context_length, window.sample_weight
            )
            bank = self.banks[index] if self.banks else None
            splits = jointly and self._splits[index]
            all_weights.append(weights)
            all_grouped.append(
                self._groups(matching, window, weights, restricted, bank, splits)
            )
            if bank is not None:
                self._keep(bank, all_grouped[-1], source, tf.shape(tokens)[1])
        nll, losses = self._losses(view, window, outputs, source, jointly, all_grouped)
        found = []
        for weights, grouped, (induced, alone) in zip(
            all_weights, all_grouped, losses, strict=True
        ):
            batch = grouped.batch
            group_weights = tf.math.unsorted_segment_sum(
                tf.gather(weights, batch.rows), batch.groups, tf.size(batch.counts)
            )
            if alone is not None:
                induced = tf.concat([induced, tf.gather(alone, grouped.alone)], 0)
                own = tf.gather(weights, grouped.alone)
                group_weights = tf.concat([group_weights, own], 0)
            found.append(
                Induced(induced, group_weights, grouped.counts, self.min_count)
            )
        return Matched(nll, outputs, found)

    @staticmethod
    def _losses(
        view: LanguageModelInterface,
        window: Window,
        outputs: tf.Tensor,
        source: tf.Tensor,
        jointly: bool,
        all_grouped: Sequence[_Grouped],
    ) -> tuple[tf.Tensor, list[tuple[tf.Tensor, tf.Tensor | None]]]:
        """Returns the main loss, and of each restricted model those of its groups.

        The second of these is of positions alone, where they are apart.
        """
        if jointly:
            several = [grouped.groups for grouped in all_grouped]
            found = view.joint(outputs, window.targets, several)
            both = zip(found.induced, found.alone, strict=True)
            return found.cross_entropy, list(both)
        losses = []
        for grouped in all_grouped:
            rows = grouped.groups.rows
            own = grouped.groups._replace(rows=tf.range(tf.size(rows)))
            logits = view.logits(source, rows)
            losses.append((grouped_induced_cross_entropy(logits, own).loss, None))
        return view.nll(outputs, window.targets), losses

    @staticmethod
    def _keep(
        bank: PredictionBank, grouped: _Grouped, source: tf.Tensor, length: tf.Tensor
    ) -> None:
        """Writes the predictions of a batch into its bank."""
        flat = tf.reshape(source, [-1, source.shape[-1]])
        # Of a window, the last words are the newest.
        order = tf.argsort(-(grouped.rows % length), stable=True)
        bank.write(
            tf.gather(flat, tf.gather(grouped.rows, order)),
            tf.gather(grouped.keys, order),
        )

    def _groups(
        self,
        matching: Matching,
        window: Window,
        weights: tf.Tensor,
        restricted: RestrictedModel,
        bank: PredictionBank | None,
        splits: bool,
    ) -> _Grouped:
        """Groups the positions of a batch; `splits`: those alone apart from others."""
        length = restricted.context_length
        contexts = short_contexts(tokens_of(window.inputs), length)
        seen = restricted.coarse(contexts)
        keys = context_keys(seen, matching.vocabulary_size)
        flat_keys = tf.reshape(keys, [-1])
        rows, group_of, unique_keys = group_by_context(flat_keys, weights > 0)
        num_groups = tf.size(unique_keys)
        counts = tf.math.unsorted_segment_sum(
            tf.ones_like(group_of), group_of, num_groups
        )
        draw = None
        if bank is not None:
            target = self.bank_target or self.min_count
            draw = bank.draw(unique_keys, tf.maximum(target - counts, 0))
            counts += draw.counts
        # Without groups, IMM costs next to nothing until a start rule lets it begin.
        least = 2 if splits else self.min_count
        keep = tf.logical_and(counts >= least, window.active)
        flat_contexts = tf.reshape(contexts, [tf.size(keys), length])
        batch = keep_groups(rows, group_of, flat_contexts, keep)
        wanted = batch.contexts[:, 0] if length == 1 else batch.contexts
        groups = Groups(batch.rows, batch.groups, restricted.probs(wanted))
        alone = tf.zeros([0], tf.int32)
        if splits:
            single = tf.logical_and(counts == 1, window.active)
            alone = tf.boolean_mask(rows, tf.gather(single, group_of))
            probs = restricted.sparse_probs(tf.gather(flat_contexts, alone))
            groups = groups._replace(alone=probs.at(alone, tf.size(keys)))
        if draw is not None:
            in_kept = tf.gather(keep, draw.groups)
            numbers = tf.cumsum(tf.cast(keep, tf.int32)) - 1
            bank_groups = tf.gather(numbers, tf.boolean_mask(draw.groups, in_kept))
            features = tf.boolean_mask(draw.features, in_kept)
            probs = tf.nn.softmax(
                matching.view.logits(features, tf.range(tf.shape(features)[0]))
            )
            # The draw comes in the order of its groups; the last may have no entry.
            sums = tf.math.segment_sum(probs, bank_groups)
            lacking = tf.size(batch.counts) - tf.shape(sums)[0]
            groups = groups._replace(
                bank_sums=tf.pad(sums, [[0, lacking], [0, 0]]),
                bank_counts=tf.boolean_mask(draw.counts, keep),
            )
        return _Grouped(
            batch,
            groups,
            alone,
            rows,
            tf.gather(flat_keys, rows),
            tf.gather(counts, group_of),
        )


class _Grouped(NamedTuple):
    """The groups of a batch, and the positions that took part with their keys.

    Those that are `alone` are in no group of the batch.
    """

    batch: BatchGroups
    groups: Groups
    alone: tf.Tensor
    rows: tf.Tensor
    keys: tf.Tensor
    counts: tf.Tensor
