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
"""What is known of reservations at one moment, whoever keeps them.

Times are whole seconds since the epoch, intervals half-open: [start, end).
Hosts go by their node name (hypervisor_hostname).
"""

import bisect
import collections
import copy
import dataclasses
import datetime
import math

PENDING = 'pending'
ACTIVE = 'active'
ENDED = 'ended'        # only in an answer to a question after one lease


@dataclasses.dataclass(frozen=True)
class Lease:
    """The hosts that one project has for itself, from start_s to end_s."""

    id: str
    project_id: str
    status: str
    start_s: int
    end_s: int
    hosts: frozenset[str] = frozenset()


class Snapshot:
    """Leases, arranged so that a host is looked up at once.

    :param leases: Leases that are pending or active
    """

    def __init__(self, leases=()):
        self.leases = leases
        self._by_id = {lease.id: lease for lease in leases}
        intervals = collections.defaultdict(list)
        for lease in leases:
            for host in lease.hosts:
                intervals[host].append((lease.start_s, lease.end_s))
        # Of each host (starts, ends), ascending and disjoint.
        self._busy = {host: _merge(found)
                      for host, found in intervals.items()}

    def with_past(self, past):
        """The same with other Leases that somebody has asked after."""
        if not past:
            return self
        snapshot = copy.copy(self)
        snapshot._by_id = {**{lease.id: lease for lease in past},
                           **self._by_id}
        return snapshot

    def get(self, lease_id):
        """The Lease of this id, None if there is none."""
        return self._by_id.get(lease_id)

    def free_s(self, host, now_s):
        """For how many seconds from now on nobody has reserved the host.

        0 if it is reserved now, infinity if no reservation is to come.
        """
        busy = self._busy.get(host)
        if busy is None:
            return math.inf
        starts, ends = busy
        index = bisect.bisect_right(ends, now_s)
        if index == len(ends):
            return math.inf
        return max(0, starts[index] - now_s)


def _merge(intervals):
    starts, ends = [], []
    for start_s, end_s in sorted(intervals):
        if ends and start_s <= ends[-1]:
            ends[-1] = max(ends[-1], end_s)
        elif start_s < end_s:
            starts.append(start_s)
            ends.append(end_s)
    return tuple(starts), tuple(ends)


@dataclasses.dataclass(frozen=True)
class Answer:
    """Where a request that names reservations may go.

    :param hosts: the names of the nodes
    :param reason: why it may go nowhere, '' if it may
    :param known: whether that is for certain
    """

    hosts: frozenset[str] = frozenset()
    reason: str = ''
    known: bool = True


@dataclasses.dataclass(frozen=True)
class View:
    """A snapshot as it is looked at now.

    :param snapshot: a Snapshot, None if none was ever read
    :param fresh: whether it is as new as it must be
    :param fail_open: whether reservations are forgotten while it is not
    """

    snapshot: Snapshot | None
    fresh: bool
    fail_open: bool
    now_s: int

    def free_s(self, host):
        """As a Snapshot's, for a request that names no reservation."""
        if not self.fresh and self.fail_open:
            return math.inf
        if self.snapshot is None:
            return 0
        return self.snapshot.free_s(host, self.now_s)

    def answer(self, lease_ids, project_id):
        """The Answer for a request of a project that names these."""
        if self.snapshot is None or not (self.fresh or self.fail_open):
            return Answer(reason='Reservations cannot be looked up: the lease '
                                 'service does not answer.', known=False)
        hosts = frozenset()
        for lease_id in lease_ids:
            lease = self.snapshot.get(lease_id)
            reason = self._refusal(lease_id, lease, project_id)
            if reason:
                return Answer(reason=reason)
            hosts |= lease.hosts
        return Answer(hosts)

    def _refusal(self, lease_id, lease, project_id):
        # NOTE: the same words for both, or an id could be guessed.
        if lease is None or lease.project_id != project_id:
            return f'There is no reservation {lease_id:.64} of this project.'
        if lease.status == ENDED or lease.end_s <= self.now_s:
            return f'Reservation {lease.id} has ended at {_iso(lease.end_s)}.'
        if lease.status != ACTIVE or self.now_s < lease.start_s:
            return (f'Reservation {lease.id} is not active yet: it starts at '
                    f'{_iso(lease.start_s)}.')
        if not lease.hosts:
            return f'Reservation {lease.id} has no host left.'
        return ''


def _iso(time_s):
    time = datetime.datetime.fromtimestamp(time_s, datetime.timezone.utc)
    return f'{time:%Y-%m-%dT%H:%M:%SZ}'
