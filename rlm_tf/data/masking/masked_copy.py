"""A masked copy of each labelled text beside it."""

from __future__ import annotations

from typing import Any

from rlm_tf.data.masking.mask_tokens import Scheme
from rlm_tf.data.masking.masking import Masking
from rlm_tf.data.text.vocabulary import Vocabulary


class MaskedCopy:
    """Adds masked tokens and their positions to labelled batches, drawn anew each step.

    Used as `ResumableBatches(LabelledBatches(...), transform=MaskedCopy(...))`
    (`rlm_tf.training`).

    Args:
        vocabulary: See `Masking`, as the others.
        ratio: Likewise.
        scheme: Likewise; as BERT has it, by default.
        seed: Likewise.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        ratio: float = 0.15,
        scheme: Scheme = "bert",
        seed: int = 0,
    ) -> None:
        self.masking = Masking(vocabulary, ratio=ratio, scheme=scheme, seed=seed)

    def __call__(self, element: Any, epoch: Any, step: Any) -> Any:
        """Returns `((tokens, segments, masked tokens, positions), labels)` of a batch.

        Args:
            element: `((tokens, segments), labels)`.
            epoch: Integer scalar.
            step: Integer scalar, the step within the epoch.
        """
        (tokens, segments), labels = element
        ((_, shown, positions),) = self.masking(tokens, epoch, step)
        return (tokens, segments, shown, positions), labels
