"""What Dong (2025) has: of CIFAR-100, from WRN-40-2 to WRN-40-1 where not said."""

from __future__ import annotations

from collections.abc import Mapping

_PAIR = ("standard", "soteacher-authors")
# Tables 2.1 and B.3: teacher and student, % right.
_WRN_40_1: Mapping[str, tuple[str, str]] = {
    "standard": ("76.38 ± 0.13", "73.73 ± 0.13"),
    "no-CR-authors": ("74.30 ± 0.12", "74.34 ± 0.11"),
    "no-LR": ("76.71 ± 0.16", "73.81 ± 0.15"),
    "soteacher-authors": ("74.95 ± 0.28", "74.35 ± 0.23"),
    "l1": ("73.52 ± 0.05", "73.60 ± 0.15"),
    "mixup": ("77.30 ± 0.20", "73.19 ± 0.21"),
    "cutmix": ("78.42 ± 0.07", "73.61 ± 0.26"),
    "augmix": ("77.80 ± 0.30", "73.83 ± 0.09"),
    "crl": ("76.69 ± 0.16", "74.13 ± 0.29"),
}
# By images and student; digits stand beside the first. Tables 2.1 and 2.2.
_ACCURACIES: Mapping[tuple[str, str], Mapping[str, tuple[str, str]]] = {
    ("cifar100", "wrn-40-1"): _WRN_40_1,
    ("cifar100", "wrn-16-2"): {
        "standard": ("76.38 ± 0.13", "74.87 ± 0.45"),
        "no-CR-authors": ("74.30 ± 0.12", "75.20 ± 0.24"),
        "no-LR": ("76.71 ± 0.16", "75.21 ± 0.13"),
        "soteacher-authors": ("74.95 ± 0.28", "75.39 ± 0.23"),
    },
    # The teacher is a ResNet32x4.
    ("cifar100", "shufflenet-v2"): {
        "standard": ("79.22 ± 0.03", "74.86 ± 0.18"),
        "no-CR-authors": ("77.73 ± 0.17", "76.52 ± 0.52"),
        "no-LR": ("80.01 ± 0.18", "76.23 ± 0.18"),
        "soteacher-authors": ("78.49 ± 0.09", "77.24 ± 0.09"),
    },
    ("tiny-imagenet", "resnet18"): {
        "standard": ("64.94 ± 0.32", "66.19 ± 0.17"),
        "no-CR-authors": ("64.36 ± 0.43", "66.39 ± 0.27"),
        "no-LR": ("64.26 ± 1.54", "66.48 ± 0.43"),
        "soteacher-authors": ("64.88 ± 0.48", "66.83 ± 0.20"),
    },
    ("imagenet", "resnet18"): {
        "standard": ("77.87", "71.30"),
        "soteacher-authors": ("77.11", "71.45"),
    },
}
# Table 2.2, five most probable classes.
_TOP_FIVE: Mapping[str, tuple[str, str]] = {
    "standard": ("84.33 ± 0.40", "85.74 ± 0.21"),
    "no-CR-authors": ("84.10 ± 0.27", "86.05 ± 0.17"),
    "no-LR": ("84.48 ± 0.84", "86.20 ± 0.40"),
    "soteacher-authors": ("84.91 ± 0.41", "86.19 ± 0.22"),
}


def accuracies(data: str, network: str, arm: str) -> tuple[str, str]:
    """Returns what teacher and student have in the thesis, % right; '' of no number.

    Args:
        data: Images; beside digits stands CIFAR-100, WRN-40-2 to WRN-40-1.
        network: The student.
        arm: The teacher.
    """
    place = ("cifar100", "wrn-40-1") if data == "digits" else (data, network)
    return _ACCURACIES.get(place, {}).get(arm, ("", ""))


def top_five(data: str, arm: str) -> tuple[str, str]:
    """Returns the same of the five most probable classes."""
    return _TOP_FIVE.get(arm, ("", "")) if data == "tiny-imagenet" else ("", "")


# Table 2.3, by images and teacher: its ECE and NLL, and both at a fitted temperature.
_UNCERTAINTY: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("cifar100", "wrn-40-2"): {
        "standard": "0.113 / 1.047 / 0.028 / 0.905",
        "soteacher-authors": "0.057 / 0.911 / 0.016 / 0.876",
    },
    ("cifar100", "resnet32x4"): {
        "standard": "0.083 / 0.871 / 0.036 / 0.815",
        "soteacher-authors": "0.037 / 0.777 / 0.021 / 0.764",
    },
    ("tiny-imagenet", "resnet34"): {
        "standard": "0.107 / 1.601 / 0.043 / 1.574",
        "soteacher-authors": "0.070 / 1.496 / 0.028 / 1.505",
    },
}
# Table 2.4, by images and student: students that say what their teacher says, %.
_FIDELITY: Mapping[tuple[str, str], tuple[str, str]] = {
    ("cifar100", "wrn-40-1"): ("76.16 ± 0.14", "77.92 ± 0.27"),
    ("cifar100", "wrn-16-2"): ("76.92 ± 0.29", "79.41 ± 0.11"),
    ("cifar100", "shufflenet-v2"): ("76.63 ± 0.25", "80.36 ± 0.13"),
    ("tiny-imagenet", "resnet18"): ("71.33 ± 0.07", "73.36 ± 0.25"),
}


def uncertainty(data: str, network: str, arm: str) -> str:
    """Returns ECE and NLL of a teacher in the thesis, before and after a temperature.

    Args:
        data: Images; beside digits stands CIFAR-100, WRN-40-2.
        network: The teacher's.
        arm: How it was trained.
    """
    place = ("cifar100", "wrn-40-2") if data == "digits" else (data, network)
    return _UNCERTAINTY.get(place, {}).get(arm, "")


def fidelity(data: str, network: str, arm: str) -> str:
    """Returns how often students say what teachers do in the thesis, %.

    Args:
        data: Images; beside digits stands CIFAR-100, WRN-40-2 to WRN-40-1.
        network: The student's.
        arm: How the teacher was trained.
    """
    place = ("cifar100", "wrn-40-1") if data == "digits" else (data, network)
    pair = _FIDELITY.get(place)
    return dict(zip(_PAIR, pair, strict=True)).get(arm, "") if pair else ""


# Table B.2: students of the standard teacher and of the thesis', % right.
METHODS: Mapping[str, tuple[str, str]] = {
    "fitnet": ("74.06 ± 0.20", "74.88 ± 0.15"),
    "at": ("73.78 ± 0.40", "75.12 ± 0.17"),
    "sp": ("73.54 ± 0.20", "74.71 ± 0.19"),
    "cc": ("73.46 ± 0.12", "74.76 ± 0.16"),
    "vid": ("73.88 ± 0.30", "74.89 ± 0.19"),
    "rkd": ("73.41 ± 0.47", "74.66 ± 0.08"),
    "pkt": ("74.14 ± 0.43", "74.89 ± 0.16"),
    "ab": ("73.93 ± 0.35", "74.86 ± 0.10"),
    "ft": ("73.80 ± 0.15", "74.75 ± 0.13"),
    "nst": ("73.95 ± 0.41", "74.74 ± 0.14"),
    "crd": ("74.44 ± 0.11", "75.06 ± 0.37"),
    "sskd": ("75.82 ± 0.22", "75.94 ± 0.18"),
    "rco": ("74.50 ± 0.32", "74.81 ± 0.04"),
}
