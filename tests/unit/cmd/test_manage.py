# SPDX-License-Identifier: Apache-2.0
"""Output of nova-preempt-manage about decisions."""

import contextlib
import io
import json
import unittest
from unittest import mock

from nova_preempt.cmd import manage
from nova_preempt.db import decisions
from nova_preempt.handover import allocation_audit
from tests.unit.api import base


class TestDecisions(base.DatabaseTestCase):

    def show(self, *arguments):
        """(exit status, lines)"""
        args = manage._parser().parse_args(['decision', 'show', *arguments])
        out = io.StringIO()
        with mock.patch.object(manage, 'CONF', self.conf), \
                contextlib.redirect_stdout(out):
            status = args.run(args)
        return status, out.getvalue().splitlines()

    def test_open_ones_are_for_people(self):
        self.assertEqual((1, []), self.show('--open'))
        self.add('old', 'p', [('v', 'p', 'spot')])
        uuid = self.add('now', 'p', [('w', 'p', 'spot')],
                        status=decisions.CLAIMED)
        victim, server = (base.make_uuid(name)
                          for name in ('w', 'now-server'))
        line = (f'{uuid} claimed create on host1 for {server}: '
                f'{victim} gone')
        self.assertEqual((0, [line]), self.show('--open'))
        self.assertEqual((0, [line]), self.show('--open', '--brief'))

    def test_json(self):
        uuid = self.add('now', 'p', [('w', 'p', 'spot')],
                        status=decisions.CLAIMED)
        for arguments in ((), ('--open', '--json'), ('--json',)):
            status, (line,) = self.show(*arguments)
            self.assertEqual((0, uuid), (status, json.loads(line)['uuid']))
        with self.assertRaises(SystemExit), \
                contextlib.redirect_stderr(io.StringIO()):
            self.show('--brief', '--json')


class TestVerify(unittest.TestCase):

    def test_each_kind_of_problem_can_be_left_out(self):
        for kind in ('claim_without_allocation', allocation_audit.NO_SPACE,
                     allocation_audit.OPEN_DECISION,
                     allocation_audit.OVER_CAPACITY, 'broken_invariant'):
            args = manage._parser().parse_args(
                ['verify', '--without', kind])
            self.assertEqual([kind], args.without)
