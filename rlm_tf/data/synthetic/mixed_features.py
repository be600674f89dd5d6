"""Inputs made of features, whose label distribution is known (Dong 2025, chapter 2)."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from rlm_tf.checks import check_integer, check_option, check_range

_TRANSFORMATIONS = ("identity", "flip", "shift")
# Combinations of features that are enumerated at most.
_MOST = 2_000_000


class MixedSample(NamedTuple):
    """Labelled inputs.

    Attributes:
        x: `[N, M, b]`, float32, what is seen of each patch.
        features: `[N, M]`, int, which each patch is of.
        labels: `[N]`, int, one draw an input.
        probs: `[N, K]`, the distribution that the label is drawn from.
    """

    x: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    probs: np.ndarray


class MixedFeatures:
    """The mixed-feature distribution (Definition 2), with everything known.

    An input has M patches. Each is of a feature z, drawn from p_Z, and shows a
    prototype of z, transformed and with noise. Each feature has a label distribution
    of its own; that of the input is their geometric mean,

        p(y | z_1 .. z_M) = prod_m p_Y(y | z_m)^(1/M) / sum over y,

    normalised, which the thesis leaves out. A teacher that learns from single labels
    can be compared with it, where real data has only labels.

    With `topics`, an input has one of them, and its features are drawn from the
    topic's distribution: features that come together may then have similar labels,
    which the thesis' Lemma 5 needs.

    Args:
        feature_probs: p_Z, `[Z]`; or of T topics `[T, Z]`.
        label_probs: p_Y(. | z), `[Z, K]`, positive.
        num_patches: M.
        topic_probs: `[T]`; None: all topics are as frequent.
        width: b, of a patch.
        noise: Deviation of what is added to each entry of a patch.
        transformations: Of each patch one is drawn: "identity", "flip" (of the signs of
            fixed entries), "shift" (a circular one, by one entry).
        seed: Of prototypes and flipped entries.

    Attributes:
        prototypes: `[Z, b]`.

    Raises:
        ValueError: If distributions do not sum to 1, shapes do not fit, or a number or
            a name is out of range.
    """

    def __init__(
        self,
        feature_probs: npt.ArrayLike,
        label_probs: npt.ArrayLike,
        num_patches: int,
        *,
        topic_probs: npt.ArrayLike | None = None,
        width: int = 8,
        noise: float = 0.3,
        transformations: tuple[str, ...] = ("identity",),
        seed: int = 0,
    ) -> None:
        name = "MixedFeatures"
        self.feature_probs = np.atleast_2d(np.asarray(feature_probs, np.float64))
        topics, features = self.feature_probs.shape
        if topic_probs is None:
            topic_probs = np.full(topics, 1 / topics)
        self.topic_probs = np.asarray(topic_probs, np.float64)
        self.label_probs = np.asarray(label_probs, np.float64)
        check_integer(name, "num_patches", num_patches, 1)
        check_integer(name, "width", width, 1)
        check_integer(name, "seed", seed, 0)
        check_range(name, 0.0, np.inf, noise=noise)
        if self.label_probs.ndim != 2 or len(self.label_probs) != features:
            raise ValueError(
                f"{name}: `label_probs` must have axes [Z K] with Z = {features}, "
                f"found shape {self.label_probs.shape}."
            )
        if self.topic_probs.shape != (topics,):
            raise ValueError(
                f"{name}: `topic_probs` must have {topics} entries, found shape "
                f"{self.topic_probs.shape}."
            )
        for argument in ("feature_probs", "label_probs", "topic_probs"):
            _check_distribution(name, argument, getattr(self, argument))
        if not (self.label_probs > 0).all():
            raise ValueError(f"{name}: `label_probs` must be positive.")
        if not transformations:
            raise ValueError(f"{name}: `transformations` must name one at least.")
        for each in transformations:
            check_option(name, "transformations", each, _TRANSFORMATIONS)
        self.num_patches = num_patches
        self.width = width
        self.noise = noise
        self.transformations = tuple(transformations)
        self.seed = seed
        rng = np.random.default_rng([seed, 1])
        self.prototypes = rng.normal(size=(features, width))
        self._signs = rng.choice([-1.0, 1.0], size=width)

    @property
    def num_features(self) -> int:
        """Z."""
        return self.label_probs.shape[0]

    @property
    def num_classes(self) -> int:
        """K."""
        return self.label_probs.shape[1]

    def label_distribution(self, features: npt.ArrayLike) -> np.ndarray:
        """Returns the distribution of the label given features.

        Args:
            features: Int `[..., M]`.

        Returns:
            `[..., K]`.

        Raises:
            ValueError: If features are out of range, or not M.
        """
        found = np.asarray(features)
        if not np.issubdtype(found.dtype, np.integer) or (
            found.shape[-1:] != (self.num_patches,)
        ):
            raise ValueError(
                "MixedFeatures.label_distribution: `features` must be integers "
                f"[... {self.num_patches}], found {found.dtype} of shape {found.shape}."
            )
        if found.size and not (found.min() >= 0 and found.max() < self.num_features):
            raise ValueError(
                "MixedFeatures.label_distribution: `features` must lie in "
                f"[0, {self.num_features}), found {found.min()}..{found.max()}."
            )
        mean = np.log(self.label_probs)[found].mean(axis=-2)
        return scipy.special.softmax(mean, axis=-1)

    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns all combinations of features `[Z^M, M]`, and their probabilities.

        Raises:
            ValueError: If there are too many.
        """
        number = self.num_features**self.num_patches
        if number > _MOST:
            raise ValueError(
                f"MixedFeatures: {self.num_features}^{self.num_patches} = {number:,} "
                f"inputs are too many to enumerate; at most {_MOST:,}."
            )
        axes = [range(self.num_features)] * self.num_patches
        features = np.array(list(itertools.product(*axes)), np.int64)
        by_topic = np.prod(self.feature_probs[:, features], axis=-1)
        return features, self.topic_probs @ by_topic

    def limit_minimiser(self) -> np.ndarray:
        """Returns what a teacher says of each feature with all the data there is.

        A network that sees one patch at a time, and whose log-probabilities are
        averaged, minimises the cross-entropy by the mean label distribution of all
        occurrences of a feature. That is not p_Y(. | z): labels come from mixtures.

        Returns:
            `[Z, K]`; of a feature that never occurs, not-a-number.

        Raises:
            ValueError: If there are too many combinations of features.
        """
        features, probs = self.inputs()
        labels = probs[:, np.newaxis] * self.label_distribution(features)
        sums = np.zeros([self.num_features, self.num_classes])
        occurrences = np.zeros(self.num_features)
        for patch in range(self.num_patches):
            np.add.at(sums, features[:, patch], labels)
            np.add.at(occurrences, features[:, patch], probs)
        with np.errstate(invalid="ignore"):
            return sums / occurrences[:, np.newaxis]

    def sample(self, count: int, seed: int) -> MixedSample:
        """Draws labelled inputs.

        Args:
            count: N.
            seed: Of features, transformations, noise and labels.

        Raises:
            ValueError: If `count` is not positive or `seed` negative.
        """
        check_integer("MixedFeatures.sample", "count", count, 1)
        check_integer("MixedFeatures.sample", "seed", seed, 0)
        rng = np.random.default_rng([self.seed, 2, seed])
        topics = rng.choice(len(self.topic_probs), size=count, p=self.topic_probs)
        edges = np.cumsum(self.feature_probs, axis=1)
        draws = rng.random([count, self.num_patches, 1])
        # Rounding may leave the last edge below 1.
        features = (draws >= edges[topics][:, np.newaxis, :-1]).sum(axis=-1)
        probs = self.label_distribution(features)
        draws = rng.random([count, 1])
        labels = (draws >= np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)
        x = self._transformed(self.prototypes[features], rng)
        x += self.noise * rng.normal(size=x.shape)
        return MixedSample(x.astype(np.float32), features, labels, probs)

    def _transformed(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        chosen = rng.integers(len(self.transformations), size=x.shape[:2])
        forms = {"identity": x, "flip": x * self._signs, "shift": np.roll(x, 1, -1)}
        stacked = np.stack([forms[each] for each in self.transformations])
        return np.take_along_axis(stacked, chosen[np.newaxis, ..., np.newaxis], 0)[0]


def _check_distribution(name: str, argument: str, probs: np.ndarray) -> None:
    sums = probs.sum(axis=-1)
    if not (probs >= 0).all() or not np.allclose(sums, 1, atol=1e-6):
        raise ValueError(
            f"{name}: `{argument}` must be probabilities that sum to 1, found sums "
            f"{np.round(np.ravel(sums)[:4], 4)}."
        )
