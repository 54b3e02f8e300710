"""Changes to bytes, text, JSON and arrays, of the kind that damage and malice make."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator

# What numbers in text become.
NUMBERS = (
    "", "-1", "0", "1", "-0", "00", "007", "+1", "1.", ".5", "1e3", "1e999", "1e-999", "-1e400", "nan", "NaN", "-inf",
    "Infinity", "1_000", "0x10", "1,5", "1e", "--1", "1.2.3", "2147483646", "2147483647", "2147483648", "4294967296",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 400, "0." + "1" * 5000, "1" * 5000,
    "1e-5000", "5e-324", "1.7976931348623157e308", "é", "١٢", "x", '"', '""', "\0", "\0" * 9, "True", "None", " ",
)  # fmt: skip
LEAVES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, 2**31, 2**63, 2**70, 10**400, 0.5, -0.5, 1e-300, 1e300, float("nan"),
    float("inf"), -float("inf"), "", "rbf", "cuda", "x" * 300, "\ud800", "\0", "<script>", [], [[]], [0], {}, {"": 0},
)  # fmt: skip
SIGNS = (b"", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b" ", b"::", b'"', b"#", b"\xff")
PIECES = (b"\n" * 1000, b"," * 300, b"a" * 100_000, b"0" * 3000, b"\xef\xbb\xbf", b'"a\n', b"#")
WORDS = (b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"\0" * 7 + b"\x80")
_NUMBER = re.compile(rb"[-+]?[0-9][0-9.eE+-]*")


def one_of(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def changed_bytes(rng: Rng, content: bytes) -> bytes:
    """Some bytes changed, inserted, lost or repeated."""
    data = bytearray(content)
    for _ in range(int(rng.geometric(0.5))):
        size = len(data)
        place, length = int(rng.integers(size + 1)), int(min(size, rng.geometric(0.1)))
        match int(rng.integers(8)):
            case 0 if size:
                data[place % size] ^= 1 << int(rng.integers(8))
            case 1 if size:
                data[place % size] = int(rng.integers(256))
            case 2:
                data[place:place] = rng.bytes(length)
            case 3:
                del data[place : place + length]
            case 4:
                data[place:place] = data[place : place + length] * int(rng.integers(1, 50))
            case 5:
                del data[place:]
            case 6:
                data[place : place + 8] = one_of(
                    rng, (b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"\0" * 7 + b"\x80")
                )
            case _:
                other = int(rng.integers(size + 1))
                data[place : place + length] = data[other : other + length]
    return bytes(data)


def changed_text(rng: Rng, content: bytes) -> bytes:
    """Numbers, words and lines of a text changed; now and then bytes."""
    for _ in range(int(rng.geometric(0.5))):
        match int(rng.integers(7)):
            case 0 | 1:
                content = _changed_number(rng, content)
            case 2:
                content = _changed_lines(rng, content)
            case 3:
                old = one_of(rng, (b",", b"\n", b":", b" ", b";", b".", b"1", b"e"))
                new = one_of(
                    rng, (b"", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b" ", b"::", b'"', b"#", b"\xff")
                )
                content = content.replace(old, new, int(rng.integers(1, 4)) if rng.random() < 0.7 else -1)
            case 4:
                place = int(rng.integers(len(content) + 1))
                piece = one_of(
                    rng, (b"\n" * 1000, b"," * 300, b"a" * 100_000, b"0" * 3000, b"\xef\xbb\xbf", b'"a\n', b"#")
                )
                content = content[:place] + piece + content[place:]
            case _:
                content = changed_bytes(rng, content)
    return content


def _changed_number(rng: Rng, content: bytes) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    number = one_of(rng, found)
    return content[: number.start()] + one_of(rng, NUMBERS).encode() + content[number.end() :]


def _changed_lines(rng: Rng, content: bytes) -> bytes:
    lines = content.split(b"\n")
    number = int(rng.integers(len(lines)))
    match int(rng.integers(4)):
        case 0:
            del lines[number]
        case 1:
            lines.insert(number, one_of(rng, lines or [b""]))
        case 2:
            rng.shuffle(lines)
        case _:
            lines[number] = lines[number] * int(rng.integers(2, 5))
    return b"\n".join(lines)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a value of JSON."""
    yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))


def changed_json(rng: Rng, value: Any) -> Any:
    """Some values of JSON changed, lost or moved."""
    value = copy.deepcopy(value)
    for _ in range(int(rng.geometric(0.6))):
        places = [place for place in leaves(value) if place]
        if not places:
            return one_of(rng, LEAVES)
        *keys, last = one_of(rng, places)
        inner = value
        for key in keys:
            inner = inner[key]
        old = inner[last]
        match int(rng.integers(5)):
            case 0:
                del inner[last]
            case 1 if isinstance(old, (int, float)) and not isinstance(old, bool):
                half = old // 2 if isinstance(old, int) else old / 2  # of whole numbers of any length
                inner[last] = one_of(rng, (old + 1, -old, old * 2, half, str(old)[:300]))
            case 2 if isinstance(inner, dict):
                inner[one_of(rng, ("more", str(last) + "x"))] = old
            case _:
                inner[last] = copy.deepcopy(one_of(rng, LEAVES))
    return value


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", errors="surrogatepass")


def changed_array(rng: Rng, array: np.ndarray) -> np.ndarray:
    """Values, shape or type of an array changed."""
    array = array.copy()
    changes: list[Callable[[], np.ndarray]] = [
        lambda: array[:-1] if array.ndim and len(array) else array,
        lambda: array[:0] if array.ndim else array[None],
        lambda: np.concatenate((array, array)) if array.ndim else array[None],
        lambda: array[None],
        lambda: array.reshape(-1),
        lambda: array.T.copy(),
        lambda: array[::-1].copy() if array.ndim else array,
        lambda: np.zeros_like(array),
    ]
    if array.dtype.kind in "biuf":
        numbers = array.astype(np.float64) if array.dtype.kind == "b" else array
        changes += [
            lambda: array.astype(one_of(rng, ("i1", "i4", "i8", "u8", "f2", "f4", "f8", "c16", "?", "U", "S"))),
            lambda: numbers * array.dtype.type(2),
            lambda: -numbers,
            lambda: numbers + array.dtype.type(1),
            lambda: numbers[..., rng.permutation(array.shape[-1])] if array.ndim else numbers,
        ]
        changes += [lambda: _one_value_changed(rng, array)] * 8
    with np.errstate(all="ignore"):
        return np.asarray(one_of(rng, changes)())


def _one_value_changed(rng: Rng, array: np.ndarray) -> np.ndarray:
    if not array.size:
        return array
    places = rng.integers(array.size, size=int(rng.integers(1, 4)))
    if array.dtype.kind == "f":
        old = float(array.flat[places[0]])
        array.flat[places] = one_of(rng, (np.nan, np.inf, 1e300, 0.0, -1.0, 1.0, old + 1e-3, -old, old * (1 + 1e-9)))
    elif array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        array.flat[places] = one_of(rng, (0, 1, info.min, info.max, array.size, int(array.flat[places[0]]) ^ 1))
    return array
