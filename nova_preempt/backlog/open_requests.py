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
"""Reads open requests, with what a pass needs of their bodies."""

import dataclasses

from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import redaction
from nova_preempt.db import backlog as db


class OpenRequests:
    """Reads each body once: it does not change while a request is open.

    :param database: a nova_preempt.db.Database
    """

    def __init__(self, database):
        self._database = database
        self._bodies = {}         # uuid: see redaction.of_pass()

    def read(self):
        """Return the open core Requests; each body has what a pass needs."""
        requests = db.find(self._database, model.OPEN, with_bodies=False)
        there = {item.uuid for item in requests}
        self._bodies = {uuid: body for uuid, body in self._bodies.items()
                        if uuid in there}
        for uuid, body in db.bodies(self._database,
                                    there - self._bodies.keys()):
            self._bodies[uuid] = redaction.of_pass(body)
        # Without those that were forgotten between the two.
        return [dataclasses.replace(item, body=self._bodies[item.uuid])
                for item in requests if item.uuid in self._bodies]
