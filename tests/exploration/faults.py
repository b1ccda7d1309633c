# SPDX-License-Identifier: Apache-2.0
"""Draws which calls fail, and makes the errors that callers see."""

from keystoneauth1 import exceptions as ks_exc
from novaclient import exceptions as nova_exc
from oslo_db import exception as db_exc

from nova_preempt import exceptions
from nova_preempt.cloud import cell_calls
from nova_preempt.power import power_errors


class Faults:
    """Draws which calls fail.

    :param rng: a random.Random of its own
    :param rate: how often a call fails; None: drawn, and with it how often a
        process crashes at a seam
    :ivar traps: traps.Traps for single calls
    """

    KINDS = ('refused', 'lost', 'lost', 'late', 'twice', 'slow')

    def __init__(self, rng, rate=None):
        self.rng = rng
        self.rate = rate
        self.crash_rate = 0.0005
        if rate is None:
            self.rate = rng.choice((0.005, 0.02, 0.06))
            self.crash_rate = rng.choice((0.0002, 0.0005, 0.002))
        self.is_off = False
        self.traps = []

    def draw(self, call=''):
        """Return a kind of failure of a call, '' for none.

        :returns: one of KINDS or of traps.KINDS
        """
        if self.is_off:
            return ''
        for trap in self.traps:
            if trap.call in call:
                self.traps.remove(trap)
                return trap.fault
        chance = self.rng.random()
        if chance < self.crash_rate:
            return 'crash'
        if chance < self.crash_rate + self.rate:
            return self.rng.choice(self.KINDS)
        return ''


def _placement_error(lost):
    return (ks_exc.RequestTimeout if lost else ks_exc.ConnectFailure)(
        'explored')


def _nova_error(lost):
    return ks_exc.ConnectFailure('explored') if lost else (
        nova_exc.ClientException(503, 'explored'))


#: {kind of a service: returns the error of a call that is refused, or whose
#: answer is lost}
ERRORS = {
    'placement': _placement_error, 'nova': _nova_error,
    'cell': lambda lost: cell_calls.CellDown(cell='explored', limit=10),
    'api database': lambda lost: db_exc.DBConnectionError('explored'),
    'nova api': lambda lost: (
        ks_exc.RequestTimeout if lost else ks_exc.ServiceUnavailable)(
        'explored'),
    'keystone': lambda lost: (
        ks_exc.RequestTimeout if lost else ks_exc.ConnectFailure)('explored'),
    'bus': lambda lost: exceptions.NoAnswer('explored'),
    'controller': lambda lost: power_errors.PowerError('one', 'explored'),
    'database': lambda lost: db_exc.DBConnectionError('explored')}
#: {kind of a service whose requests may arrive twice, and whose answers may be
#: lost: how much later than its sender gives up a request may arrive, in s}
SERVICES = {'placement': 60, 'nova': 60, 'nova api': 60, 'keystone': 60,
            'controller': 0}
#: Calls that no HTTP client sends twice: each makes something new that only
#: its answer names.
NOT_TWICE = ('create trust', 'POST /servers')
#: What such a late request may raise, which nobody hears.
UNHEARD = (nova_exc.ClientException, ks_exc.ClientException,
           power_errors.PowerError)
