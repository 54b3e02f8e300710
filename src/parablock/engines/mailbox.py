"""Ranks that are tasks on a Dask cluster: they talk by mailboxes.

Every worker that takes part holds a mailbox, a Dask actor: other workers put messages into it directly, without the
scheduler or the client in between. The rank on that worker takes them out.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from parablock.engines.talk import BadMessage, RankLost, Talk

T = TypeVar("T")
_LOOK_UP_SECONDS = 2.0  # how often a rank that waits makes sure that its mailbox is still there
_HERE: WeakValueDictionary[str, Mailbox] = WeakValueDictionary()  # the mailboxes in this process


class Mailbox:
    """Messages for one rank, by turn. Dask holds it; once the client is gone it is gone too."""

    def __init__(self, name: str) -> None:
        self._messages: dict[int, Sequence[np.ndarray]] = {}
        self._changed = threading.Condition()
        self._lost = ""
        self._strange = ""
        self._interrupted = threading.Event()
        self._news: list[Any] = []
        self._stop: str | None = None
        _HERE[name] = self

    def put(self, turn: int, message: Sequence[np.ndarray]) -> None:
        with self._changed:
            strange = _what_is_strange(turn, message, self._messages)
            if strange:
                self._strange = strange
            else:
                self._messages[turn] = message
            self._changed.notify_all()

    def lose(self, reason: str) -> None:
        """Do not wait any longer: another rank is gone."""
        with self._changed:
            self._lost = reason
            self._changed.notify_all()

    def interrupt(self) -> None:
        """The user wants to stop."""
        self._interrupted.set()

    def interrupted(self) -> bool:
        """Whether the user wanted to stop since the last time that this was asked."""
        if not self._interrupted.is_set():
            return False
        self._interrupted.clear()
        return True

    def tell(self, news: Any) -> str | None:
        """News for the client, from the rank itself; why the client wants to stop, if it does."""
        with self._changed:
            self._news.append(news)
            return self._stop

    def hear(self) -> list[Any]:
        """What is new, for the client."""
        with self._changed:
            news, self._news = self._news, []
            return news

    def stop(self, why: str) -> None:
        """The client wants to stop when this iteration has ended."""
        with self._changed:
            self._stop = why

    def take(self, turn: int, seconds: float) -> Sequence[np.ndarray] | None:
        """The message of that turn; None if it did not come within so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: turn in self._messages or self._lost or self._strange, timeout=seconds)
            if self._strange:
                raise BadMessage(f"Somebody else puts messages into a mailbox of this fit: {self._strange}.")
            if turn not in self._messages:
                self.look()
            return self._messages.pop(turn, None)

    def look(self) -> None:
        """Raise an error if another rank is gone."""
        if self._lost:
            raise RankLost(self._lost)


def _what_is_strange(turn: Any, message: Any, there: Mapping[int, Any]) -> str:
    """Why no rank has sent this; empty if one may have."""
    if type(turn) is not int or turn < 1:
        return f"one of turn {turn!r:.40}, which is no number of a turn"
    if turn in there:
        return f"two of turn {turn}"
    if not isinstance(message, (list, tuple)) or not message:
        return f"one that is no list of arrays, but {type(message).__name__}"
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 and not part.dtype.hasobject for part in message):
        return "one whose parts are not all arrays of one dimension"
    return ""


class MailboxTalk(Talk):
    """Collective operations by mailboxes.

    Parameters
    ----------
    rank : int
    mailboxes : sequence of Dask actors
        Of all ranks.
    name : str
        Of this rank's own mailbox.
    """

    def __init__(self, rank: int, mailboxes: Sequence[Any], name: str) -> None:
        super().__init__(rank, len(mailboxes))
        self.mailboxes, self.name = mailboxes, name
        self._turn = 0

    def _share_array(self, values: np.ndarray) -> list[np.ndarray]:
        # Bruck's algorithm: what has come doubles in every round, so there are few rounds. `parts` are those of this
        # rank and the ones after it, around the circle.
        parts: list[np.ndarray] = [np.ascontiguousarray(values)]
        while len(parts) < self.size:
            reach, self._turn = len(parts), self._turn + 1
            wanted = min(reach, self.size - reach)
            try:
                sent = self.mailboxes[(self.rank - reach) % self.size].put(self._turn, parts[:wanted])
                came = self._receive(self._turn)
                if len(came) != wanted or any(part.dtype != parts[0].dtype for part in came):
                    raise BadMessage(
                        f"Rank {self.rank} has a message of {len(came)} arrays ({came[0].dtype}) where {wanted} "
                        f"({parts[0].dtype}) were sent: somebody else puts messages into a mailbox of this fit."
                    )
                parts += came
                self._wait(sent)
            except (RankLost, BadMessage):
                raise
            except Exception as error:  # Dask has several for an actor that is gone
                raise RankLost(f"A worker cannot be reached: {error}") from error
        return [parts[(rank - self.rank) % self.size] for rank in range(self.size)]

    def _receive(self, turn: int) -> Sequence[np.ndarray]:
        while True:
            message = self._own().take(turn, _LOOK_UP_SECONDS)
            if message is not None:
                return message

    def _wait(self, sent: Any) -> None:
        while True:
            try:
                return sent.result(timeout=_LOOK_UP_SECONDS)
            except TimeoutError:
                self._own().look()

    def _own(self) -> Mailbox:
        mailbox = _HERE.get(self.name)
        if mailbox is None:
            raise RankLost("The client that started this fit is gone.")
        return mailbox

    def add_up(self, values: np.ndarray, counts: list[int]) -> np.ndarray:
        first = sum(counts[: self.rank])
        return np.sum([part[first : first + counts[self.rank]] for part in self.share_array(values)], axis=0)

    def tell(self, news: Any) -> str | None:
        return self._own().tell(news)

    def interrupted(self) -> bool:
        return self.rank == 0 and self._own().interrupted()
