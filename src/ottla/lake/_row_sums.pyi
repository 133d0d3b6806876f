# The functions of `_row_sums.c`.

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Words: TypeAlias = npt.NDArray[np.uint64]

# Sets `s` and `t` of each string. Raises ValueError if a string is not within the content.
def bytes_sums(
    content: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int64],
    keys_a: _Words,
    keys_b: _Words,
    sums: _Words,
    weighted: _Words,
    /,
) -> None: ...

# Mixes the next word of each row into `u` and `v`.
def mix_in(words: _Words, key_a: int, key_b: int, low: _Words, high: _Words, /) -> None: ...

# Sets the halves of the hash of each string. Raises ValueError if one is not within the content.
def keyed(
    content: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int64],
    state: _Words,
    low: _Words,
    high: _Words,
    /,
) -> None: ...

# Copies the strings that begin at `starts` to their `bounds` in `target`. Raises ValueError if one
# is not within the content.
def gather(
    content: bytes,
    starts: npt.NDArray[np.int64],
    bounds: npt.NDArray[np.int32],
    target: pa.Buffer,
    /,
) -> None: ...
