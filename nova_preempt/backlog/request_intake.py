# SPDX-License-Identifier: Apache-2.0

"""Accepts, changes and cancels requests for the API.

A request that cannot work is refused at once. It is stored with a trust of its
user, or not at all.
"""

import contextlib
import dataclasses
import datetime

from oslo_log import log as logging
from oslo_utils import timeutils
from oslo_utils import uuidutils

from nova_preempt import exceptions
from nova_preempt.backlog import request_parser
from nova_preempt.backlog import secret_encryption
from nova_preempt.cloud import boot_schema
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import nova_as_user
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import ladder_choice
from nova_preempt.core.backlog import redaction
from nova_preempt.core.backlog import request_checks
from nova_preempt.core.backlog import trust_lifetime
from nova_preempt.db import backlog_store
from nova_preempt.db import backlog_submissions

LOG = logging.getLogger(__name__)

_TRIES = 3


class RequestIntake:
    """Accepts, changes and cancels requests. Safe for many threads.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :param database: a db.Database
    :param made: a cloud.keystone_trusts.Trusts
    :param reading: a cloud.nova_as_user.ResourceLookup
    :param classes: see nova_preempt.handover.eviction_policy.load_classes()
    :param clock: returns now, naive and in UTC
    :param tell: called with a changed backlog_model.Request and its former
        state, '' for a new one
    """

    def __init__(self, conf, database, made, reading, classes=None,
                 clock=timeutils.utcnow, tell=lambda request, old: None):
        self._options = conf.backlog
        self._preemption = conf.preemption
        self._db = database
        self._trusts = made
        self._reading = reading
        self._classes = classes
        self._clock = clock
        self._tell = tell
        self._sealing = secret_encryption.SecretCipher(conf.backlog)

    def submit(self, context, token, wanted, any_class=False):
        """Accept a new request.

        :param context: of the caller
        :param token: the caller's, scoped to the project
        :param wanted: a request_parser.ParsedRequest
        :param any_class: whether classes that are not open to all are allowed
        :returns: the backlog_model.Request
        :raises BacklogDisabled, InvalidRequest, RequestLimit, NoTrust:
        :raises NoAnswer: Keystone or Nova cannot be called
        """
        if not self._options.enabled:
            raise exceptions.BacklogDisabled(
                'The backlog is disabled: [backlog]enabled is false.')
        self._check_limit(context.project_id)
        request = self._checked(context, token, wanted,
                                self._classes_for(any_class))
        sealed = self._sealed(request.uuid, wanted.body)
        begun, trust = self._make_trust(context, token, request.uuid,
                                        trust_lifetime.latest_start(request))
        try:
            request = dataclasses.replace(request, **trust)
            if not backlog_store.create(self._db, request, begun=True,
                                        sealed=sealed):
                raise exceptions.NoAnswer(
                    'The creation of a trust in Keystone took too long.')
            # NOTE: again, as simultaneous requests count, too.
            self._check_limit(context.project_id, own=1)
        except BaseException:
            self._forget(begun, trust['trust_id'])
            raise
        self._tell(request, '')
        return request

    def change(self, context, token, request, values, any_class=False):
        """Change an open request.

        :param context, token: of the caller
        :param request: a backlog_model.Request as it was read
        :param values: {name in backlog_model.Request: value}
        :param any_class: as for submit()
        :returns: the changed backlog_model.Request
        :raises InvalidRequest, WrongState, RequestLimit, NoTrust, NoAnswer:
        """
        request_parser.require_open(request)
        with request_parser.naming_fields():
            request_checks.check_constraints({**{field.name: getattr(request,
                field.name) for field in dataclasses.fields(request)},
                **values}, self._now(), self._classes_for(any_class), values)
            if 'class_name' in values:
                values = {**values, 'class_name': self._class_of(
                    values['class_name'], request.alternatives)}
            request_checks.check_change(request, values)
            of = backlog_model.OPEN
            if values.keys() & {'count', 'least_count'}:
                values = request_parser.counts(request, values,
                                               self._options.max_count)
                of = (backlog_model.WAITING,)
            if values.get('not_before', request.not_before) != (
                    request.not_before):
                request_parser.require_unstarted(request, 'not_before')
                of = (backlog_model.WAITING,)
        renewal = None
        changed = dataclasses.replace(request, **values)
        if trust_lifetime.outlasts_trust(changed):
            renewal, trust = self._renewed(context, token, changed)
            values = {**values, **trust}
        if not backlog_store.change(self._db, request.uuid, of, self._now(),
                                    renewal, **values):
            raise exceptions.WrongState(
                f'Request {request.uuid} was changed by another call.')
        return backlog_store.get(self._db, request.uuid)

    def cancel(self, request, ends_servers=False):
        """Cancel an open request; the engine cleans up what was started.

        :param ends_servers: whether its servers are deleted, too
        :raises WrongState: it is closed
        """
        for _try in range(_TRIES):
            request_parser.require_open(request)
            reason = 'Cancelled by a user' + (
                ', with its servers.' if ends_servers else '.')
            # NOTE: fails if it was started since it was read, as its state is
            # another one then.
            if backlog_store.change(self._db, request.uuid, (request.state,),
                                    self._now(), state=backlog_model.CANCELLED,
                                    reason=reason, ends_servers=ends_servers):
                self._tell(dataclasses.replace(
                    request, state=backlog_model.CANCELLED, reason=reason),
                    request.state)
                # NOTE: its boots may have changed since it was read.
                self._end_trust(backlog_store.get(self._db, request.uuid))
                return
            request = backlog_store.get(self._db, request.uuid)
        raise exceptions.WrongState(
            f'Request {request.uuid} was changed by other calls; try again.')

    def _end_trust(self, request):
        """Delete the trust, unless the engine needs it to clean up."""
        if request.boots:
            return
        try:
            self._trusts.delete(request.trust_id)
        except keystone_trusts.KeystoneUnavailable as exc:
            # The engine deletes trusts of closed requests.
            LOG.warning('The trust of request %(uuid)s is not deleted yet: '
                        '%(exc)s', {'uuid': request.uuid, 'exc': exc})
            return
        backlog_store.change(self._db, request.uuid, backlog_model.CLOSED,
                             self._now(), trust_id='')

    # -- checks --------------------------------------------------------------

    def _check_limit(self, project_id, own=0, renews=False):
        """Check the limits on open requests and on trusts made in a day.

        :param own: 1 if this request is counted already, else 0
        :param renews: whether an existing request needs another trust
        """
        day = self._now() - datetime.timedelta(days=1)
        used = {} if renews else {
            'max_requests_per_project': backlog_store.count(
                self._db, project_id) - own}
        used['max_created_per_day'] = backlog_store.count(
            self._db, project_id, backlog_model.STATES, day) - own + (
                backlog_submissions.count(self._db, project_id))
        why = request_checks.check_limits({name: (number, self._options[name])
                                           for name, number in used.items()})
        if why:
            raise exceptions.RequestLimit(why)

    def _checked(self, context, token, wanted, classes):
        """Return a checked backlog_model.Request without a trust."""
        now = self._now()
        server = wanted.body['server']
        with request_parser.naming_fields():
            request_checks.check_constraints(wanted.wishes, now, classes)
            find = self._rungs if wanted.ladder else self._flavors
            alternatives, counts = find(token, wanted, server)
            alternatives = nova_as_user.as_hinted(
                self._preemption, wanted.body, alternatives)
            class_name = self._class_of(
                wanted.wishes.get('class_name', ''), alternatives)
            request_checks.check_server(server, counts.most)
            request_checks.check_reservations(wanted.body)
            self._look_up_others(token, server)
        return backlog_model.Request(
            uuid=uuidutils.generate_uuid(), project_id=context.project_id,
            user_id=context.user_id, trust_id='',
            body=redaction.without_secrets(
                request_parser.without_flavor_and_counts(wanted.body)),
            compute_version=wanted.compute_version, count=counts.most,
            least_count=counts.least, alternatives=alternatives,
            ladder=wanted.ladder, apart=bool(wanted.ladder),
            created_at=now, updated_at=now, waits_since=now,
            **{'name': request_parser.name(server), **wanted.wishes,
               'class_name': class_name})

    def _sealed(self, uuid, body):
        """Return the encrypted secrets of a body, None without any."""
        secrets = redaction.secrets(body)
        if not secrets:
            return None
        try:
            return self._sealing.seal(uuid, secrets)
        except secret_encryption.NoKey:
            with request_parser.naming_fields():
                raise request_checks.InvalidRequest(
                    f'body.server.{next(iter(secrets))}',
                    'it cannot be stored, as the operator has not set '
                    '[backlog]secret_key_file to encrypt it') from None
        except secret_encryption.BadKeys as exc:
            LOG.error('Secrets of a request cannot be encrypted: %s', exc)
            raise exceptions.NoAnswer(
                'User data and passwords cannot be encrypted now, as the key '
                'file of the service is invalid.') from None

    def _classes_for(self, any_class):
        """Return the names of the classes that the caller may request."""
        if self._classes is None:
            return ()
        table = self._classes.table
        return tuple(name for name in table.names
                     if any_class or name in table.open)

    def _class_of(self, name, alternatives):
        return request_checks.class_of(name, alternatives, (
            self._classes.table.names if self._classes else ()))

    def _flavors(self, token, wanted, server):
        """Return (Alternatives, ServerCounts) of chosen flavors."""
        counts = request_checks.counts(wanted.count, wanted.least_count,
                                       server, self._options.max_count)
        flavors = request_checks.flavors(wanted.flavors, server)
        self._check_body(wanted, flavors[0])
        from_volume = request_checks.starts_from_volume(server)
        with self._reading_as('flavors'):
            return tuple(self._reading.flavor(token, flavor_id, from_volume)
                         for flavor_id in flavors), counts

    def _rungs(self, token, wanted, server):
        """Return the same of a ladder, by the priorities of the request."""
        if not self._options.ladders:
            raise request_checks.InvalidRequest(
                'ladder', 'ladders are disabled: [backlog]ladders is false')
        priorities = wanted.wishes.get('priorities')
        request_checks.check_ladder(wanted.ladder, priorities, {
            'flavors': wanted.flavors, 'count': wanted.count,
            'least_count': wanted.least_count}, server)
        request_checks.check_group(wanted.ladder, wanted.body)
        with self._reading_as('ladder'):
            found = ladder_choice.rungs(self._reading.ladder(
                token, wanted.ladder,
                request_checks.starts_from_volume(server)), priorities)
        if not found:
            raise request_checks.InvalidRequest(
                'ladder', f'{wanted.ladder!r} has no flavor for the '
                'reputation in priorities')
        self._check_body(wanted, found[0].flavor_id)
        copies = ladder_choice.copies(priorities)
        return found, request_checks.ServerCounts(copies, copies)

    @staticmethod
    def _check_body(wanted, flavor_id):
        """Check the body by Nova's own schema."""
        wrong = boot_schema.check_version(wanted.compute_version)
        if wrong:
            raise request_checks.InvalidRequest('compute_version', wrong)
        body = request_parser.without_flavor_and_counts(wanted.body)
        body['server']['flavorRef'] = flavor_id
        tags = body['server'].get('tags')
        if isinstance(tags, list) and len(tags) > boot_schema.MAX_TAGS:
            raise request_checks.InvalidRequest('body.server.tags',
                f'{len(tags)} tags are more than {boot_schema.MAX_TAGS}')
        try:
            boot_schema.check(body, wanted.compute_version)
        except boot_schema.InvalidBody as exc:
            raise request_checks.InvalidRequest(f'body{exc.path}',
                exc.text) from None

    def _look_up_others(self, token, server):
        """Refuse an image or a key pair that does not exist."""
        if server.get('imageRef'):
            with self._reading_as('body.server.imageRef'):
                self._reading.image(token, server['imageRef'])
        if server.get('key_name'):
            with self._reading_as('body.server.key_name'):
                self._reading.key_pair(token, server['key_name'])

    @contextlib.contextmanager
    def _reading_as(self, field):
        """Name the field that Nova refuses."""
        try:
            yield
        except (nova_as_user.NotFound, nova_as_user.Refused) as exc:
            raise request_checks.InvalidRequest(field, str(exc)) from None
        except nova_api.NovaError as exc:
            LOG.warning('Nova did not answer for a new request: %.300s', exc)
            raise exceptions.NoAnswer('Nova does not answer.') from None

    # -- trusts --------------------------------------------------------------

    def _make_trust(self, context, token, uuid, latest):
        """Make a trust that is marked by this uuid.

        :param latest: the latest start of servers with it, None: any time
        :returns: a PendingSubmission, and {field of the Request: value}
        """
        begun = backlog_submissions.PendingSubmission(
            uuid, context.project_id, context.user_id, self._now(),
            trust_lifetime.expiry(uuid, latest))
        backlog_submissions.begin(self._db, begun)
        try:
            trust_id = self._trusts.create(
                token, context.project_id, context.user_id, context.roles,
                begun.expires_at)
        except keystone_trusts.TrustRefused as exc:
            backlog_submissions.forget(self._db, uuid)
            raise exceptions.NoTrust(str(exc)) from None
        except keystone_trusts.KeystoneUnavailable as exc:
            LOG.error('No trust can be created for a request: %s', exc)
            raise exceptions.NoAnswer('Keystone does not answer.') from None
        return begun, {'trust_id': trust_id,
                       'trust_until': latest and begun.expires_at}

    def _renewed(self, context, token, request):
        """Make another trust for a changed request; return a Renewal, too."""
        if (context.user_id, context.project_id) != (
                request.user_id, request.project_id):
            raise exceptions.NoTrust(
                f'The trust of request {request.uuid} expires at '
                f'{request.trust_until}Z; only the user of the request can '
                'extend its wait beyond.')
        self._check_limit(request.project_id, renews=True)
        begun, trust = self._make_trust(
            context, token, uuidutils.generate_uuid(),
            trust_lifetime.renewed_until(request, self._now()))
        # NOTE: the old trust is deleted later: an engine may be using it.
        left = dataclasses.replace(begun, uuid=uuidutils.generate_uuid(),
                                   expires_at=request.trust_until)
        return backlog_store.TrustReplacement(
            begun, request.trust_id, left), trust

    def _forget(self, begun, trust_id):
        """Roll back a request that cannot be accepted."""
        try:
            removal = backlog_store.remove(self._db, begun, self._now())
            if removal.is_gone:
                self._trusts.delete(trust_id)
                backlog_submissions.forget(self._db, begun.uuid)
            elif removal.cancelled:
                # The engine has already notified of its start.
                self._tell(backlog_store.get(self._db, begun.uuid),
                           removal.cancelled)
        except Exception:
            # The caller gets the original error; the engine finds the rest.
            LOG.exception('Request %s could not be rolled back.', begun.uuid)

    def _now(self):
        return self._clock().replace(microsecond=0)
