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
"""Reading something of each cell, none of which may hold up the others.

A database that does not answer blocks whoever asks it, perhaps for ever: its
driver waits without end unless its connection says otherwise. So each cell is
read in a thread of its own, one at a time, and who needs the result waits for
no longer than a limit. What comes later still counts. After a pause that
doubles each time another thread tries, over a connection of its own.
"""

import dataclasses
import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# Nova's own limit, 60 s, is that of a user who waits for a list of servers.
# A request for a server, which may have to look several times, has less.
LIMIT_S = 10

# So many threads may hang at a cell, beside the last one that tries. A pool
# keeps five connections by default, all of which may be dead.
ABANDONED = 8
LONGEST_PAUSE_S = 600


@dataclasses.dataclass
class _Cell:
    """How far the reading of a cell is.

    Readings are numbered: time may stand still.
    """

    running: int | None = None     # the number of the reading under way
    since: float = 0.0             # when that began
    number: int = 0                # of the last one that is over
    ok: bool = True                # whether that succeeded
    failure: str | None = None     # why it did not, None if it did
    retries: bool = False          # whether others hang, and it tries anew
    # The numbers of the others.
    hanging: set[int] = dataclasses.field(default_factory=set)
    told: int | None = None        # the number of that which was told of last


def start_thread(run):
    """Run it beside everything else; the process need not wait for it."""
    threading.Thread(target=run, name='cell', daemon=True).start()


class Readings:
    """Reads cells.

    :param get_cells: returns {uuid: CellMapping}
    :param read: called with a CellMapping; what it raises is logged, once
        as long as it says the same
    :param limit_s: how long anybody waits
    :param monotonic: the clock
    :param start: has a function run, in a thread
    :param wait: waits for a threading.Condition for so many seconds
    :param consequence: what it means that a cell cannot be read, for the log
    """

    def __init__(self, get_cells, read, limit_s=LIMIT_S,
                 monotonic=time.monotonic, start=start_thread,
                 wait=threading.Condition.wait,
                 consequence='none of its preemptible servers is chosen to '
                             'end until it can be read'):
        self._get_cells = get_cells
        self._read = read
        self._limit_s = limit_s
        self._monotonic = monotonic
        self._start = start
        self._wait = wait
        self._consequence = consequence
        self._changed = threading.Condition()
        self._cells = {}          # uuid: _Cell
        self._numbers = 0

    def read(self):
        """Read all cells now, or share what somebody begins to read now.

        Cells of which a reading takes longer than the limit are not waited
        for, and read once more, by another thread, only after a pause.
        """
        mappings = dict(self._get_cells())
        with self._changed:
            # By one look at the clock: what has not ended when this does is
            # late then.
            asked, now = self._numbers, self._monotonic()
            until = now + self._limit_s
            for uuid in self._cells.keys() - mappings.keys():
                del self._cells[uuid]
            begin = [(mapping, self._begin(cell, now))
                     for mapping, cell in self._due(mappings)]
        while True:
            self._begin_all(begin)
            with self._changed:
                left_s = until - self._monotonic()
                pending = self._pending(mappings, asked)
                if not pending or left_s <= 0:
                    self._tell(mappings)
                    return
                begin = [(mapping, self._begin(cell, now))
                         for mapping, cell in pending if cell.running is None]
                if not begin:
                    self._wait(self._changed, left_s)
                    now = self._monotonic()

    def _begin_all(self, begin):
        for mapping, number in begin:
            self._start(lambda mapping=mapping, number=number:
                        self._run(mapping, number))

    def _due(self, mappings):
        """[(CellMapping, _Cell)] of those that another thread is to try."""
        return [(mappings[uuid], cell) for uuid, cell in self._cells.items()
                if self._is_late(cell) and len(cell.hanging) < ABANDONED
                and self._monotonic() - cell.since >= self._pause_s(cell)]

    def _pause_s(self, cell):
        return min(LONGEST_PAUSE_S, self._limit_s * 2 ** (
            len(cell.hanging) + 1))

    def _tell(self, mappings):
        """Say once of each reading that it hangs."""
        for uuid, cell in self._cells.items():
            if cell.told != cell.running and self._is_over(cell):
                cell.told = cell.running
                LOG.warning(
                    'Cell %(cell)s does not answer within %(limit)s s; '
                    '%(consequence)s. %(next)s', {
                        'cell': mappings[uuid].identity
                        if uuid in mappings else uuid,
                        'limit': self._limit_s,
                        'consequence': self._consequence,
                        'next': f'Another thread tries in '
                                f'{self._pause_s(cell)} s.'
                        if len(cell.hanging) < ABANDONED else
                        f'{ABANDONED + 1} threads wait for it; no other one '
                        'tries before one of them has an answer.'})

    def _pending(self, mappings, asked):
        """[(CellMapping, _Cell)] of those to wait for."""
        cells = [(mapping, self._cells.setdefault(uuid, _Cell()))
                 for uuid, mapping in mappings.items()]
        return [(mapping, cell) for mapping, cell in cells
                if cell.number <= asked and not self._is_late(cell)]

    def unreadable(self):
        """The uuids of cells whose last reading failed, or takes too long."""
        with self._changed:
            return {uuid for uuid, cell in self._cells.items()
                    if not cell.ok or self._is_late(cell)}

    def hanging(self):
        """The uuids of cells that do not answer."""
        with self._changed:
            return {uuid for uuid, cell in self._cells.items()
                    if self._is_late(cell)}

    def _is_late(self, cell):
        return cell.running is not None and (
            cell.retries or self._is_over(cell))

    def _is_over(self, cell):
        return (cell.running is not None
                and self._monotonic() >= cell.since + self._limit_s)

    def _begin(self, cell, now):
        self._numbers += 1
        # Nobody waits for one that takes the place of one that hangs.
        cell.retries = cell.running is not None
        if cell.retries:
            cell.hanging.add(cell.running)
        cell.running = self._numbers
        cell.since = now
        return cell.running

    def _run(self, mapping, number):
        ok = False
        try:
            self._read(mapping)
            ok = True
            if self._is_news(mapping, None):
                LOG.info('The servers of cell %s can be read again.',
                         mapping.identity)
        except Exception as exc:
            if self._is_news(mapping, f'{type(exc).__name__}: {exc}'):
                LOG.exception('Cannot read the servers of cell %(cell)s; '
                              '%(consequence)s.',
                              {'cell': mapping.identity,
                               'consequence': self._consequence})
        finally:
            with self._changed:
                cell = self._cells.get(mapping.uuid)
                if cell is not None:
                    self._end(cell, number, ok)
                self._changed.notify_all()

    def _is_news(self, mapping, failure):
        """Whether a reading has ended otherwise than the one before.

        A record that Nova cannot read fails each time, which is each second.
        """
        with self._changed:
            cell = self._cells.get(mapping.uuid)
            if cell is None or cell.failure == failure:
                return False
            cell.failure = failure
            return True

    @staticmethod
    def _end(cell, number, ok):
        if cell.running == number:
            cell.running = None
            cell.retries = False
        cell.hanging.discard(number)
        if number > cell.number:
            cell.number = number
            cell.ok = ok
