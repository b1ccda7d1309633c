# SPDX-License-Identifier: Apache-2.0
"""Records state transitions of requests, and notifies of them."""

import dataclasses
import secrets

from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import metrics
from nova_preempt.core.backlog import boot_host_choice
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import request_servers
from nova_preempt.db import backlog_secrets
from nova_preempt.db import backlog_store
from nova_preempt.db import boot_host_choices
from nova_preempt.handover import preemption_notifications

LOG = logging.getLogger(__name__)

# Of the payload; see nova_preempt.handover.preemption_notifications.VERSION.
VERSION = '1.0'

_TIME = '%Y-%m-%dT%H:%M:%SZ'


class TransitionRecorder:
    """Writes verdicts to the database.

    :param database: a nova_preempt.db.Database
    :param tell: called with a changed core Request and its former state
    """

    def __init__(self, database, tell):
        self._db = database
        self._tell = tell

    def record(self, request, verdict, now):
        """Write a verdict on a request.

        :param verdict: a core.backlog.boot_outcome.Transition
        :returns: False if the request has changed since it was read
        """
        if not verdict.changes(request):
            return True
        if not backlog_store.record(self._db, request.uuid, (request.state,),
                                    now, verdict, decided=request):
            LOG.info('Request %s has been changed by somebody else.',
                     request.uuid)
            return False
        if verdict.state != request.state:
            self._told(dataclasses.replace(boot_outcome.with_verdict(request,
                verdict), updated_at=now), request.state)
        return True

    def body(self, uuid):
        """Return the body of a request, None if it was purged."""
        return dict(backlog_store.bodies(self._db, [uuid])).get(uuid)

    def sealed(self, uuid):
        """Return the encrypted secrets of a request, None without any."""
        return backlog_secrets.get(self._db, uuid)

    def begin(self, request, boot):
        """Write a boot before Nova is called.

        :returns: the changed Request, None if it has changed meanwhile
        """
        forgotten = request_servers.forgotten_boots(request, boot.asked_at)
        if not backlog_store.begin_boot(
                self._db, request.uuid, (request.state,), boot,
                forgotten=forgotten, decided=request):
            return None
        since = request.waits_since or request.created_at
        metrics.BACKLOG_WAITS.observe((boot.asked_at - since).total_seconds())
        begun = boot_outcome.with_boot(request, boot, forgotten)
        self._told(begun, request.state)
        return begun

    def choose(self, request, boot, hosts, until):
        """Store the hosts chosen for a boot under a secret.

        :param hosts: {host: how many servers}
        :param until: when the choice expires, naive and in UTC
        :returns: the scheduler hints that refer to the choice; {} if there is
            none or it cannot be stored, and Nova chooses
        """
        if not hosts:
            return {}
        secret = secrets.token_urlsafe()
        try:
            boot_host_choices.keep_choice(
                self._db, secret, boot_host_choice.ChosenHosts(
                    request.project_id, request.user_id, boot.flavor_id,
                    boot.count, request.uuid, boot.number, hosts, until))
        except db_exc.DBError as exc:
            LOG.warning('Nova chooses hosts for request %(uuid)s: the choice '
                        'cannot be stored: %(exc)s',
                        {'uuid': request.uuid, 'exc': exc})
            return {}
        return {boot_host_choice.HINT: secret}

    def _told(self, request, old_state):
        metrics.BACKLOG_CHANGES.labels(request.state).inc()
        LOG.info('Request %(uuid)s of project %(project)s is %(state)s, no '
                 'longer %(old)s%(reason)s',
                 {'uuid': request.uuid, 'project': request.project_id,
                  'state': request.state, 'old': old_state,
                  # It may quote Nova, which may quote a user.
                  'reason': f': {" ".join(request.reason.split())}'
                  if request.reason else '.'})
        self._tell(request, old_state)


class RequestNotifications:
    """Sends notifications of requests.

    :param conf, host: see
        nova_preempt.handover.preemption_notifications.Notifier
    """

    def __init__(self, conf, host):
        self._notifier = preemption_notifications.Notifier(conf, host)
        self.close = self._notifier.close

    def changed(self, request, old_state):
        """Notify of a new state.

        :param request: the changed core Request
        """
        self._notifier.send(
            f'backlog.{request.state}', make_payload(request, old_state),
            request.state == 'failed')


def make_payload(request, old_state):
    """Return the payload of a notification, as documented by the samples."""
    return {
        'version': VERSION, 'request_id': request.uuid, 'name': request.name,
        'project_id': request.project_id, 'user_id': request.user_id,
        'class': request.class_name, 'status': request.state,
        'old_status': old_state, 'reason': request.reason,
        'count': request.count,
        'servers': [{'uuid': server.uuid, 'status': server.state}
                    for server in request.servers],
        'generated_at': f'{timeutils.utcnow():{_TIME}}'}
