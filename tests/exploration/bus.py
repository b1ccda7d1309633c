# SPDX-License-Identifier: Apache-2.0
"""Calls of the engines over a message bus in memory."""

import oslo_messaging as messaging

from nova_preempt import exceptions

#: How long the caller waits for an answer that does not come.
_TIMEOUT_S = 60


def sender(world):
    """Return a replacement for rpc.EngineClient._send.

    :param world: a world.World
    """
    def send(_client, _prepared, context, method, arguments):
        return _call(world, context, method, arguments)

    return send


def _call(world, context, method, arguments):
    """Have an engine serve a call; returns its answer."""
    world.seam('bus', method)
    alive = [each for each in world.engines if each.is_serving]
    if not alive:
        world.loop.sleep(_TIMEOUT_S)
        raise exceptions.NoAnswer('no engine is there')
    engine = world.draw_one(alive)
    endpoint = next(each for each in engine.endpoints()
                    if hasattr(each, method))
    task = world.loop.start(
        engine.process, f'{engine.name}/{method}',
        lambda: (getattr(endpoint, method)(context, **arguments),))
    world.loop.join(task)
    if task.result is None:
        if isinstance(task.error, messaging.ExpectedException):
            raise task.error.exc_info[1]
        world.loop.tell(method, 'has failed:', repr(task.error))
        raise exceptions.NoAnswer('the engine could not do it')
    return task.result[0]
