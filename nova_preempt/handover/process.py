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
"""Who acts: this process, in the database that all of them share."""

import os

from oslo_concurrency import lockutils

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import pauses
from nova_preempt.db import schema
from nova_preempt.handover import heartbeat
from nova_preempt.handover import owner


class Process:
    """One that ends servers, alive from start() to close().

    :param conf: nova.conf.CONF
    :param host: the name of the host that it runs on
    :param clock: returns now, timezone-aware
    :ivar options: [preemption] of the configuration
    """

    def __init__(self, conf, host, clock):
        self.options = conf.preemption
        self.clock = clock
        self.db = db.Database(conf)
        self.decisions = db.Decisions(self.db)
        self._sync_database(conf)
        self.owner = owner.Owner(
            self.db, host,
            os.path.join(conf.state_path, 'nova-preempt-owners'),
            self.options.intent_timeout_s)
        self.heartbeat = heartbeat.Heartbeat(self.owner)
        self.pauses = pauses.Pauses(self.db)

    def _sync_database(self, conf):
        """Make the tables of a SQLite file; check those of a server."""
        try:
            if self.db.is_sqlite:
                with lockutils.external_lock('nova-preempt-db',
                                             lock_path=conf.state_path):
                    schema.sync(self.db)
            else:
                schema.check(self.db)
        except schema.WrongTables as exc:
            raise exceptions.InvalidConfiguration(str(exc)) from None

    def start(self):
        """Tell others that it is alive, from now on."""
        self.heartbeat.start()

    def close(self):
        """What is open is for others to finish."""
        self.heartbeat.stop()
        self.owner.close()
