# SPDX-License-Identifier: Apache-2.0
"""Changes of state that leave a server on its host, in the Nova in memory."""

from novaclient import exceptions as nova_exc

#: {task state: the action that leads to it}
_ACTIONS = {'powering-off': 'stop', 'powering-on': 'start',
            'rebooting_hard': 'reboot', 'pausing': 'pause',
            'unpausing': 'unpause'}


class States:
    """Stops, pauses and locks servers of a nova.MemoryNova."""

    def _until_up(self, server):
        """Wait until the compute service of a server runs."""
        while server.host and not self.hosts[server.host].runs:
            self._take('cast')

    def _until_runs(self, name):
        """Wait until a compute service handles a cast."""
        while not self.hosts[name].runs:
            self._take('cast')

    def act_stop(self, server, is_admin):
        self._check_built(server)
        self.check(server, ('active', 'error'), is_admin=is_admin)
        self._simple(server, 'powering-off', 'stopped')

    def act_start(self, server, is_admin):
        self._check_built(server)
        self.check(server, ('stopped',), is_admin=is_admin)
        self._simple(server, 'powering-on', 'active')

    @staticmethod
    def _check_built(server):
        if server.cell is None:
            raise nova_exc.NotFound(404)

    def act_reboot(self, server, is_admin):
        """Switch a server off and on."""
        self.check(server, ('active', 'stopped', 'paused', 'suspended',
                            'error'), is_admin=is_admin)
        self._simple(server, 'rebooting_hard', 'active', failed='error')

    def _synchronize(self, server):
        """Stop a server that its compute service finds switched off."""
        self._take('power state')
        if server.is_left_off and not server.deleted and (
                server.task_state is None and server.vm_state != 'stopped'):
            self._record(server, 'stop', None)
            self._simple(server, 'powering-off', 'stopped')

    def act_pause(self, server, is_admin):
        self.check(server, ('active',), is_admin=is_admin)
        self._simple(server, 'pausing', 'paused')

    def act_unpause(self, server, is_admin):
        self.check(server, ('paused',), is_admin=is_admin)
        self._simple(server, 'unpausing', 'active')

    def _simple(self, server, task_state, vm_state, failed=None):
        if server.host is None:
            raise nova_exc.Conflict(409, 'it is not ready')
        self._save(server, task_state=task_state)

        def run(server):
            self._until_up(server)
            self._take(task_state)
            if self._still(server, task_state):
                found = vm_state
                if self.fails(task_state):
                    found = failed
                    self._note_error(server, _ACTIONS[task_state])
                self._save(server, task_state=None,
                           **({'vm_state': found} if found else {}))

        self._start(task_state, server, run)

    @staticmethod
    def _note_error(server, action):
        """Record that the last action of a server with this name failed."""
        found = next((each for each in server.actions
                      if each.action == action), None)
        if found is not None:
            found.message = 'Error'

    def act_lock(self, server, is_admin, reason=None):
        if server.locked and not is_admin:
            return False          # it changes nothing, and is not recorded
        self._save(server, locked=True,
                   locked_by='admin' if is_admin else 'owner',
                   locked_reason=reason or server.locked_reason)
        return True

    def act_unlock(self, server, is_admin):
        if server.locked_by == 'admin' and not is_admin:
            raise nova_exc.Forbidden(403, 'an administrator has locked it')
        self._save(server, locked=False, locked_by=None, locked_reason=None)
