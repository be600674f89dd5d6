"""What others do with labels by seed words."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from experiments.kit.seed_procedure import SeedData, tfidf
from rlm_tf.labelling import majority_vote, seed_votes


def peer(arm: str, data: SeedData, seed: int, strength: float) -> np.ndarray:
    """Returns predictions for all documents, int `[N]`, -1 where nothing is said.

    Args:
        arm: "rule" (labels themselves); the others logistic regression of tf-idf, on
            labels of "majority-vote" (a vote a seed, however often it occurs),
            "snorkel" (its LabelModel of a function a seed), "cleanlab" (the rule's,
            filtered by its confident learning), "linear-sklearn" (the rule's).
        data: The documents.
        seed: Of what is drawn.
        strength: C of logistic regression.
    """
    rule = data.documents.rule()
    matches = rule.match(data.documents.texts)
    if arm == "rule":
        return matches.labels
    votes = seed_votes(rule, matches)
    texts = tfidf(data)
    if arm == "majority-vote":
        voted = majority_vote(votes, len(rule.class_names))
        return _learnt(texts, np.where(data.pool, voted, -1), strength)
    labels = np.where(data.pool, matches.labels, -1)
    if arm == "linear-sklearn":
        return _learnt(texts, labels, strength)
    if arm == "snorkel":
        return _learnt(texts, _snorkel(votes, data, seed), strength)
    return _learnt(texts, _filtered(texts, labels, seed, strength), strength)


def _learnt(
    texts: scipy.sparse.csr_matrix, labels: np.ndarray, strength: float
) -> np.ndarray:
    known = labels >= 0
    model = LogisticRegression(C=strength, max_iter=500)
    model.fit(texts[known], labels[known])
    return np.asarray(model.predict(texts))


def _snorkel(votes: np.ndarray, data: SeedData, seed: int) -> np.ndarray:
    """Returns labels of Snorkel's label model, of documents in the pool."""
    from snorkel.labeling.model import LabelModel

    pool = np.flatnonzero(data.pool)
    classes = len(data.documents.class_names)
    model = LabelModel(cardinality=classes, verbose=False)
    model.fit(votes[pool], n_epochs=500, seed=seed, progress_bar=False)
    found = np.full(len(votes), -1)
    # Where no seed is, it says nothing either.
    found[pool] = model.predict(votes[pool], tie_break_policy="abstain")
    found[(votes < 0).all(axis=1)] = -1
    return found


def _filtered(
    texts: scipy.sparse.csr_matrix, labels: np.ndarray, seed: int, strength: float
) -> np.ndarray:
    """Returns the labels that cleanlab does not doubt."""
    from cleanlab.filter import find_label_issues
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    known = np.flatnonzero(labels >= 0)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    probs = cross_val_predict(
        LogisticRegression(C=strength, max_iter=500),
        texts[known],
        labels[known],
        cv=folds,
        method="predict_proba",
    )
    wrong = find_label_issues(labels[known], probs, n_jobs=1)
    found = labels.copy()
    found[known[wrong]] = -1
    return found
