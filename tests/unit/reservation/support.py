# SPDX-License-Identifier: Apache-2.0
"""Leases, and services that answer as a test wants."""

import types

from nova_preempt.core.reservation import leases as core
from nova_preempt.reservation import lease_cache


def lease(lease_id, start_s, end_s, *hosts, project='p',
          status=core.PENDING):
    return core.HostLease(lease_id, project, status, start_s, end_s,
                          frozenset(hosts))


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now_s=0):
        self.now_s = now_s

    def __call__(self):
        return self.now_s


class Service:
    """Returns given answers, or raises given exceptions."""

    def __init__(self, *answer):
        self.answer = answer
        self.past = {}
        self.asked = 0

    def fetch(self):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def get(self, lease_id):
        return self.past.get(lease_id)


def options(**values):
    return types.SimpleNamespace(**{
        'lease_service': 'test',
        'on_unavailable': 'fail_closed', **values})


class Fixed(lease_cache.LeaseCache):
    """Leases without a thread: asks where the thread would be asked to."""

    def __init__(self, *answer, now_s=0, monotonic=None, **values):
        super().__init__(Service(*answer), options(**values), Clock(now_s),
                         monotonic or Clock())

    def start(self):
        if self._known is None and not self._error:
            self.ask()

    def refresh(self, lease_ids=()):
        if self._error:
            return False
        self.ask(lease_ids)
        return not self._error

    def ask(self, lease_ids=()):
        self._ask(set(lease_ids))
