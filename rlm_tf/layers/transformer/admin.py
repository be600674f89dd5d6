"""Weights of residual connections by Admin (Liu et al. 2020, arXiv 2004.08249)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_option, check_range

AdminRule = Literal["log", "one", "linear"]
ADMIN_RULES: tuple[AdminRule, ...] = ("log", "one", "linear")


def admin_scale(num_residuals: int, *, rule: AdminRule = "log") -> float:
    """Returns omega of `norm(omega x + f(x))` for outputs that change by O(rule).

        log     sqrt((n + 1) / ln(n + 1) - 1)
        one     sqrt(n)
        linear  1

    Args:
        num_residuals: n, residual connections of the whole network, two a layer.
        rule: How the output may change with n where parameters change.

    Raises:
        ValueError: If `num_residuals` is not positive or the rule unknown.
    """
    check_integer("admin_scale", "num_residuals", num_residuals, 1)
    check_option("admin_scale", "rule", rule, ADMIN_RULES)
    if rule == "linear":
        return 1.0
    if rule == "one":
        return math.sqrt(num_residuals)
    return math.sqrt((num_residuals + 1) / math.log(num_residuals + 1) - 1)


def admin_profile(var_f: npt.ArrayLike) -> np.ndarray:
    """Returns each omega from the variances of what networks add, input first.

        omega_1 = 1,    omega_(i+1)^2 = 1 + sum over j <= i of Var f_j

    Args:
        var_f: Variances `[n]`, measured with all omegas before at these values.

    Returns:
        float64 `[n]`; the last variance counts in none.

    Raises:
        ValueError: If `var_f` is no vector of numbers from 0 on.
    """
    variances = np.asarray(var_f, np.float64)
    if variances.ndim != 1:
        raise ValueError(
            "admin_profile: `var_f` must be a vector, found shape "
            f"{list(variances.shape)}."
        )
    check_range("admin_profile", 0.0, math.inf, var_f=variances)
    before = np.concatenate([[0.0], np.cumsum(variances)])[: len(variances)]
    return np.sqrt(1 + before)
