# SPDX-License-Identifier: Apache-2.0
"""A small model of Nova's servers, whose tasks end when told to."""

import dataclasses

from nova_preempt.core.observed_server import ObservedServer

HERE, THERE = 'here', 'there'
OFFLOADED = 'shelved_offloaded'
_ANY = frozenset((
    'active', 'stopped', 'paused', 'suspended', 'rescued', 'resized', 'error',
    'shelved', OFFLOADED, 'soft-delete'))

#: {call: (vm_states that allow it, task_state meanwhile, vm_state afterwards)}
CALLS = {
    'force_delete': (_ANY, 'deleting', 'deleted'),
    'shelve': ({'active', 'stopped', 'paused', 'suspended'}, 'shelving',
               OFFLOADED),
    'shelve_offload': ({'shelved'}, 'shelving_offloading', OFFLOADED),
    'shelve_only': ({'active', 'stopped'}, 'shelving', 'shelved'),
    'unshelve': ({'shelved', OFFLOADED}, 'unshelving', 'active'),
    'stop': ({'active', 'error'}, 'powering-off', 'stopped'),
    'start': ({'stopped'}, 'powering-on', 'active'),
    'pause': ({'active'}, 'pausing', 'paused'),
    'unpause': ({'paused'}, 'unpausing', 'active'),
    'suspend': ({'active'}, 'suspending', 'suspended'),
    'resume': ({'suspended'}, 'resuming', 'active'),
    'rescue': ({'active'}, 'rescuing', 'rescued'),
    'unrescue': ({'rescued'}, 'unrescuing', 'active'),
    'resize': ({'active', 'stopped'}, 'resize_prep', 'resized'),
    'confirm_resize': ({'resized'}, 'resize_confirming', 'active'),
    'live_migrate': ({'active'}, 'migrating', 'active'),
}
#: Calls of users, and of administrators.
USER_CALLS = ('force_delete', 'shelve', 'shelve_only', 'unshelve', 'stop',
              'start', 'pause', 'unpause', 'suspend', 'resume', 'rescue',
              'unrescue', 'resize', 'confirm_resize', 'live_migrate')
_ON_OTHER_HOST = frozenset(('resize', 'live_migrate'))


@dataclasses.dataclass
class ModelServer:
    """A server.

    :ivar holds: names of hosts on which it has allocations
    :ivar call: the call that is being carried out
    :ivar hangs: whether what it is asked for never ends
    """

    uuid: str
    vm_state: str = 'active'
    host: str | None = HERE
    task_state: str | None = None
    locked_by: str = ''
    exists: bool = True
    holds: set = dataclasses.field(default_factory=lambda: {HERE})
    call: str = ''
    hangs: bool = False

    def observed(self, now_us):
        """Return Nova's record, None if there is none."""
        if not self.exists:
            return None
        return ObservedServer(
            self.uuid, self.vm_state, self.task_state, self.host,
            locked_by=self.locked_by, read_us=now_us)

    def allows(self, call):
        """Return whether Nova accepts a call now."""
        if call == 'abort_migration':
            return self.task_state == 'migrating'
        states, _, _ = CALLS[call]
        return self.exists and self.vm_state in states and (
            self.task_state is None or call == 'force_delete')

    def begin(self, call, host=HERE):
        """Accept a call; where a server is unshelved on ``host``."""
        if call == 'abort_migration':
            self.fail()
            return
        self.call, self.task_state = call, CALLS[call][1]
        if call in _ON_OTHER_HOST:
            host = THERE if self.host == HERE else HERE
        if call in _ON_OTHER_HOST or (call == 'unshelve'
                                      and self.vm_state == OFFLOADED):
            self.holds.add(host)
            self.destination = host

    def fail(self):
        """Give up the call; Nova leaves the server as it was."""
        if self.call in _ON_OTHER_HOST or (self.call == 'unshelve' and
                                           self.vm_state == OFFLOADED):
            self.holds = {self.host} - {None}
        if self.call == 'force_delete':
            self.vm_state = 'error'
        self.call, self.task_state = '', None

    def finish(self, *, frees=True, clears_host=True):
        """Carry out the call.

        :param frees: whether Nova frees the allocations of a deleted server
            at once
        :param clears_host: whether the compute service lives to clear the
            host of an offloaded server
        """
        call, self.call, self.task_state = self.call, '', None
        if (call == 'unshelve' and self.vm_state == OFFLOADED) or (
                call in _ON_OTHER_HOST):
            self.host = self.destination
        if call in ('live_migrate', 'confirm_resize'):
            self.holds = {self.host}
        self.vm_state = CALLS[call][2]
        if call == 'force_delete':
            self.exists = False
        if self.vm_state == OFFLOADED or (call == 'force_delete' and frees):
            self.holds = set()
        if self.vm_state == OFFLOADED and clears_host:
            self.host = None
