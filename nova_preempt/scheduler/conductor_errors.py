# SPDX-License-Identifier: Apache-2.0
"""Errors that Nova's conductor is not told as they are.

It makes the text of an error the fault of the server, which its owner reads:
the address of a database, a query or the name of an internal class tell them
nothing, and may tell them too much.
"""

import functools

from keystoneauth1 import exceptions as ks_exc
from nova import exception
from oslo_log import log as logging

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import refusals
from nova_preempt.core.scheduling import cloud_port
from nova_preempt.db import connection

LOG = logging.getLogger(__name__)

# Databases and services that do not answer, or not as they should.
_ERRORS = (*connection.ERRORS, ks_exc.ClientException, cell_calls.CellAway,
           nova_api.NovaError, placement_api.PlacementError,
           placement_api.Conflict, cloud_port.Unanswered)


def as_refusals(function):
    """Raise NoValidHost where a service fails.

    :param function: a method of Nova's scheduler manager
    """
    @functools.wraps(function)
    def told(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except _ERRORS as exc:
            LOG.exception('A request cannot be scheduled: a database or '
                          'service that it needs has failed.')
            raise exception.NoValidHost(reason=refusals.UNSERVED) from exc
    return told
