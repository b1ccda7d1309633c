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
from nova_preempt.core.reservation import limits as core
from nova_preempt.db import reservable

LIMITS = core.LIMITS


class Limits(core.Limits):
    """The limits of one project.

    What goes beyond one raises ReservationLimit.
    """

    @classmethod
    def load(cls, conf, database, project_id):
        """Read the limits of the options, and the project's own instead."""
        own = reservable.get_limits(database, project_id)
        return cls({name: own.get(name, conf.reservation[name])
                    for name in LIMITS})

    def check(self, name, asked, used=0):
        try:
            super().check(name, asked, used)
        except core.LimitExceeded as exc:
            raise exceptions.ReservationLimit(str(exc)) from None
