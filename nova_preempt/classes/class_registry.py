# SPDX-License-Identifier: Apache-2.0
"""Classes of service, as the rest of the package finds them.

An installation can leave this package out: the entry point ``qos`` of the
group ``nova_preempt.classes`` is how it is found (nova_preempt.handover.
classes), and nobody imports it.
"""

import math

from nova_preempt import metrics
from nova_preempt.classes import class_returns
from nova_preempt.classes import clock_keeper
from nova_preempt.classes import promised_servers
from nova_preempt.conf import classes as conf_classes
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_history
from nova_preempt.core.backlog import request_rules
from nova_preempt.core.classes import class_table
from nova_preempt.db import backlog_history
from nova_preempt.db import class_servers

#: How often the engine reads what has become of servers of a class. Nova dates
#: what happened, so nothing is lost by looking late.
LOOK_S = 10


class Qos:
    """The classes that the operator has named.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :ivar table: a core.classes.class_table.Table
    :raises ValueError: says what is wrong with which option
    """

    def __init__(self, conf):
        options = conf[conf_classes.GROUP]
        try:
            self.table = class_table.parse(options.qos_class or (),
                                           options.pass_period_s)
        except ValueError as exc:
            raise ValueError(f'[{conf_classes.GROUP}]qos_class: {exc}'
                             ) from None

    def promised(self, database, clock):
        """What is promised to servers, for decisions.

        :param database: a nova_preempt.db.Database
        :param clock: returns now, timezone-aware
        """
        return promised_servers.Promised(database, self.table, clock)

    def returning(self, parts):
        """Return what chooses returns; see engine.victim_returns.

        :param parts: a nova_preempt.handover.service_context.Parts
        """
        return class_returns.Returning(parts, self.table)

    def claims(self, database):
        """The Claims of requests that wait."""
        return Claims(database, self.table)

    def works(self, database, get_cells, promised):
        """[(name, function)], see nova_preempt.engine.periodic_tasks.

        :param database: a nova_preempt.db.Database
        :param get_cells: returns {uuid: CellMapping} to look for servers in
        :param promised: what promised() returned, which others refresh
        """
        clocks = clock_keeper.ClockKeeper(database, get_cells, self.table)

        def look():
            clocks.look()
            self._tell(promised.kept())
            return LOOK_S

        return [('clocks of classes', look)]

    def _tell(self, kept):
        """Put into metrics how well promises are kept."""
        for qos in self.table.classes:
            of = kept[qos.name]
            for state, number in of.servers.items():
                metrics.CLASS_SERVERS.labels(qos.name, state).set(number)
            metrics.CLASS_TARGET.labels(qos.name).set(qos.availability)
            metrics.CLASS_BELOW.labels(qos.name).set(of.below)
            # Of no time there is no share: 0 would be a broken promise.
            metrics.CLASS_AVAILABILITY.labels(qos.name).set(
                of.times.availability if of.times.total_us else math.nan)


class Claims:
    """Tells what requests of the backlog may claim by their classes.

    :param database: a nova_preempt.db.Database
    :param table: a core.classes.class_table.Table
    """

    def __init__(self, database, table):
        self._db = database
        self.table = table

    def clocks(self, requests):
        """{uuid: core.classes.server_clocks.Clocks} of these core Requests.

        Each change of a request is kept, so they are there right after a
        restart. Who was never started has waited all the time.
        """
        known = backlog_history.of(self._db, [
            request.uuid for request in requests if request.boots])
        return {request.uuid: request_history.clocks_of(known.get(
            request.uuid) or request_history.History(
                (backlog_model.Change(request.created_at,
                                      backlog_model.WAITING),),
                not_before=request.not_before)) for request in requests}

    def overheads_us(self, requests):
        """{uuid: how long it takes to get a server of it to a host}."""
        known = class_servers.overheads(self._db)
        return {request.uuid: known.get(_kind(request), self.table.overhead_us)
                for request in requests}


def _kind(request):
    """That of class_servers.ClassServer, of its first flavor."""
    return (request.alternatives[0].name,
            request_rules.starts_from_volume(request.body.get('server', {})))
