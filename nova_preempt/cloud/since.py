# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Up to when the servers of each cell have been read.

A cell is read once as a whole, then it is asked for what has changed since.
What was deleted and archived after the last reading shows up in no list of
changes: after a pause, and now and then, it is looked for.
"""

import dataclasses
import datetime

from oslo_utils import timeutils

# Changes are read from a little before the last reading, since what a clock
# of another host dates may be late by this much.
OVERLAP_S = 30

# After a pause of this length, in seconds, it is looked for what is gone. And
# so often in any case: an archive takes what was deleted just before, too.
GAP_S = 120
WHOLE_S = 3600

#: The servers of a cell as a whole.
ALL = {'deleted': False, 'soft_deleted': True}


@dataclasses.dataclass(frozen=True)
class Reading:
    """One reading of a cell that begins.

    :ivar last: when the one before began, None for the first one
    :ivar whole: whether what was known may be gone without a trace
    """

    cell_uuid: str
    began: datetime.datetime
    last: datetime.datetime | None
    whole: bool

    @property
    def changes(self):
        """The filters of what has changed, ALL for the first reading."""
        if self.last is None:
            return ALL
        return {'changes-since': self.last - datetime.timedelta(
            seconds=OVERLAP_S)}


class Since:
    """Remembers the readings of cells. One serves many threads."""

    def __init__(self):
        self._last = {}           # cell uuid: when the last reading began
        self._whole = {}          # cell uuid: when the last whole one did

    def __bool__(self):
        """Whether any cell has been read."""
        return bool(self._last)

    def begin(self, cell_uuid):
        """The Reading that begins now."""
        now = timeutils.utcnow()
        last = self._last.get(cell_uuid)
        whole = last is None or (
            (now - last).total_seconds() > GAP_S
            or (now - self._whole[cell_uuid]).total_seconds() > WHOLE_S)
        return Reading(cell_uuid, now, last, whole)

    def forget(self, others):
        """Forget the cells that are none of these: one may come back."""
        for cell_uuid in self._last.keys() - others:
            del self._last[cell_uuid]
            self._whole.pop(cell_uuid, None)

    def is_outdated(self, reading):
        """Whether one that began later has succeeded meanwhile."""
        last = self._last.get(reading.cell_uuid)
        return last is not None and last > reading.began

    def done(self, reading):
        """Go on from this Reading: it has succeeded."""
        if reading.whole:
            self._whole[reading.cell_uuid] = reading.began
        self._last[reading.cell_uuid] = reading.began
