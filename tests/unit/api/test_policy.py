# SPDX-License-Identifier: Apache-2.0

"""Policy rules check the target, not only the requester."""

from nova_preempt.api import policy
from tests.unit.api import base

ADMIN = 'admin:z'


class PolicyTestCase(base.AnsweringTestCase):

    microversion = '1.1'
    options = (f'{base.AnsweringTestCase.options}'
               '[oslo_policy]\npolicy_file = rules.yaml\n')
    rules = {}

    def setUp(self):
        super().setUp()
        (self.directory / 'rules.yaml').write_text(''.join(
            f'{name}: "{check}"\n' for name, check in self.rules.items()))
        self.inventory.add('host1')
        self.inventory.add('host2')

    def reserve(self, token):
        return '/v1/reservations/' + self.post(
            '/v1/reservations', {'reservation': {'duration': 60}}, token,
            201)['reservation']['id']


class TestOwners(PolicyTestCase):
    """Only the user who made a reservation may change it."""

    rules = {policy.RESERVATION_UPDATE: 'user_id:%(user_id)s',
             policy.RESERVATION_DELETE: 'user_id:%(user_id)s'}
    change = {'reservation': {'name': 'x'}}

    def test_reservations(self):
        path = self.reserve('u:p')
        self.patch(path, self.change, 'v:p', 403)
        self.delete(path, 'v:p', 403)
        self.get(path, 'v:p')
        # The user of another project does not even know of it.
        for token in ('u:q', 'v:q'):
            self.patch(path, self.change, token, 404)
            self.delete(path, token, 404)
        self.patch(path, self.change, 'u:p')
        self.patch(path, self.change, ADMIN)
        self.delete(path, 'u:p')


class TestRoles(PolicyTestCase):
    """Roles do not grant access to other projects."""

    rules = {policy.RESERVATION_SHOW: 'role:reader',
             policy.RESERVATION_DELETE: 'role:member',
             policy.SHOW: 'role:reader'}

    def test_other_projects(self):
        path = self.reserve('u:p')
        self.get(path, 'u:q', 404)
        self.delete(path, 'u:q', 404)
        self.get(path, 'v:p')
        uuid = self.add('a', 'n', [('v', 'p', 'spot')])
        self.get(f'/v1/preemptions/{uuid}', 'u:q', 404)
        for project in 'np':
            self.get(f'/v1/preemptions/{uuid}', f'u:{project}')


class TestOneOtherProject(PolicyTestCase):
    """Tests of access to one other project."""

    rules = dict.fromkeys(
        (policy.ALL_PROJECTS, policy.LIMITS_SHOW_ALL,
         policy.RESERVATION_ALL_PROJECTS),
        "rule:preemption_admin or (user_id:u and 'p':%(project_id)s)")

    def test_it(self):
        paths = {project: self.reserve(f'a:{project}') for project in 'pr'}
        self.get(paths['p'], 'u:q')
        self.get(paths['r'], 'u:q', 404)
        for name in ('reservations', 'preemptions'):
            self.get(f'/v1/{name}?project_id=p', 'u:q')
            self.get(f'/v1/{name}?project_id=r', 'u:q', 403)
            self.get(f'/v1/{name}?all_projects=true', 'u:q', 403)
        self.get('/v1/reservation-limits/p', 'u:q')
        self.get('/v1/reservation-limits/r', 'u:q', 403)
        self.delete(paths['p'], 'u:q')

    def test_a_preemption_with_several_projects(self):
        uuid = self.add('a', 'p', [('v', 'r', 'spot')])
        # One side is of a project that is not theirs to see.
        self.get(f'/v1/preemptions/{uuid}', 'u:q', 404)
        uuid = self.add('b', 'p', [('w', 'p', 'spot')])
        self.get(f'/v1/preemptions/{uuid}', 'u:q')
