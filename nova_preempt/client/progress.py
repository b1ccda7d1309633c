# SPDX-License-Identifier: Apache-2.0
"""Waits for what takes long, and tells how far it is."""

import time

from openstack import exceptions as sdk_exc
from osc_lib import exceptions

from nova_preempt.client import base

#: Seconds between two looks.
INTERVAL_S = 2

WAIT = base.option('--wait', action='store_true',
                   help='Wait until it is done or active; show progress')


def wait(command, read, describe, is_there, has_failed=lambda item: False):
    """Read an object until it is as wanted, and return it.

    Each change of the description is written to standard error. Errors of the
    service and of the network are retried.

    :param read: returns the object
    :param describe: returns a sentence on it, given as a dict
    :param is_there: returns whether the object is as wanted
    :param has_failed: returns whether it can no longer be
    :raises CommandError: it has failed
    """
    told = None
    while True:
        item = None
        try:
            item = read()
            text = describe(item.answer())
        except (sdk_exc.HttpException, *base.UNREACHABLE) as exc:
            if getattr(exc, 'status_code', None) in range(400, 500):
                raise
            text = f'{base.refusal(exc)} Retrying.'
        if item and has_failed(item):
            raise exceptions.CommandError(text)
        if text != told:
            command.app.stderr.write(f'{text}\n')
            told = text
        if item and is_there(item):
            return item
        time.sleep(INTERVAL_S)


def until(*statuses):
    """Return a function that returns whether an object has such a status."""
    return lambda item: item.status in statuses
