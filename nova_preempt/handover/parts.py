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
"""What a service that ends servers consists of, put together once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import datetime
import os
from typing import Any, TypeAlias

from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import pauses
from nova_preempt.cloud import clients
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement
from nova_preempt.db import schema
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import handover
from nova_preempt.handover import knowledge
from nova_preempt.handover import owner

#: Returns now, timezone-aware.
Clock: TypeAlias = Callable[[], datetime.datetime]


#: How often schedulers and engines look for preemptions that a crash left half
#: done, in seconds. Their own are also repaired when they start.
REPAIR_S = 60


class Process:
    """This process in the database that all share, from start() to close().

    :param conf: nova.conf.CONF
    :param host: the name of the host that it runs on
    :param clock: returns now, timezone-aware
    :ivar options: [preemption] of the configuration
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str, clock: Clock) -> None:
        self.options = conf.preemption
        self.clock = clock
        self.db = db.Database(conf)
        self.decisions = db.Decisions(self.db)
        self._sync_database(conf)
        self.owner = owner.Owner(
            self.db, host,
            os.path.join(conf.state_path, 'nova-preempt-owners'),
            owner.INTENT_TIMEOUT_S)
        self.heartbeat = owner.Heartbeat(self.owner)
        self.pauses = pauses.Pauses(self.db)

    def _sync_database(self, conf: cfg.ConfigOpts) -> None:
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

    def start(self) -> None:
        """Tell others that it is alive, from now on."""
        self.heartbeat.start()

    def close(self) -> None:
        """Leave open decisions to other processes."""
        self.heartbeat.stop()
        self.owner.close()


class Parts:
    """The four, for whoever makes a service of them to give out.

    :param conf: nova.conf.CONF
    :param host: the name of the host that the service runs on
    :param get_client: returns Nova's Placement client
    :param get_cells: returns {uuid: CellMapping} to look for servers in
    :param clock: returns now, timezone-aware
    :param notice_limit_s: the longest notice that anybody can wait for, None
        for any
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str,
                 get_client: Callable[[], Any],
                 get_cells: Callable[[], Mapping[str, Any]], clock: Clock,
                 notice_limit_s: float | None = None) -> None:
        self.process = Process(conf, host, clock)
        self.clients = clients.Clients(
            nova_api.NovaAPI(conf), placement.Placement(get_client),
            get_cells)
        # What servers of a class were promised, None if there are no classes.
        self.qos = eviction_policy.load_classes(conf)
        self.known = knowledge.Knowledge(
            self.process, self.clients, notice_limit_s,
            self.qos and self.qos.promised(self.process.db, clock))
        self.clients.nova.is_away = self.known.servers.is_away
        self.handover = handover.Handover(
            conf, host, self.process, self.clients, self.known.budgets,
            self.known.headroom)

    def repair(self) -> int:
        """See handover.Handover.repair().

        The cells are read before, in bounded time: of victims in one that
        hangs Nova is not asked, which would wait for it with each of them.
        """
        self.known.servers.refresh()
        return self.handover.repair()


def utcnow() -> datetime.datetime:
    """Now, as Nova dates what it records."""
    return timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)
