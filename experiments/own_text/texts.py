"""Five texts from what a system has: documentation, translations, sources."""

from __future__ import annotations

import gettext
import pathlib
import sysconfig

from rlm_tf.data.text.python_docs import python_docs

_MOST_BYTES = 600_000
_SMALL_WORDS = 3_000
_CATALOGUES = pathlib.Path("/usr/share/locale")
# Translated messages of programs under the GPL, which most systems have.
_PROGRAMS = ("git", "coreutils", "gnupg2", "bash", "tar", "findutils", "sed", "grep")

NAMES = ("english", "german", "chinese", "code", "small")


def make_text(name: str, most_bytes: int = _MOST_BYTES) -> str:
    """Returns the first whole lines of one of the texts.

    - english: the language reference of this Python, each paragraph once;
    - german, chinese: messages of git, coreutils, gnupg and others, from their
      translations in /usr/share/locale;
    - code: sources of this Python's standard library, public modules in the order of
      their names;
    - small: the first 3,000 words of the English text.

    Raises:
        FileNotFoundError: If this system has no translations.
        ValueError: If there is no such text.
    """
    if name == "english":
        # A line is a paragraph, and topics quote each other.
        paragraphs = "".join(python_docs().values()).splitlines(keepends=True)
        return _limited("".join(dict.fromkeys(paragraphs)), most_bytes)
    if name == "small":
        words = 0
        lines = []
        for line in make_text("english").splitlines(keepends=True):
            lines.append(line)
            words += len(line.split())
            if words >= _SMALL_WORDS:
                break
        return _limited("".join(lines), most_bytes)
    if name == "code":
        folder = pathlib.Path(sysconfig.get_path("stdlib"))
        return _limited(
            "".join(
                path.read_text("utf-8") for path in sorted(folder.glob("[a-z]*.py"))
            ),
            most_bytes,
        )
    if name in ("german", "chinese"):
        return _limited(_messages("de" if name == "german" else "zh_CN"), most_bytes)
    raise ValueError(f"no text {name!r}; there are {', '.join(NAMES)}.")


def _messages(language: str) -> str:
    folder = _CATALOGUES / language / "LC_MESSAGES"
    found: dict[str, None] = {}
    for program in _PROGRAMS:
        path = folder / f"{program}.mo"
        if not path.is_file():
            continue
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for source, message in catalogue.items():
            # The first is the file's own header.
            if source and isinstance(message, str) and message.strip():
                found[message.rstrip("\n")] = None
    if not found:
        raise FileNotFoundError(
            f"{folder} has no translations of {', '.join(_PROGRAMS)}; install one."
        )
    return "\n".join(found) + "\n"


def _limited(text: str, most_bytes: int) -> str:
    """Returns whole lines of the first part of a text."""
    part = text.encode()[:most_bytes].decode("utf-8", "ignore")
    return part[: part.rindex("\n") + 1]
