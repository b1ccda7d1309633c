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
"""What a scheduler that preempts consists of, put together once a process."""

import datetime
import os
import time

from nova import exception
from oslo_concurrency import lockutils
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils
import stevedore

from nova_preempt import db as database
from nova_preempt import headroom
from nova_preempt import metrics
from nova_preempt import pauses
from nova_preempt.cloud import instance_poller
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement as placement_api
from nova_preempt.cloud import providers
from nova_preempt.cloud import servers
from nova_preempt.core import model
from nova_preempt.core.scheduling import memo
from nova_preempt.core.scheduling import policy
from nova_preempt.db import api as db_api
from nova_preempt.db import hints
from nova_preempt.db import schema
from nova_preempt.handover import claim
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import heartbeat
from nova_preempt.handover import notifications
from nova_preempt.handover import outcomes
from nova_preempt.handover import owner
from nova_preempt.handover import records
from nova_preempt.handover import recovery
from nova_preempt.handover import request_poller
from nova_preempt.handover import terminator
from nova_preempt.scheduler import budgets
from nova_preempt.scheduler import deadline
from nova_preempt.scheduler import patience
from nova_preempt.scheduler import releasing
from nova_preempt.scheduler import turns

LOG = logging.getLogger(__name__)

# How long a victim that did not end is left alone afterwards.
STUCK_S = 600

NOT_WANTED = 'the server was deleted while its victims had their notice'

# More uuids than this are not asked for one by one.
_MANY = 500


class Preemption:
    """The parts, and what happens between a claim and the answer to Nova.

    :param conf: nova.conf.CONF
    :param host: the name of the scheduler's host
    :param get_client: returns Nova's Placement client
    :param get_cells: returns {uuid: CellMapping} to look for servers in
    :param clock: returns now, timezone-aware
    """

    def __init__(self, conf, host, get_client, get_cells, clock):
        self.conf = conf.preemption
        self._times = deadline.make_times(conf)
        self._places = patience.Places(
            self._get_places(conf), metrics.WAITING)
        self.notice_limit_s = self._get_notice_limit_s(conf)
        self.clock = clock
        self.get_cells = get_cells
        self.observers = []
        self.db = database.Database(conf)
        self._sync_database(conf)
        self.owner = owner.Owner(
            self.db, host,
            os.path.join(conf.state_path, 'nova-preempt-owners'),
            self.conf.intent_timeout_s)
        self.heartbeat = heartbeat.Heartbeat(self.owner)
        self.pauses = pauses.Pauses(self.db)
        self.nova = nova_api.NovaAPI(conf)
        self.placement = placement_api.Placement(get_client)
        self.providers = providers.ProviderCache(self.placement)
        self.headroom = self._make_headroom()
        self.servers = servers.ServerCache(get_cells, self._hinted,
                                        self.providers.left)
        self.events = notifications.Notifications(conf, host)
        self.budgets = budgets.Budgets(self.conf, self.db, self.servers)
        self.claims = claim.Claims(self.placement, self.db, self.owner,
                                   self.budgets)
        self.records = records.Records(self.conf, self.notice_limit_s)
        self.recovery = recovery.Recovery(
            self.placement, self.nova, self.db, self.owner, self.conf,
            self.claims.active)
        self.terminator = terminator.Terminator(
            self.nova,
            instance_poller.InstancePoller(self.conf.poll_interval_s),
            request_poller.RequestPoller(self.conf.poll_interval_s),
            self.placement,
            self.db, self.owner, self.conf, self.events, halt=self._halt)
        self.outcomes = outcomes.Outcomes(self.db)
        self._cost = load_cost(self.conf.cost)
        self._cost_options = model.CostOptions(self.conf.billing_period_s,
                                               self.conf.repeat_cost_s)
        self._preemptions = {}    # server uuid: how often it gave way before
        self._stuck = {}          # server uuid: monotonic time
        self.turns = turns.Turns()
        self.memo = memo.Memo()
        self.releasing = releasing.ReleaseWaiter(self.db, self.conf)

    def _sync_database(self, conf):
        """Make the tables of a SQLite file; check those of a server."""
        if self.db.is_sqlite:
            with lockutils.external_lock('nova-preempt-db',
                                         lock_path=conf.state_path):
                schema.sync(self.db)
        elif schema.get_revision(self.db) != schema.latest_revision():
            raise exception.InvalidConfiguration(
                'The database of [preemption_database]connection is at '
                f'revision {schema.get_revision(self.db)}, not at '
                f'{schema.latest_revision()}; run "nova-preempt-manage db '
                'sync".')

    def _make_headroom(self):
        try:
            return headroom.Headroom(self.conf, self.placement,
                                     self.providers)
        except ValueError as exc:
            raise exception.InvalidConfiguration(
                f'[preemption]headroom: {exc}') from exc

    def _get_notice_limit_s(self, conf):
        """The longest notice that the conductor can wait for."""
        limit_s = self._times.notice_limit_s
        if limit_s < self.conf.maximum_notice_s:
            LOG.error(
                '[preemption]maximum_notice_s and termination_timeout_s are '
                '%(longest)s s together; the conductor waits for the '
                'scheduler no longer than [DEFAULT]long_rpc_timeout, '
                '%(timeout)s s, of which some is kept for choosing and for '
                'the answer: no notice is longer than %(limit)s s.',
                {'longest': self.conf.maximum_notice_s
                 + self.conf.termination_timeout_s,
                 'timeout': conf.long_rpc_timeout, 'limit': limit_s})
        return limit_s

    def _get_places(self, conf):
        """How many requests may wait; each one does in a thread."""
        places = self.conf.max_waiting_requests
        threads = patience.get_threads(conf)
        if places >= threads:
            LOG.warning(
                '[preemption]max_waiting_requests is %(places)s, not below '
                '[DEFAULT]executor_thread_pool_size, %(threads)s: when so '
                'many requests wait no other one is served, not even one '
                'that has room.',
                {'places': places, 'threads': threads})
        return places

    def patience(self, monotonic=time.monotonic, waits=True):
        """The Patience of a request that has come just now.

        :param waits: False for one that only asks how it would be
        """
        return patience.Patience(deadline.Deadline(self._times, monotonic),
                                 self._places if waits
                                 else patience.Places())

    def _hinted(self, uuids):
        if not uuids:
            return set()
        return hints.get(self.db, uuids if len(uuids) <= _MANY else None)

    def start(self):
        """Tell others that this process is alive, from now on."""
        self.heartbeat.start()

    def close(self):
        """What is open is for others to finish."""
        self.heartbeat.stop()
        self.owner.close()

    # -- choosing --------------------------------------------------------

    def policy(self):
        """What the operator has settled, as the core wants it."""
        # Once a decision, not once a server: options are slow to read.
        conf = self.conf
        return policy.Policy(
            eviction_policy.get_rules(conf), tuple(conf.actions), self._cost,
            self._cost_options,
            eviction_policy.notice_rule(conf, self.notice_limit_s),
            self._preemptions,
            always=conf.consider == 'always', shortlist=conf.shortlist_size)

    def stuck(self):
        """The uuids of victims that lately did not end."""
        now = time.monotonic()
        self._stuck = {uuid: since for uuid, since in self._stuck.items()
                       if now - since < STUCK_S}
        return set(self._stuck)

    # -- from the claims to the answer -----------------------------------

    def finish(self, decisions, limit=None):
        """End the victims of these claims; return when they are gone.

        :param limit: the request's nova_preempt.scheduler.deadline.Deadline,
            None where nobody waits for an answer
        :returns: how many of these were taken back, since the server that
            the space was for is not wanted any more
        :raises TimeIsUp: who asked has given up
        :raises VictimsStuck: some did not end; everything is taken back, as
            far as victims still live
        :raises LostDecision: another scheduler took this for dead
        """
        with metrics.PHASES.labels('end').time():
            ended = self.terminator.end(decisions, limit and limit.check)
        return self.settle(decisions, ended)

    def settle(self, decisions, ended):
        """Close these claims, whose victims have ended.

        :param ended: what became of them, a
            nova_preempt.handover.terminator.Ended
        :returns, raises: see finish()
        """
        stuck = ended.stuck
        if stuck:
            now = time.monotonic()
            self._stuck.update(dict.fromkeys(stuck, now))
            LOG.error('Preemptible servers %(servers)s did not end within '
                      '%(time)s s; looking for other victims.',
                      {'servers': ', '.join(sorted(stuck)),
                       'time': self.conf.termination_timeout_s})
            for decision in decisions:
                for victim in decision.victims:
                    if victim.server_uuid in stuck:
                        self.events.error(decision, victim,
                                          'it did not end in time')
            raise VictimsStuck(stuck)
        for decision in decisions:
            if decision.uuid in ended.unwanted:
                self.recovery.roll_back(decision.uuid, NOT_WANTED)
            elif not self._close(decision):
                raise db_api.LostDecision(decision.uuid)
        return len(ended.unwanted)

    def _halt(self, operation):
        self.pauses.check(pauses.of_operation(operation))

    def _close(self, decision):
        """Tries for as long as nobody else may do it: its victims are gone."""
        while True:
            try:
                return self.db.update_decision(
                    decision.uuid, decision.owner, db_api.DONE, new_owner='')
            except db_exc.DBError:
                if not self.owner.keeps([decision]):
                    raise
                LOG.exception('Cannot close preemption %s yet.',
                              decision.uuid)

    def give_back(self, decisions, reason):
        """Take claims back: the request that they were for has failed.

        What cannot be taken back now the recovery takes back later.
        """
        for decision in decisions:
            self._take_back(self.recovery.roll_back, decision.uuid, reason)

    def take_back_lost(self, uuids, reason):
        """The same for decisions that may be somebody else's by now.

        Their recovery may have looked before the space was taken, and not
        look again.
        """
        for uuid in uuids:
            self._take_back(self.recovery.take_back, uuid, reason)

    @staticmethod
    def _take_back(take_back, uuid, reason):
        try:
            take_back(uuid, reason)
        except Exception:
            # There may be others, and servers that needed no victims.
            LOG.exception('Cannot take preemption %s back yet.', uuid)

    def note_refusal(self, cycle, server_uuid, reason):
        """Keep the record of a request that preemption could not help."""
        metrics.REFUSALS.inc()
        try:
            self.db.create_decision(
                self.records.refused(cycle, server_uuid, reason))
        except Exception:
            # The request has its answer; only the record of it is lost.
            LOG.exception('Cannot keep the record of server %s.', server_uuid)

    # -- in the background -----------------------------------------------

    def refresh(self):
        """Keep what is known of servers and providers fresh."""
        self.servers.refresh()
        if self.conf.repeat_cost_s:
            # Good enough from the background: nobody comes back so fast.
            self._preemptions = self.db.count_preemptions()
        self.budgets.refresh()
        self.headroom.refresh()
        nodes = self.servers.nodes()
        if self.headroom:
            self.providers.refresh(None)
        elif nodes:
            self.providers.refresh(nodes)

    def repair(self):
        """Finish what schedulers that died have left behind.

        And note what became of those that were placed.
        """
        repaired = self.recovery.repair()
        self.outcomes.note()
        return repaired


class NotWanted(Exception):
    """The servers that the space is for were deleted meanwhile."""

    def __init__(self):
        super().__init__(NOT_WANTED)


class VictimsStuck(Exception):
    """Victims that did not end in time."""

    def __init__(self, uuids):
        super().__init__('preemptible servers did not end in time: '
                         + ', '.join(sorted(uuids)))


def load_cost(name):
    """The cost function of this name, see nova_preempt.core.costs.

    :raises InvalidConfiguration: there is none
    """
    manager = stevedore.ExtensionManager('nova_preempt.cost')
    if name not in manager.names():
        raise exception.InvalidConfiguration(
            f'[preemption]cost is {name!r}; known are: '
            + ', '.join(sorted(manager.names())))
    return manager[name].plugin


def utcnow():
    """Now, as Nova dates what it records."""
    return timeutils.utcnow().replace(tzinfo=datetime.timezone.utc)
