# SPDX-License-Identifier: Apache-2.0
"""Servers of classes that are evicted for others and return."""

from openstack import exceptions

from tests.cloud import base

CLASSES = {'gold': 'importance:1,availability:1',
           'bronze': 'importance:2,availability:0.05'}


class TestClasses(base.CloudTest):

    OPTIONS = {
        'preemption': {'actions': 'delete,shelve'},
        'preemption_engine': {'interval_s': 2},
        'classes': {
            'enabled': 'true', 'pass_period_s': 5,
            'qos_class': '\nqos_class = '.join(
                # New ones of bronze end none that has just been built.
                f'name:{name},{values},safety_margin_s:0,least_run_s:60'
                for name, values in CLASSES.items())}}
    CONSTANTS = {'core.classes.availability_margin.OVERHEAD_S': 0,
                 'classes.class_registry.LOOK_S': 2}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in CLASSES:
            try:
                flavor = cls.admin.compute.create_flavor(
                    name=f'{name}.half', vcpus=5, ram=1280, disk=5)
            except exceptions.ConflictException:
                continue
            cls.admin.compute.create_flavor_extra_specs(flavor, {
                'preemptible:enabled': 'true', 'preemptible:notice_s': '0',
                'preemptible:class': name})

    def test_gold_evicts_bronze_which_returns(self):
        self.assertEqual(
            sorted(CLASSES), sorted(row['Name'] for row in
                                    self.place.openstack(
                                        'backlog', 'class', 'list')))
        bronze = self.fill(self.theirs, 'bronze.half')
        gold = self.wait_until(self._gold, 'a gold one that is active')
        shelved = self.wait_until(
            lambda: self._with('SHELVED_OFFLOADED'), 'one that is shelved')
        self.assertEqual(1, len(shelved))
        self.assertLessEqual(shelved, bronze.keys())
        self.ours.delete([gold])
        self.wait_until(lambda: self._with('ACTIVE') == bronze.keys(),
                        'all of them')

    def _gold(self):
        """Boot a gold server; return its uuid, None before bronze may end."""
        uuid = self.ours.boot('gold', self.flavor('gold.half'))
        if self.ours.wait(uuid, base.PATIENCE_S) == 'ACTIVE':
            return uuid
        self.ours.delete([uuid])
        return None

    def _with(self, status):
        return {uuid for uuid, (_name, found)
                in self.theirs.servers().items() if found == status}
