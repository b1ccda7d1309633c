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
"""How much a project may reserve."""

from nova_preempt import exceptions
from nova_preempt.core.reservation import admission
from nova_preempt.db import reservable

# Names of options in [reservation], and of what a project may have of its
# own. -1 is no limit.
LIMITS = ('max_reservations', 'max_hosts', 'max_duration_s', 'max_advance_s',
          'max_created_per_day')


class Limits:
    """The limits of one project.

    :param values: {name in LIMITS: number}
    """

    def __init__(self, values):
        self._values = values

    @classmethod
    def load(cls, conf, database, project_id):
        """Those of the options, with the project's own in their place."""
        own = reservable.get_limits(database, project_id)
        return cls({name: own.get(name, conf.reservation[name])
                    for name in LIMITS})

    def get(self, name):
        """The limit, None if there is none."""
        value = self._values[name]
        return None if value < 0 else value

    def check(self, name, asked, used=0):
        """Refuse what goes beyond a limit.

        :raises ReservationLimit:
        """
        allowed = self.get(name)
        if allowed is not None and used + asked > allowed:
            raise exceptions.ReservationLimit(
                f'The limit {name} would be exceeded: {allowed} allowed, '
                f'{used} used, {asked} asked for.')

    def check_request(self, wanted, now_s):
        """Refuse what would be too much whenever it starts.

        :param wanted: an asked.Wanted
        """
        self.check('max_hosts', wanted.quantity)
        self.check('max_duration_s', wanted.duration_s)
        self.check('max_advance_s', wanted.window_start_s - now_s)

    def check_usage(self, quantity, start_s, end_s, others):
        """Refuse what would be too much with what the project has.

        :param others: its other open Reservations
        """
        self.check('max_reservations', 1, len(others))
        self.check_hosts(quantity, start_s, end_s, others)

    def check_hosts(self, quantity, start_s, end_s, others):
        if self.get('max_hosts') is not None:
            self.check('max_hosts', quantity,
                       admission.hosts_at_once(others, start_s, end_s))
