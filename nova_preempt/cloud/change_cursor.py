# SPDX-License-Identifier: Apache-2.0
"""Up to when the servers of each cell have been read.

A cell is read once as a whole, then it is asked for what has changed since.
What was deleted and archived after the last reading shows up in no list of
changes: after a pause, and now and then, it is looked for.

Nova's services date changes by their own clocks. A clock of ours that is ahead
of them would skip changes, and one that is set back would put a new reading
before an old one. So readings are in the order in which they begin, and are
dated by the changes that they have read: a server that was changed at a
certain time was read later, so by the clock that has dated it at least as much
time has passed since as by a clock of ours that only goes on. Where one
service of Nova is ahead of all others our own clock is the bound. A clock of
ours that was set anew counts as if it had always been so: those of Nova's
services on the same host were set with it.

Where clocks of Nova's services differ by more than the overlap, changes are
skipped at first. The next reading as a whole looks back for longer and finds
them.
"""

import dataclasses
import datetime
import itertools
import time

from oslo_utils import timeutils

from nova_preempt.cloud import instances

# Changes are read from a little before the last reading, since what a clock
# of another host dates may be late by this much.
OVERLAP_S = 30

# After a pause of this length, in seconds, it is looked for what is gone. And
# so often in any case: an archive takes what was deleted just before, too.
GAP_S = 120
WHOLE_S = 3600

# A reading as a whole looks back so long before the last one of its kind.
WHOLE_OVERLAP_S = 3600


@dataclasses.dataclass(frozen=True)
class _Moment:
    """A moment by both clocks of ours.

    :ivar wall: a naive datetime in UTC, which may jump
    :ivar steady_s: seconds that only grow
    """

    wall: datetime.datetime
    steady_s: float

    def is_within(self, seconds, earlier):
        """Whether it is no longer after an earlier one, by either clock.

        A machine that was suspended tells by the one, a clock that was set by
        the other.
        """
        return (self.steady_s - earlier.steady_s <= seconds and abs(
            (self.wall - earlier.wall).total_seconds()) <= seconds)

    def then(self, earlier):
        """Return an earlier time as the wall clock, set as now, tells it."""
        return self.wall - datetime.timedelta(
            seconds=self.steady_s - earlier.steady_s)


@dataclasses.dataclass
class Reading:
    """One reading of a cell that begins.

    :ivar number: of the readings that begin later it is higher
    :ivar changes: filters of what has changed; of all for the first reading
    :ivar is_first: whether nothing is known of the cell
    :ivar whole: whether what was known may be gone without a trace
    :ivar latest: when the latest change was made that it has read
    """

    cell_uuid: str
    number: int
    began: _Moment
    changes: dict
    is_first: bool
    whole: bool
    latest: datetime.datetime | None = None

    def saw(self, instances):
        """Learn the Instances that were read."""
        for instance in instances:
            changed_at = instance.updated_at or instance.created_at
            if changed_at is not None:
                changed_at = timeutils.normalize_time(changed_at)
                if self.latest is None or changed_at > self.latest:
                    self.latest = changed_at


@dataclasses.dataclass
class _Cell:
    """How far a cell was read.

    :ivar last: when the last Reading began that has succeeded
    :ivar number: of that one
    :ivar whole: the same of the last one as a whole
    :ivar zero: by the clock of the cell it was at least that late when our
        steady clock was at 0; None while nothing tells
    """

    last: _Moment
    number: int
    whole: _Moment
    zero: datetime.datetime | None = None

    def changes(self, now, whole):
        """The filters of what may not have been read."""
        if self.zero is None:
            return instances.PRESENT
        last, overlap_s = ((self.whole, WHOLE_OVERLAP_S) if whole
                           else (self.last, OVERLAP_S))
        since = min(last.wall, now.then(last), self.zero + datetime.timedelta(
            seconds=last.steady_s))
        return {'changes-since': since - datetime.timedelta(seconds=overlap_s)}


class ChangeCursor:
    """Remembers the readings of cells. One serves many threads.

    :param monotonic: a clock of seconds that only grow
    """

    def __init__(self, monotonic=time.monotonic):
        self._monotonic = monotonic
        self._numbers = itertools.count(1)
        self._cells = {}          # uuid: _Cell

    def __bool__(self):
        """Whether any cell has been read."""
        return bool(self._cells)

    def begin(self, cell_uuid):
        """The Reading that begins now."""
        now = _Moment(timeutils.utcnow(), self._monotonic())
        cell = self._cells.get(cell_uuid)
        if cell is None:
            return Reading(cell_uuid, next(self._numbers), now,
                           instances.PRESENT, is_first=True, whole=True)
        whole = not (now.is_within(GAP_S, cell.last)
                     and now.is_within(WHOLE_S, cell.whole))
        return Reading(
            cell_uuid, next(self._numbers), now, cell.changes(now, whole),
            is_first=False, whole=whole)

    def age_s(self, reading):
        """How long ago a Reading began."""
        return self._monotonic() - reading.began.steady_s

    def forget(self, others):
        """Forget the cells that are none of these: one may come back."""
        for cell_uuid in self._cells.keys() - others:
            del self._cells[cell_uuid]

    def is_outdated(self, reading):
        """Whether one that began later has succeeded meanwhile."""
        cell = self._cells.get(reading.cell_uuid)
        return cell is not None and cell.number > reading.number

    def done(self, reading):
        """Go on from this Reading: it has succeeded."""
        old = self._cells.get(reading.cell_uuid)
        zero = old and old.zero
        if reading.latest is not None:
            latest = reading.latest - datetime.timedelta(
                seconds=self._monotonic())
            # A clock of Nova that was set back counts once all is read.
            zero = latest if zero is None or reading.whole else max(
                zero, latest)
        self._cells[reading.cell_uuid] = _Cell(
            reading.began, reading.number,
            reading.began if reading.whole else old.whole, zero)
