# SPDX-License-Identifier: Apache-2.0
"""Requests that users submit to the backlog, change and cancel."""

import datetime
import types

from nova_preempt.backlog import request_parser
from nova_preempt.core.backlog import backlog_model
from nova_preempt.db import backlog_store
from nova_preempt.db import pauses
from tests.exploration import operations
from tests.exploration import processes
from tests.exploration import traps

_IMAGE = '20000000-0000-0000-0000-000000000000'


def _context(project):
    """The context and the token of the user of a project."""
    user = f'user of {project}'
    return types.SimpleNamespace(
        project_id=project, user_id=user, roles=['member']
    ), f'token of {user}'


def _wishes(world, rng):
    now = world.loop.utcnow().replace(microsecond=0)
    found = {}
    if rng.random() < 0.2:
        found['not_before'] = now + datetime.timedelta(
            seconds=rng.choice((20, 120)))
    if rng.random() < 0.3:
        found['longest_wait_s'] = rng.choice((60, 200, 600))
    if rng.random() < 0.3:
        found['comes_back'] = True
        found['most_returns'] = rng.choice((None, 1))
    return found


@operations.kind
def submit(world, watcher, rng):
    context, token = _context(operations.project(rng))
    flavors = rng.sample(operations.FLAVORS[:8], rng.choice((1, 1, 2)))
    count = rng.choice((1, 1, 2))
    wanted = request_parser.ParsedRequest(
        {'server': {'name': 'waiting', 'imageRef': _IMAGE,
                    'networks': 'none'}}, '2.90', count,
        rng.choice((None, 1)), tuple(each.flavorid for each in flavors),
        wishes=_wishes(world, rng))
    operations.ask_api(world, lambda api: world.loop.tell(
        'submitted', api.intake.submit(context, token, wanted).uuid))


def _open(watcher):
    return [each for each in watcher.requests()
            if each.state in backlog_model.OPEN]


@operations.kind
def change_request(world, watcher, rng):
    found = _open(watcher)
    if found:
        chosen = rng.choice(found)
        uuid, (context, token) = chosen.uuid, _context(chosen.project_id)
        values = rng.choice((
            {'longest_wait_s': rng.choice((None, 100, 900))},
            {'count': 2, 'least_count': rng.choice((1, 2))},
            {'comes_back': rng.random() < 0.5}))
        operations.ask_api(world, lambda api: api.intake.change(
            context, token, backlog_store.get(processes.database(), uuid),
            values))


@operations.kind
def cancel_request(world, watcher, rng):
    found = _open(watcher)
    if found:
        chosen, ends_servers = rng.choice(found), rng.random() < 0.5
        operations.ask_api(world, lambda api: api.intake.cancel(
            chosen, ends_servers))


@operations.kind
def backlog_is_paused(world, watcher, rng):
    operations.pause_for(world, watcher, pauses.BACKLOG, rng.choice((10, 60)))


@operations.kind
def user_loses_role(world, watcher, rng):
    user = f'user of {operations.project(rng)}'
    world.loop.tell(user, 'has no role')
    world.keystone.without_role.add(user)
    world.loop.sleep(rng.choice((5, 60, 300)))
    world.keystone.without_role.discard(user)


@operations.kind
def quota_is_set(world, watcher, rng):
    world.user_api.quotas = rng.choice(({}, {'instances': 3}, {'cores': 4}))
    world.loop.tell('quotas are', world.user_api.quotas)


@operations.kind
def boot_has_no_answer(world, watcher, rng):
    """The next boot arrives late, or its answer does not."""
    world.faults.traps.append(traps.Trap(
        'nova api POST /servers', rng.choice(('late', 'late', 'lost'))))
