# SPDX-License-Identifier: Apache-2.0
"""Handlers of the webhook of a project."""

import json
import secrets

from oslo_utils import timeutils
from oslo_utils import uuidutils
import webob.exc

from nova_preempt import exceptions
from nova_preempt.api import operation
from nova_preempt.api import pagination
from nova_preempt.api import policy
from nova_preempt.api import schemas
from nova_preempt.api import views
from nova_preempt.backlog import secret_encryption
from nova_preempt.core import webhook_delivery
from nova_preempt.core import webhook_targets
from nova_preempt.db import webhooks
from nova_preempt.webhook import target_check

#: The microversion that introduced webhooks.
SINCE = '1.9'

_PATH = '/v1/webhooks/{project_id}'

BODY = schemas.make_body(
    'webhook', {'url': {'type': 'string', 'minLength': 1, 'maxLength': 2000}},
    {'secret': schemas.TEXT}, 'webhook')
_WEBHOOK = schemas.make_object({
    'project_id': schemas.STRING, 'url': schemas.STRING,
    'user_id': schemas.STRING, 'updated_at': schemas.TIME,
    'delivered_at': schemas.NULLABLE, 'failures': schemas.COUNT,
    'last_error': schemas.STRING, 'waiting': schemas.COUNT,
    'dropped': schemas.COUNT}, {'secret': schemas.STRING}, 'webhook')
ANSWER = schemas.make_object({'webhook': _WEBHOOK})


@operation.serves('GET', _PATH, policy.WEBHOOK_SHOW, ANSWER, since=SINCE)
def show_webhook(call):
    """Show the webhook of a project."""
    return {'webhook': _view(call, _project(call))}


@operation.serves('PUT', _PATH, policy.WEBHOOK_UPDATE, ANSWER, body=BODY,
                  errors=(503,), since=SINCE)
def set_webhook(call):
    """Set the webhook of a project, and send a test event to it."""
    project_id, wanted = _project(call), call.body['webhook']
    rules = target_check.load_rules(call.services.conf)
    if not rules.ports:
        raise webob.exc.HTTPForbidden('The operator allows no webhooks.')
    try:
        target_check.find(wanted['url'], rules)
    except webhook_targets.Refused as exc:
        raise exceptions.InvalidRequest(
            f"Invalid field 'webhook.url': {exc}.", 'webhook.url') from None
    database, now = call.services.database, timeutils.utcnow()
    known = webhooks.get(database, project_id)
    made = None if known or 'secret' in wanted else (
        webhook_delivery.make_secret(secrets.token_bytes(32)))
    secret = wanted.get('secret', made)
    webhooks.put(database, webhook_delivery.Webhook(
        project_id, wanted['url'],
        known.sealed if secret is None else _seal(call, project_id, secret),
        call.context.user_id or '', now, now))
    _send_test(database, project_id, now)
    shown = _view(call, project_id)
    return {'webhook': {**shown, 'secret': made} if made else shown}


@operation.serves('DELETE', _PATH, policy.WEBHOOK_DELETE, since=SINCE)
def delete_webhook(call):
    """Delete the webhook of a project, and the events that wait for it."""
    if not webhooks.delete(call.services.database, _project(call)):
        raise _not_found()


def _project(call):
    """Return the project of the path if its webhook may be used."""
    project_id = pagination.name(call, 'project_id', 'project')
    call.require(call.rule, (project_id, ''))
    return project_id


def _view(call, project_id):
    found = webhooks.get(call.services.database, project_id)
    if found is None:
        raise _not_found()
    return views.render(found, _WEBHOOK, waiting=webhooks.count_waiting(
        call.services.database, project_id))


def _not_found():
    return webob.exc.HTTPNotFound('The project has no webhook.')


def _seal(call, project_id, secret):
    try:
        webhook_delivery.key_of(secret)
        return secret_encryption.SecretCipher(
            call.services.conf.backlog).seal(project_id, secret)
    except ValueError as exc:
        raise exceptions.InvalidRequest(
            f"Invalid field 'webhook.secret': {exc}.", 'webhook.secret'
        ) from None
    except (secret_encryption.NoKey, secret_encryption.BadKeys):
        raise exceptions.NoAnswer(
            'Secrets of webhooks cannot be encrypted; the operator has to set '
            '[backlog]secret_key_file.') from None


def _send_test(database, project_id, now):
    sent_at = views.time(now)
    webhooks.add(database, webhook_delivery.Delivery(
        uuidutils.generate_uuid(), project_id,
        json.dumps({'type': 'webhook.test', 'timestamp': sent_at, 'data': {}}),
        webhook_delivery.expiry('webhook.test', {}, now), now))
