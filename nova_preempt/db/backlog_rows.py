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
"""Rows of requests that wait, as the core's objects."""

import dataclasses
import functools
import json

import sqlalchemy as sa

from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import redaction
from nova_preempt.db import backlog_models
from nova_preempt.db import reservation_rows

_REQUEST = backlog_models.BacklogRequest
_BOOT = backlog_models.BacklogBoot
_SERVER = backlog_models.BacklogServer

# In tables of their own.
_APART = ('boots', 'servers')


def values(request):
    """The columns of a core Request."""
    return columns({
        field.name: getattr(request, field.name)
        for field in dataclasses.fields(request) if field.name not in _APART})


def columns(values):
    """The same values, by the names of model.Request, as columns have them."""
    found = dict(values)
    if found.get('state') in model.CLOSED:
        # Nothing is started for it any more.
        found['sealed'] = None
    if 'alternatives' in found:
        found['alternatives'] = json.dumps(
            [_alternative(item) for item in found['alternatives']])
    if found.get('priorities') is not None:
        found['priorities'] = json.dumps(
            dataclasses.asdict(found['priorities']))
    for name in ('body', 'waits_for'):
        if name in found:
            found[name] = json.dumps(dict(found[name]))
    return found


def shorten(session, uuid, state):
    """Drop most of the body of a request, if it is closed by this state."""
    if state in model.CLOSED:
        body = session.execute(sa.select(_REQUEST.body).where(
            _REQUEST.uuid == uuid)).scalar_one()
        session.execute(sa.update(_REQUEST).where(
            _REQUEST.uuid == uuid).values(
            body=json.dumps(redaction.of_closed(json.loads(body)))))


def fetch(session, query, with_bodies=True):
    """The core Requests of a query, with their boots and servers."""
    left_out = _APART if with_bodies else (*_APART, 'body')
    rows = session.execute(query.with_only_columns(
        *(getattr(_REQUEST, field.name)
          for field in dataclasses.fields(model.Request)
          if field.name not in left_out),
        maintain_column_froms=True)).all()
    boots = {row.uuid: [] for row in rows}
    servers = {row.uuid: [] for row in rows}
    for uuids in reservation_rows.batches(boots):
        for row in session.execute(
                sa.select(*_BOOT.__table__.c)
                .where(_BOOT.request_uuid.in_(uuids)).order_by(_BOOT.number)):
            boots[row.request_uuid].append(model.Boot(*row[1:]))
        for row in session.execute(
                sa.select(_SERVER.request_uuid, _SERVER.uuid, _SERVER.boot,
                          _SERVER.state, _SERVER.since)
                .where(_SERVER.request_uuid.in_(uuids))
                .order_by(_SERVER.boot, _SERVER.uuid)):
            servers[row.request_uuid].append(model.OwnServer(*row[1:]))
    return [_request(row, boots[row.uuid], servers[row.uuid])
            for row in rows]


def given_up(database, uuids):
    """The set of those of these servers that nobody waits for any more.

    They were on their way as their request was closed, so that they are
    deleted as soon as the engine gets to it.
    """
    found = set()
    with database.reader() as session:
        for some in reservation_rows.batches(uuids):
            found.update(session.scalars(
                sa.select(_SERVER.uuid).join(
                    _REQUEST, _REQUEST.uuid == _SERVER.request_uuid)
                .where(_SERVER.uuid.in_(some))
                .where(_SERVER.state == model.BUILDING)
                .where(_REQUEST.state.in_(model.CLOSED))))
    return found


def _alternative(item):
    # Where reservations lead is known in a pass alone.
    return {**{name: value for name, value
               in dataclasses.asdict(item).items()
               if name not in ('hosts', 'own_hosts')},
            'resources': dict(item.resources)}


@functools.lru_cache(maxsize=1024)
def alternatives(text):
    """Most requests have those of others, as the same object."""
    return tuple(
        model.Alternative(**{
            **item, **{name: tuple(item.get(name, ()))
                       for name in ('required', 'forbidden')}})
        for item in json.loads(text))


def _request(row, boots, servers):
    values = row._asdict()
    values['waits_for'] = json.loads(values['waits_for'])
    values['body'] = json.loads(values.get('body', '{}'))
    values['alternatives'] = alternatives(values['alternatives'])
    if values['priorities'] is not None:
        values['priorities'] = model.Priorities(
            **json.loads(values['priorities']))
    return model.Request(**values, boots=tuple(boots),
                         servers=tuple(servers))
