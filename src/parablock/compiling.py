"""Numba's `njit` and `cfunc`, whose cache on disk may be full, damaged or missing.

Whatever is wrong with the cache costs a compilation and one warning; it never ends a fit. What is kept has a checksum:
compiled code of which a part is lost must not run.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core import event, sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.ccallback import CFunc
from numba.core.serialize import dumps

logger = logging.getLogger("parablock")
_warned: set[str] = set()


def njit(cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """`numba.njit`."""

    def decorate(function: Any) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and dispatcher is not function:  # which it is where NUMBA_DISABLE_JIT is set
            _keep(dispatcher, function)
        return dispatcher

    return decorate


def cfunc(signature: Any, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """`numba.cfunc`, which tells as `numba.njit` does that it compiles."""

    def decorate(function: Any) -> Any:
        callback = _Callback(function, sigutils.normalize_signature(signature), locals={}, options=options)
        if cache:
            _keep(callback, function)
        callback.compile()
        return callback

    return decorate


class _Callback(CFunc):
    def _compile_uncached(self) -> Any:
        with event.trigger_event("numba:compile", data={"dispatcher": self}):
            return super()._compile_uncached()  # type: ignore[misc]

    @property
    def py_func(self) -> Any:
        """As a dispatcher calls it."""
        return self._pyfunc  # type: ignore[attr-defined]


def _keep(compiled: Any, function: Any) -> None:
    """Keep what is compiled on disk, where there is a place for it: what Numba's `enable_caching` does."""
    try:
        compiled._cache = _Cache(function)
    except (RuntimeError, OSError) as error:  # neither beside the source nor in the user's folder
        _warn_once(
            "place",
            f"There is no folder that compiled code could be kept in ({error}): every process compiles for up to a "
            "minute. Set NUMBA_CACHE_DIR to a folder that may be written to.",
        )


class _Checked(CompileResultCacheImpl):
    """With a checksum, in files that Numba's own caches do not use."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"checked-{super().get_filename_base(fullname, abiflags)}"

    def reduce(self, result: Any) -> Any:
        content = dumps(super().reduce(result))
        return hashlib.sha256(content).digest(), content

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        checksum, content = payload
        if hashlib.sha256(content).digest() != checksum:
            raise ValueError("the checksum does not fit the content")
        return super().rebuild(target_context, pickle.loads(content))


class _Cache(FunctionCache):
    _impl_class = _Checked

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(signature, target_context)
        except Exception as error:  # unpickling what is damaged may raise anything
            with suppress(Exception):
                self.flush()  # an empty list of what there is, which will be written anew
            _warn_once(
                "damaged",
                f"Compiled code in {self.cache_path} is damaged ({type(error).__name__}: {error}): it is compiled "
                "again, which takes up to a minute. If later processes say so too, delete the files *.nbi and *.nbc "
                "there.",
            )
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except Exception as error:
            _warn_once(
                "unwritten",
                f"Compiled code could not be kept in {self.cache_path} ({error}): later processes will compile again, "
                "which takes up to a minute. Make room on that disk, delete the files *.nbi and *.nbc there, or set "
                "NUMBA_CACHE_DIR to another folder.",
            )


def _warn_once(what: str, text: str) -> None:
    """In the log and not as a Python warning, which might be set to raise an error in the middle of a compilation."""
    if what not in _warned:
        _warned.add(what)
        logger.warning(text)
