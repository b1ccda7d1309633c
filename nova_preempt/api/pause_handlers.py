# SPDX-License-Identifier: Apache-2.0
"""Handlers of pauses."""

import webob.exc

from nova_preempt.api import operation
from nova_preempt.api import policy
from nova_preempt.api import schemas
from nova_preempt.api import views
from nova_preempt.db import pauses as db

_WHAT = {'type': 'string', 'enum': list(db.ALL)}

PAUSE = schemas.make_body('pause', {'reason': schemas.TEXT}, section='pause')

_PAUSE = schemas.make_object({
    'what': _WHAT,
    **dict.fromkeys(('since', 'reason', 'user_id', 'project_id',
                     'request_id'), schemas.STRING)}, section='pause')
PAUSE_ANSWER = schemas.make_object({'pause': _PAUSE})
PAUSES_ANSWER = schemas.make_object({'pauses': schemas.array(_PAUSE)})


@operation.serves('GET', '/v1/pauses', policy.PAUSE_LIST, PAUSES_ANSWER,
                  since='1.2')
def list_pauses(call):
    """List the pauses."""
    return {'pauses': view(call.services.database)}


def view(database):
    """Return all pauses as JSON."""
    return [_view(item) for item in db.get(database).values()]


@operation.serves('PUT', '/v1/pauses/{what}', policy.PAUSE, PAUSE_ANSWER,
                  body=PAUSE, since='1.2')
def pause(call):
    """Pause preemption, reservations, power control or the backlog."""
    what = _what(call)
    database = call.services.database
    context = call.context
    db.pause(database, what, call.body['pause']['reason'],
             user_id=context.user_id or '',
             project_id=context.project_id or '',
             request_id=context.request_id or '')
    return {'pause': _view(db.get(database)[what])}


@operation.serves('DELETE', '/v1/pauses/{what}', policy.PAUSE, since='1.2')
def resume(call):
    """Resume after a pause."""
    what = _what(call)
    if not db.resume(call.services.database, what):
        raise webob.exc.HTTPNotFound(f'{what} is not paused.')


def _what(call):
    what = call.path['what']
    if what not in db.ALL:
        raise webob.exc.HTTPNotFound(
            f'{what!r:.80} cannot be paused; {", ".join(db.ALL)} can.')
    return what


def _view(item):
    return {**vars(item), 'since': views.time(item.since)}
