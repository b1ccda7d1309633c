# SPDX-License-Identifier: Apache-2.0
"""Starts requests: boots their servers in the names of their users."""

import copy
import dataclasses
import datetime
import threading

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.backlog import backlog_options_from_conf
from nova_preempt.backlog import secret_encryption
from nova_preempt.backlog import user_nova_clients
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.cloud import parallel_calls
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import redaction
from nova_preempt.core.backlog import request_servers
from nova_preempt.core.backlog import reservation_rules

LOG = logging.getLogger(__name__)

_FAULT = ('An error occurred while starting it; see the log of '
          'nova-preempt-engine.')


class Launcher:
    """Boots the servers that a pass has decided on.

    :param options: [backlog] of the configuration
    :param acting: a nova_preempt.backlog.user_nova_clients.UserNovaClients
    :param records: a transition_recorder.TransitionRecorder
    :param clock: returns now, naive and in UTC
    """

    def __init__(self, options, acting, records, clock):
        self._options = options
        self._sealing = secret_encryption.SecretCipher(options)
        self._users = acting
        self._records = records
        self._clock = clock

    def start(self, intents):
        """Start requests, several at a time.

        :param intents: core.backlog.backlog_controller.Launch, the next one
            first
        """
        # Set once Keystone or the database is down: others would fail, too.
        away = threading.Event()

        def start(item):
            if away.is_set():
                return
            request = item.request
            try:
                found = self._start(item.start, request)
            except db_exc.DBError:
                # The database was retried for long enough.
                away.set()
                raise
            except Exception:
                LOG.exception('Starting request %s failed.', request.uuid)
                self._wait(request, boot_outcome.NO_ANSWER, _FAULT)
                return
            if not found:
                away.set()

        parallel_calls.call(start, intents)

    def _start(self, start, request):
        """Boot the servers; return False if Keystone cannot be called."""
        body = self._records.body(request.uuid)
        if body is None:
            return True
        # NOTE: requests of a pass have redacted bodies.
        request = dataclasses.replace(request, body=body)
        try:
            secrets = self._sealing.open(request, self._records.sealed)
            nova = self._users.nova(request)
        except secret_encryption.CannotDecrypt as exc:
            LOG.error('Request %(uuid)s cannot be started: %(exc)s',
                      {'uuid': request.uuid, 'exc': exc.detail})
            self._wait(request, boot_outcome.REFUSED, str(exc))
            return True
        except keystone_trusts.TrustGone as exc:
            now = self._clock()
            self._records.record(request, boot_outcome.refuse(
                request, str(exc), now, self._lifecycle()), now)
            return True
        except (user_nova_clients.UserUnavailable,
                keystone_trusts.KeystoneUnavailable) as exc:
            LOG.warning('Request %(uuid)s cannot be started yet: %(exc)s',
                        {'uuid': request.uuid, 'exc': exc})
            if isinstance(exc, keystone_trusts.KeystoneUnavailable):
                return False
            self._wait(
                request, boot_outcome.NO_ANSWER,
                'Nova cannot be called in the name of the user yet.')
            return True
        boot = request_servers.next_boot(request, start.flavor_id, start.count,
                                         self._clock())
        begun = self._records.begin(request, boot)
        if begun is not None:
            until = boot.asked_at + datetime.timedelta(
                seconds=self._lifecycle().undecided_s)
            self._ask(nova, request, begun, boot, secrets,
                      self._records.choose(request, boot, start.hosts, until))
        return True

    def _lifecycle(self):
        return backlog_options_from_conf.boot_options(self._options)

    def _wait(self, request, code, text):
        """Let other requests go first for a while."""
        now = self._clock()
        self._records.record(request, boot_outcome.Transition(
            request.state, boot_outcome.retry_values(
                request, code, text, now, self._lifecycle())), now)

    def _ask(self, nova, request, begun, boot, secrets, hints):
        try:
            if backlog_model.has_group(request):
                group = nova.group(backlog_model.group_name(request))
                hints = {**hints, 'group': group}
            reply = nova.create(body_of(request, boot, secrets, hints),
                                request.compute_version)
        except nova_as_user.ServerGroupNotCreated as exc:
            reply = exc.reply
        # Nova's error goes into records, notifications and the log.
        text = redaction.redacted(reply.text, secrets)
        how = boot_outcome.classify_answer(reply.status, reply.kind, text,
            request.tries)
        metrics.BACKLOG_STARTS.labels(how.value).inc()
        if how is boot_outcome.BootAnswer.UNKNOWN:
            LOG.warning("Nova's response to the boot of request %(uuid)s is "
                        'unknown: %(text)s',
                        {'uuid': request.uuid, 'text': text})
        verdict = None
        if how is boot_outcome.BootAnswer.NO:
            how, verdict = self._without_flavor(nova, request, boot)
        now = self._clock()
        self._records.record(begun, verdict or boot_outcome.judge_answer(
            request, boot, how, text, reply.server_uuid, now,
            self._lifecycle()), now)

    @staticmethod
    def _without_flavor(nova, request, boot):
        """Return (what a refusal means, a Transition if a flavor is gone)."""
        verdict = boot_outcome.without_flavor(request, boot)
        try:
            if verdict is None or nova.has_flavor(boot.flavor_id):
                return boot_outcome.BootAnswer.NO, None
        except nova_api.NovaError:
            return boot_outcome.BootAnswer.LATER, None
        LOG.info('Flavor %(flavor)s of request %(uuid)s no longer exists: the '
                 'others remain.',
                 {'flavor': boot.flavor_id, 'uuid': request.uuid})
        return boot_outcome.BootAnswer.NO, verdict


def body_of(request, boot, secrets, hints=None):
    """Return the user's body for a boot of all or none of its servers.

    :param secrets: members of "server" that the stored body redacts
    :param hints: further scheduler hints, {name: value}
    """
    body = copy.deepcopy(dict(request.body))
    server = body['server']
    server.update(secrets, flavorRef=boot.flavor_id, min_count=boot.count,
                  max_count=boot.count,
                  tags=[*server.get('tags', ()), boot.tag])
    if hints:
        name = next((name for name in reservation_rules.HINTS if name in body),
                    reservation_rules.HINTS[0])
        body[name] = {**body.get(name, {}), **hints}
    return body
