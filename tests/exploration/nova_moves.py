# SPDX-License-Identifier: Apache-2.0
"""Migrations and resizes of the Nova in memory."""

import uuid as uuids

from novaclient import exceptions as nova_exc

from tests.exploration import nova_servers
from tests.exploration import requests


class Moves:
    """Moves servers of a nova.MemoryNova."""

    def act_live_migrate(self, server, is_admin):
        self.check(server, ('active', 'paused'), is_admin=is_admin)
        self._save(server, task_state='migrating')
        self._start('live migration', server, self._live_migrate)

    def _live_migrate(self, server):
        if not self._moves(server):
            self._note_error(server, 'live_migrate')

    def _moves(self, server):
        """Migrate a server; return whether it has not failed."""
        if not self._still(server, 'migrating'):
            return True
        if not self.hosts[server.host].is_up:
            self._save(server, task_state=None)
            return False
        move = self._begin_move(server, 'live_migrate', 'migrating')
        if move is None:
            return False
        self._take('live migration')
        if not self._still(server, 'migrating') or (
                not self._may_move(move) or self.fails('migration')):
            self._end_move(server, move, back=True)
            return False
        source = server.guest
        move.status = 'completed'
        self._save(server, host=move.target, node=move.target,
                   guest=move.target, task_state=None)
        self.loop.tell('nova moved', server.uuid[:8], source, move.target)
        self._empty(move.uuid)
        return True

    def _may_move(self, move):
        """Return whether both compute services answer."""
        if self.hosts[move.source].runs and self.hosts[move.target].runs:
            return True
        self.loop.sleep(nova_servers.DOWN_S)
        return False

    def _begin_move(self, server, operation, task_state):
        move = nova_servers.Migration(
            str(uuids.uuid4()), server.uuid, server.host)
        self.migrations[move.uuid] = move
        # Nova moves one that has none, too, and frees no host after a failure.
        held = self.placement('get', f'/allocations/{server.uuid}').json()
        move.is_held = self.hosts[server.host].uuid in held['allocations']
        if move.is_held and (
                not self._move_allocations(server.uuid, move.uuid, server)):
            move.status = 'error'
            server.spec.flavor = server.flavor
            self._save(server, task_state=None)
            return None
        server.spec.ignore_hosts = [server.host]
        try:
            move.target, = self.schedule([server], operation)
        except nova_servers.FAILURES:
            self._end_move(server, move, back=True)
            return None
        finally:
            server.spec.ignore_hosts = None
        return move

    def _end_move(self, server, move, back):
        """Take a move back: the server has its old allocations again."""
        move.status = 'error'
        server.spec.flavor = server.flavor
        if server.deleted:
            self.free(move.uuid)
            self.free(server.uuid)
            return
        if not move.is_held:
            self.leaks.add((server.uuid, move.target))
        self._give_back(server, move)
        if not server.deleted and server.task_state in (
                'migrating', 'resize_prep', 'resize_migrating'):
            self._save(server, task_state=None)

    def _give_back(self, server, move):
        """Replace the allocations of the server by those of the migration."""
        for _ in range(5):
            if self._move_allocations(move.uuid, server.uuid, server):
                break
            self._take('retry')

    def act_resize(self, server, is_admin, flavor=None):
        self.check(server, ('active', 'stopped'), is_admin=is_admin)
        self._save(server, task_state='resize_prep')
        self._start('resize', server, self._resize, flavor or server.flavor)

    def act_migrate(self, server, is_admin):
        self.act_resize(server, is_admin)

    def _resize(self, server, flavor):
        action = next(each.action for each in server.actions
                      if each.action in ('migrate', 'resize'))
        if not self._resizes(server, flavor):
            self._note_error(server, action)

    def _resizes(self, server, flavor):
        """Resize or migrate a server; return whether it has not failed."""
        old = server.flavor
        hints = server.spec.scheduler_hints
        server.spec = requests.make(server, 1, flavor)
        server.spec.scheduler_hints = hints
        operation = 'cold_migrate' if flavor is old else 'resize'
        move = self._begin_move(server, operation, 'resize_prep')
        if move is None:
            return False
        if not self._still(server, 'resize_prep'):
            self._end_move(server, move, back=True)
            return True
        self._until_runs(move.target)
        self._until_runs(move.source)
        self._save(server, task_state='resize_migrating')
        self._take('resize')
        if not self._still(server, 'resize_migrating') or (
                self.fails('migration')):
            self._end_move(server, move, back=True)
            return False
        move.status = 'finished'
        self._save(server, host=move.target, node=move.target,
                   guest=move.target, flavor=flavor, old_flavor=old,
                   old_vm_state=server.vm_state, vm_state='resized',
                   task_state=None)
        return True

    def _move_of(self, server):
        found = next((move for move in self.migrations.values()
                      if move.server == server.uuid
                      and move.status == 'finished'), None)
        if found is None:
            # It is being confirmed; Nova finds no such migration.
            raise nova_exc.BadRequest(400)
        return found

    def act_confirm_resize(self, server, is_admin):
        self.check(server, ('resized',), is_admin=is_admin)
        move = self._move_of(server)
        move.status = 'confirmed'
        self._start('confirm', server, self._confirm, move)

    def _confirm(self, server, move):
        self._until_runs(move.source)
        self._take('confirm')
        self._empty(move.uuid)
        if not server.deleted and server.vm_state == 'resized':
            self._save(server, vm_state=server.old_vm_state, old_flavor=None)

    def act_revert_resize(self, server, is_admin):
        self.check(server, ('resized',), is_admin=is_admin)
        move = self._move_of(server)
        move.status = 'reverting'
        self._save(server, task_state='resize_reverting')
        self._start('revert', server, self._revert, move)

    def _revert(self, server, move):
        self._until_runs(move.target)
        self._until_runs(move.source)
        self._take('revert')
        if not self._still(server, 'resize_reverting'):
            self.free(move.uuid)
            return
        self._save(server, host=move.source, node=move.source,
                   guest=move.source, flavor=server.old_flavor,
                   old_flavor=None)
        server.spec.flavor = server.flavor
        self._give_back(server, move)
        move.status = 'reverted'
        if self._still(server, 'resize_reverting'):
            self._save(server, vm_state=server.old_vm_state, task_state=None)
