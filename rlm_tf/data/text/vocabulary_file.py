"""The text file of a vocabulary: a header line, then one token per line in id order.

A vocabulary of subwords has its SentencePiece model, in base64, in a line of its own
behind the header, which says version 2.
"""

from __future__ import annotations

import base64
import os
import pathlib
import re
import tempfile

_HEADER = re.compile(r"rlm_tf vocabulary ([12]), rule ([\w-]+), (\d+) tokens")
# Characters that an editor may drop, alter or take for a line end.
_UNSAFE = re.compile(
    "[\\\\\x00-\x20\x7f-\xa0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u3000\ufeff]"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|(.?))", re.DOTALL)


def _escape(token: str) -> str:
    return _UNSAFE.sub(
        lambda match: "\\\\" if match[0] == "\\" else f"\\u{ord(match[0]):04x}",
        token,
    )


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "\\":
            return "\\"
        raise ValueError(f"unknown escape {match[0]!r}")

    return _ESCAPE.sub(character, text)


def write_vocabulary(
    path: str | os.PathLike[str],
    rule: str,
    tokens: list[str],
    model: bytes | None = None,
) -> None:
    """Writes the file beside its place, then renames it there."""
    path = pathlib.Path(path)
    version = 1 if model is None else 2
    lines = [f"rlm_tf vocabulary {version}, rule {rule}, {len(tokens)} tokens"]
    if model is not None:
        lines.append(base64.b64encode(model).decode())
    lines += map(_escape, tokens)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write("\n".join(lines) + "\n")
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def read_vocabulary(
    path: str | os.PathLike[str],
) -> tuple[str, list[str], bytes | None]:
    """Returns (rule, tokens, serialised SentencePiece model or None).

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is malformed; names file and line.
    """
    data = pathlib.Path(path).read_bytes()
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        at = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {at}: not UTF-8 text.") from None
    header = _HEADER.fullmatch(lines[0].rstrip("\r"))
    if header is None:
        raise ValueError(
            f"{path}, line 1: not a vocabulary file: expected 'rlm_tf vocabulary 1, "
            f"rule <rule>, <count> tokens', found {lines[0][:80]!r}."
        )
    rule, expected = header[2], int(header[3])
    if lines[-1] == "":
        lines.pop()
    else:
        raise ValueError(f"{path}, line {len(lines)}: the file ends within a line.")
    first = int(header[1])
    if len(lines) - first != expected:
        raise ValueError(
            f"{path}, line {len(lines)}: expected {expected} tokens, found "
            f"{len(lines) - first}."
        )
    model = None
    if first == 2:
        try:
            model = base64.b64decode(lines[1], validate=True)
        except ValueError:
            raise ValueError(
                f"{path}, line 2: expected a SentencePiece model in base64."
            ) from None
    tokens: dict[str, int] = {}
    for number, line in enumerate(lines[first:], start=first + 1):
        try:
            token = _unescape(line.rstrip("\r"))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}.") from None
        if not token:
            raise ValueError(f"{path}, line {number}: an empty token.")
        if token in tokens:
            raise ValueError(
                f"{path}, line {number}: token {token!r} was already in line "
                f"{tokens[token]}."
            )
        tokens[token] = number
    return rule, list(tokens), model
