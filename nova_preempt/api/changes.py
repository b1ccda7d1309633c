# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One line in the log for each change that somebody asks for.

Also for those that are refused. keystonemiddleware's audit, see auth, tells
the bus of every request; this is there without it.
"""

import json

from oslo_log import log as logging
import webob.exc

from nova_preempt import requester
from nova_preempt.core.backlog import bodies

LOG = logging.getLogger(__name__)

# Of the body, in characters.
_MAX_SHOWN = 500


def log(call, operation, answer=None, refusal=None):
    """Say who has changed what.

    :param call: a router.Call
    :param operation: an operations.Operation
    :param answer: its JSON, if it has any
    :param refusal: the exception instead
    """
    LOG.info('%(name)s: %(method)s %(path)s %(outcome)s; asked by '
             '%(asked_by)s%(body)s', {
                 'name': operation.name, 'method': call.request.method,
                 'path': call.request.path,
                 'outcome': _outcome(operation, answer, refusal),
                 'asked_by': requester.text(
                     requester.describe(call.context)),
                 'body': _shown(call.body)})


def _outcome(operation, answer, refusal):
    if refusal is None:
        return f'{operation.success}{_made(answer)}'
    if isinstance(refusal, webob.exc.HTTPError):
        return f'refused, {refusal.status_int} {refusal.detail or ""}'.strip()
    return f'failed, {type(refusal).__name__}: {refusal}'


def _made(answer):
    """The id of what was made or changed, if it has one."""
    for item in (answer or {}).values():
        if isinstance(item, dict) and 'id' in item:
            return f' {item["id"]}'
    return ''


def _without_secrets(body):
    """The body with stars for what Nova shows to nobody, if it has that."""
    request = body.get('request') if isinstance(body, dict) else None
    if not (isinstance(request, dict) and 'body' in request):
        return body
    return {**body, 'request': {
        **request, 'body': bodies.without_secrets(request['body'])}}


def _shown(body):
    """As JSON, which has no line breaks that could forge a line."""
    if body is None:
        return ''
    text = json.dumps(_without_secrets(body))
    return f'; {text[:_MAX_SHOWN]}{"..." * (len(text) > _MAX_SHOWN)}'
