# SPDX-License-Identifier: Apache-2.0
"""Tests of the readers of the duel's traces, on small files."""

import hashlib
import pathlib
import random
import tempfile
import unittest

import duel_traces

from nova_preempt.core.model import SECOND

PODS = '''\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,\
creation_time,deletion_time,scheduled_time
gone,1000,1024,0,0,,LS,Running,10,90,10
old,1500,1024,1,460,,LS,Running,40,150,40
new,4000,2048,2,1000,,BE,Pending,130,160,
'''


def figures(boots):
    return [(each.at_us / SECOND, each.id, dict(each.resources),
             each.class_name, each.duration_us and each.duration_us / SECOND)
            for each in boots]


class TestReaders(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding='ascii')
        return path

    def test_alibaba(self):
        """Pods that are there when the replay begins come first."""
        self.assertEqual([
            (0, 'old', {'VCPU': 2, 'MEMORY_MB': 1024, 'CUSTOM_GPU': 460},
             'normal', 50),
            (30, 'new', {'VCPU': 4, 'MEMORY_MB': 2048, 'CUSTOM_GPU': 2000},
             'preemptible', 30)],
            figures(duel_traces.read_alibaba(self.write('pods', PODS), 100)))

    def azure(self, share, part=1.0, seed=1):
        self.write('flav_map.txt', '1,1.75 b\n8,14 m\n')
        self.write('v1.interval_map.txt',
                   '0 0\n300 1\n3900 13\n7200 13\n')
        self.write('v1.dev.txt', '600 b,b,|,\n900 m,|,\n')
        self.write('v1.dev.c900.txt', '600 U0,U13,|,\n900 C1,|,\n')
        return figures(duel_traces.read_azure(
            self.folder, share, random.Random(seed), part, end_s=900))

    def test_azure(self):
        small = {'VCPU': 1, 'MEMORY_MB': 1792}
        self.assertEqual([
            (0, '600-0', small, 'normal', 150),
            (100, '600-1', small, 'normal', 5550),
            (300, '900-0', {'VCPU': 8, 'MEMORY_MB': 14336}, 'normal', None)],
            self.azure(0))

    def test_batches_are_preemptible_as_a_whole(self):
        self.assertEqual({'preemptible'}, {each[3] for each in self.azure(1)})
        for seed in range(20):
            found = self.azure(0.5, seed=seed)
            self.assertEqual(found[0][3], found[1][3])

    def test_part_of_the_batches(self):
        self.assertEqual([], self.azure(0, part=0))
        self.assertEqual({0, 1, 2, 3}, {
            len(self.azure(0, 0.5, seed)) for seed in range(30)})

    def test_swf(self):
        job = '{} {} -1 60 {} -1 -1 {} -1 -1 -1 1 1 -1 -1 -1 -1 -1\n'
        path = self.write('log.swf', job.format(1, 0, 6, 6)
                          + job.format(2, 10, 1, 1) + job.format(3, 99, 1, 1))
        host = {'VCPU': 4}
        for share, name in ((0, 'normal'), (1, 'preemptible')):
            found = list(duel_traces.read_swf(
                path, share, random.Random(1), host, 50))
            self.assertEqual([4, 2, 1],
                             [each.resources['VCPU'] for each in found])
            self.assertEqual({name}, {each.class_name for each in found})

    def test_recipe(self):
        path = self.write('pods', PODS)
        recipe = duel_traces.Recipe(
            'here', {'pods': hashlib.sha256(path.read_bytes()).hexdigest()},
            {'VCPU': 3, 'MEMORY_MB': 4096, 'CUSTOM_GPU': 8000},
            lambda folder, chance: duel_traces.read_alibaba(
                folder / 'pods', 0), '')
        boots, omitted = recipe.boots(self.folder, 1)
        self.assertEqual(['gone', 'old'], [each.id for each in boots])
        self.assertEqual(1, omitted)
        self.write('pods', PODS + '\n')
        with self.assertRaisesRegex(ValueError, 'pods has the SHA-256'):
            recipe.boots(self.folder, 1)

    def test_quantile(self):
        """Two vCPUs for 30 s of 100, three for 10, one for 60."""
        boots = [duel_traces.boot(at_s, str(at_s), {'VCPU': vcpus}, is_spot,
                                  duration_s)
                 for at_s, vcpus, is_spot, duration_s in (
                     (0, 1, False, None), (10, 9, True, 50),
                     (20, 1, False, 40), (30, 1, False, 10),
                     (100, 1, False, 5))]
        for share, expected in ((0.6, 1), (0.61, 2), (0.9, 2), (0.91, 3)):
            self.assertEqual(
                expected, duel_traces.quantile_vcpus(boots, share))
