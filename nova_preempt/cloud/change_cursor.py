# SPDX-License-Identifier: Apache-2.0
"""Cursor of the changes that were read of each cell.

A cell is read as a whole once, then for changes since the last reading.
Servers that were deleted and archived after that are in no list of changes:
whole readings after a pause, and periodically, detect them.

Nova's services date changes by their own clocks. If our clock is ahead of
theirs it would skip changes, and if it is set back a new reading would be
dated before an old one. So readings are ordered by their beginning and dated
by the changes that they have read: a server that was changed at a certain time
was read later, so at least as much time has passed by the clock that dated the
change as by our monotonic clock. If the clock of one Nova service is ahead of
all others, our own clock is the bound. If our clock was set, it is taken to
have always been so: the clocks of Nova's services on the same host were set
with it.

If clocks of Nova's services differ by more than the overlap, changes are
skipped at first. The next whole reading has a longer overlap and finds them.
"""

import dataclasses
import datetime
import itertools
import time

from oslo_utils import timeutils

from nova_preempt.cloud import instances

# Changes are read from this long before the last reading, since clocks of
# other hosts may be late, in seconds.
OVERLAP_S = 30

# A whole reading, which detects archived servers, follows a pause of GAP_S. It
# is also due WHOLE_S after the last one, for "archive_deleted_rows" may take
# rows that were deleted just before.
GAP_S = 120
WHOLE_S = 3600

# The overlap of a whole reading with the last one, in seconds.
WHOLE_OVERLAP_S = 3600


@dataclasses.dataclass(frozen=True)
class _Moment:
    """A moment by both of our clocks.

    :ivar wall: the wall clock, a naive datetime in UTC, which may jump
    :ivar steady_s: the monotonic clock
    """

    wall: datetime.datetime
    steady_s: float

    def is_within(self, seconds, earlier):
        """Return whether an earlier moment is this close by both clocks.

        The clocks differ if the machine was suspended or its clock was set.
        """
        return (self.steady_s - earlier.steady_s <= seconds and abs(
            (self.wall - earlier.wall).total_seconds()) <= seconds)

    def then(self, earlier):
        """Return the wall time of an earlier moment by the present clock."""
        return self.wall - datetime.timedelta(
            seconds=self.steady_s - earlier.steady_s)


@dataclasses.dataclass
class CellReading:
    """A reading of a cell.

    :ivar number: grows with each reading
    :ivar changes: filters of the changes; of all servers if it is the first
    :ivar is_first: whether the cell was not read before
    :ivar whole: whether known servers may have been archived since
    :ivar latest: the time of the latest change that it has read
    """

    cell_uuid: str
    number: int
    began: _Moment
    changes: dict
    is_first: bool
    whole: bool
    latest: datetime.datetime | None = None

    def saw(self, instances):
        """Note the Instances that were read."""
        for instance in instances:
            changed_at = instance.updated_at or instance.created_at
            if changed_at is not None:
                changed_at = timeutils.normalize_time(changed_at)
                if self.latest is None or changed_at > self.latest:
                    self.latest = changed_at


@dataclasses.dataclass
class _Cell:
    """The last readings of a cell.

    :ivar last: when the last successful CellReading began
    :ivar number: its number
    :ivar whole: when the last successful whole CellReading began
    :ivar zero: the earliest time of the cell's clock when our monotonic clock
        was at 0, None if unknown
    """

    last: _Moment
    number: int
    whole: _Moment
    zero: datetime.datetime | None = None

    def changes(self, now, whole):
        """Return the filters of changes that may be unread."""
        if self.zero is None:
            return instances.PRESENT
        last, overlap_s = ((self.whole, WHOLE_OVERLAP_S) if whole
                           else (self.last, OVERLAP_S))
        since = min(last.wall, now.then(last), self.zero + datetime.timedelta(
            seconds=last.steady_s))
        return {'changes-since': since - datetime.timedelta(seconds=overlap_s)}


class ChangeCursor:
    """Remembers the readings of cells. Thread-safe.

    :param monotonic: a monotonic clock in seconds
    """

    def __init__(self, monotonic=time.monotonic):
        self._monotonic = monotonic
        self._numbers = itertools.count(1)
        self._cells = {}          # uuid: _Cell

    def __bool__(self):
        """Return whether any cell has been read."""
        return bool(self._cells)

    def begin(self, cell_uuid):
        """Begin a CellReading of a cell."""
        now = _Moment(timeutils.utcnow(), self._monotonic())
        cell = self._cells.get(cell_uuid)
        if cell is None:
            return CellReading(cell_uuid, next(self._numbers), now,
                               instances.PRESENT, is_first=True, whole=True)
        whole = not (now.is_within(GAP_S, cell.last)
                     and now.is_within(WHOLE_S, cell.whole))
        return CellReading(
            cell_uuid, next(self._numbers), now, cell.changes(now, whole),
            is_first=False, whole=whole)

    def age_s(self, reading):
        """Return how long ago a CellReading began."""
        return self._monotonic() - reading.began.steady_s

    def forget(self, others):
        """Forget all cells but these."""
        for cell_uuid in self._cells.keys() - others:
            del self._cells[cell_uuid]

    def is_outdated(self, reading):
        """Return whether a reading that began later has succeeded."""
        cell = self._cells.get(reading.cell_uuid)
        return cell is not None and cell.number > reading.number

    def done(self, reading):
        """Note that a CellReading has succeeded."""
        old = self._cells.get(reading.cell_uuid)
        zero = old and old.zero
        if reading.latest is not None:
            latest = reading.latest - datetime.timedelta(
                seconds=self._monotonic())
            # A Nova clock that was set back counts after a whole reading.
            zero = latest if zero is None or reading.whole else max(
                zero, latest)
        self._cells[reading.cell_uuid] = _Cell(
            reading.began, reading.number,
            reading.began if reading.whole else old.whole, zero)
