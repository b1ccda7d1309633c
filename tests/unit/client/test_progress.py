# SPDX-License-Identifier: Apache-2.0
"""Commands with --wait, against the API; time passes where they sleep."""

import re
import types
from unittest import mock

from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from oslo_utils import timeutils

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import backlog_store
from nova_preempt.db import decisions
from nova_preempt.db import energy_store
from nova_preempt.db import reservations
from nova_preempt.sdk.v1 import _proxy
from tests.unit.api.base import make_uuid
from tests.unit.client import test_preemption_commands

ADMIN = {'token': 'admin:z'}


class TestWait(test_preemption_commands.ClientTestCase):

    def setUp(self):
        super().setUp()
        self.inventory.add('host0')
        self.inventory.add('host1')
        self.reservations = reservations.Reservations(self.db)

    def run_while(self, steps, *arguments, **values):
        """Return the output of a command that sleeps once for each step."""
        left = iter(steps)
        with mock.patch('nova_preempt.client.progress.time', types.
                        SimpleNamespace(sleep=lambda _s: next(left)())):
            text = self.openstack(*arguments, **values)
        self.assertEqual([], list(left), text)
        return text

    def change_reservation(self, **values):
        uuid, = (item.uuid for item in self.reservations.list())
        self.assertTrue(self.reservations.update(uuid, **values))

    def test_reservation(self):
        def drained(host):
            uuid, = (item.uuid for item in self.reservations.list())
            self.reservations.set_host(uuid, host, reservation_model.READY)

        text = self.run_while([
            lambda: self.change_reservation(status='active'),
            lambda: drained('host0'), lambda: None,
            lambda: (drained('host1'), self.change_reservation(
                ready_at=timeutils.utcnow()))],
            'reservation', 'create', '--duration', '1h', '--quantity', '2',
            '--wait', **ADMIN)
        self.assertEqual(
            ['2 hosts will be reserved from T to T.',
             '2 hosts reserved until T, 0 free of other servers so far.',
             '2 hosts reserved until T, 1 free of other servers so far.',
             '2 hosts reserved until T.'],
            [re.sub(r'\d{4}-\S+Z', 'T', line)
             for line in text.splitlines()[:4]])
        self.assertIn('| why ', text)
        text = self.run_while([
            lambda: self.change_reservation(
                status='ended', released_at=timeutils.utcnow())],
            'reservation', 'delete', '--wait', self.json(
                'reservation', 'list', '--all-projects', **ADMIN)[0]['ID'],
            **ADMIN)
        self.assertIn('It is over since', text)

    def test_reservation_that_fails(self):
        text = self.run_while([lambda: self.change_reservation(
            status='error', reason='no host is free')],
            'reservation', 'create', '--duration', '1h', '--wait', code=1,
            **ADMIN)
        self.assertTrue(text.endswith('It has failed: no host is free.\n'))

    def test_request(self):
        def change(state, **values):
            request, = backlog_store.find(self.db)
            self.assertTrue(backlog_store.change(
                self.db, request.uuid, backlog_model.OPEN,
                timeutils.utcnow(), state=state, **values))

        arguments = ('backlog', 'request', 'create', 'batch', '--image',
                     self.reading.image_id, '--flavor', 'f1', '--wait')
        text = self.run_while([
            lambda: change('waiting', position=2, waits_for={
                'code': 'space', 'text': 'no host has 4 VCPU'}),
            lambda: change('placing'), lambda: change('active')], *arguments)
        self.assertIn(
            'It waits for capacity at position 2: no host has 4 VCPU.\n'
            'Its servers are starting, 0 of 1 so far', text)
        self.assertIn('Its servers run', text)

    def test_boot_of_a_host(self):
        def change(state, reason=''):
            energy_store.set_power(self.db, 'host0', state,
                                   timeutils.utcnow(), from_states=(
                                       'on', 'waking', 'failed'),
                                   reason=reason)

        arguments = ('energy', 'host', 'retry', 'host0', '--wait')
        for state, code in (('on', 0), ('failed', 1)):
            change('failed', 'it did not boot')
            # The last reading of the command is of this state.
            text = self.run_while([
                lambda state=state: change(state, 'it did not boot')],
                *arguments, code=code, **ADMIN)
            self.assertIn('The host is waking since', text)
            self.assertIn(f'The host is {state} since', text)

    def test_eviction(self):
        uuid = self.add('simulated', 'p', [('p-spot', 'p', 'spot')],
                        status=decisions.CLAIMED, operation='simulate',
                        owner='me')
        self.assertEqual(make_uuid('simulated'), uuid)
        text = self.run_while([
            lambda: self.decisions.update_decision(
                uuid, 'me', decisions.DONE, new_owner='')],
            'preemption', 'simulate', make_uuid('p-spot'), '--wait')
        self.assertIn('1 server is being evicted as somebody has requested it',
                      text)
        self.assertIn('1 server was evicted as somebody', text)

    def test_failures_of_the_service(self):
        real = _proxy.Proxy.get_reservation
        failures = [
            ks_exc.ConnectFailure('x'),
            sdk_exc.HttpException(details='The database is away.')]

        def get(proxy, uuid):
            if failures:
                raise failures.pop(0)
            return real(proxy, uuid)

        with mock.patch.object(_proxy.Proxy, 'get_reservation', get):
            text = self.run_while(
                [lambda: None, lambda: None, lambda: self.change_reservation(
                    ready_at=timeutils.utcnow())],
                'reservation', 'create', '--duration', '1h', '--wait')
        self.assertIn('The service cannot be reached', text)
        self.assertIn('The database is away. Retrying.', text)
        failures.append(sdk_exc.NotFoundException(
            details='It is gone.', response=mock.Mock(
                status_code=404, headers={})))
        with mock.patch.object(_proxy.Proxy, 'get_reservation', get):
            self.assertIn('It is gone.', self.run_while(
                [], 'reservation', 'create', '--duration', '1h', '--wait',
                code=1))
