# SPDX-License-Identifier: Apache-2.0
"""Tests of the export of a trace that need no Nova."""

import datetime
import io
import json
import os
import tempfile
import unittest
from unittest import mock

from nova_preempt.cloud import placement_api
from nova_preempt.cmd import simulation_cloud_file
from nova_preempt.cmd import trace_export
from nova_preempt.core import model
from nova_preempt.core import observed_server
from nova_preempt.core.model import Inventory
from nova_preempt.simulator.traces import native_format
from nova_preempt.simulator.traces import trace_formats

BEGIN = datetime.datetime(2026, 1, 31)
SPOT = {'preemptible:enabled': 'true', 'hw:cpu_policy': 'dedicated'}


def at(seconds):
    return None if seconds is None else (
        BEGIN + datetime.timedelta(seconds=seconds))


def server(uuid, created_s, launched_s, ended_s, project='secret',
           **extra_specs):
    return observed_server.ObservedServer(
        uuid, 'active', created_at=at(created_s), launched_at=at(launched_s),
        ended_at=at(ended_s), project_id=project,
        resources={'VCPU': 2, 'DISK_GB': 1}, extra_specs=extra_specs)


class TestEvents(unittest.TestCase):

    def lines(self, *servers, **kwargs):
        self.export = trace_export.TraceExporter(**kwargs)
        stream = io.StringIO()
        native_format.write(stream, self.export.events(servers))
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    def test_numbers_in_place_of_names(self):
        self.assertEqual([
            {'t': 0, 'kind': 'boot', 'id': 's1', 'class': 'normal',
             'project': 'p1', 'duration': 50,
             'resources': {'VCPU': 2, 'DISK_GB': 1}},
            {'t': 5, 'kind': 'boot', 'id': 's2', 'class': 'normal',
             'project': 'p2', 'resources': {'VCPU': 2, 'DISK_GB': 1}},
            {'t': 7, 'kind': 'boot', 'id': 's3', 'class': 'normal',
             'project': 'p1', 'resources': {'VCPU': 2, 'DISK_GB': 1}},
        ], self.lines(server('a', 10, 20, 70), server('b', 15, 16, None, 'x'),
                      server('c', 17, 18, None)))

    def test_servers_that_never_ran_are_omitted(self):
        self.assertEqual([], self.lines(server('a', 10, None, 20),
                                        server('b', 10, None, None)))
        self.assertEqual(2, self.export.never_ran)

    def test_servers_from_before_the_interval(self):
        found = self.lines(
            server('gone', 0, 1, 99), server('just', 0, 1, 100),
            server('stays', 10, 20, 160), server('new', 110, 120, 130),
            server('late', 201, 202, 203), since=at(100), until=at(200))
        self.assertEqual([(0, 60), (10, 10)],
                         [(each['t'], each['duration']) for each in found])

    def test_classes(self):
        found = self.lines(
            server('a', 0, 1, None), server('b', 0, 1, None, **SPOT),
            server('c', 0, 1, None, **{'blazar:preemptible': 'True'}),
            server('d', 0, 1, None, **SPOT, **{'preemptible:notice_s': '9'}),
            server('e', 0, 1, None), hinted={'e'})
        self.assertEqual(
            ['normal', 'preemptible', 'preemptible', 'preemptible-2',
             'preemptible'], [each['class'] for each in found])
        self.assertEqual(
            {'preemptible': {'preemptible:enabled': 'true'},
             'preemptible-2': {'preemptible:enabled': 'true',
                               'preemptible:notice_s': '9'}},
            self.export.classes)

    def test_times_that_cannot_be(self):
        """Clocks of computes differ; no run time is negative."""
        (found,) = self.lines(server('a', 10, 20, 19))
        self.assertEqual(0, found['duration'])


class TestCloud(unittest.TestCase):

    def test_the_cloud_can_be_read(self):
        large = {'VCPU': Inventory(8, 1, allocation_ratio=4.0),
                 'MEMORY_MB': Inventory(4096, 512)}
        small = {'VCPU': Inventory(4), 'MEMORY_MB': Inventory(2048),
                 'VGPU': Inventory(0)}
        found = trace_export.describe(
            [large, small, dict(large), {}],
            {'preemptible': {'preemptible:enabled': 'true',
                             'preemptible:notice_s': '9'}})
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'cloud.yaml')
            with open(path, 'w', encoding='utf-8') as stream:
                json.dump(found, stream)
            setup, _ = simulation_cloud_file.read_cloud(path)
        self.assertEqual([('host1', 1), ('host2', 2)],
                         [(kind.name, kind.count) for kind in setup.hosts])
        self.assertEqual(
            {'VCPU': 28, 'MEMORY_MB': 3584},
            {name: item.capacity
             for name, item in setup.hosts[1].inventories.items()})
        self.assertEqual(9, setup.classes['preemptible'].notice_s)

    def test_nested_providers_are_summed_up(self):
        states = {
            'h': {'VCPU': Inventory(8, 1, allocation_ratio=4.0)},
            'g1': {'CUSTOM_GPU': Inventory(1)},
            'g2': {'CUSTOM_GPU': Inventory(3, 1)}}
        listed = [placement_api.Provider(uuid, uuid, 1, 'h', '' if uuid == 'h'
                                         else 'h') for uuid in sorted(states)]
        fake = mock.Mock()
        fake.get_provider_state = lambda uuid: (
            model.Provider(uuid, 1, states[uuid], {})
            if uuid in states else None)
        found = trace_export._read_tree(fake, listed[-1], listed)
        self.assertEqual([{
            'name': 'host1', 'count': 1,
            'resources': {'CUSTOM_GPU': 3, 'VCPU': 8},
            'reserved': {'VCPU': 1}, 'allocation_ratios': {'VCPU': 4.0},
        }], trace_export.describe([found.inventories], {})['hosts'])
        del states['h']
        self.assertIsNone(trace_export._read_tree(fake, listed[-1], listed))

    def test_a_host_that_comes_meanwhile(self):
        listed = [placement_api.Provider('old', 'old', 1, 'old', '')]

        class Growing(placement_api.Placement):

            def list_all_providers(self, params):
                found = list(listed)
                listed.append(placement_api.Provider('new', 'new', 1, 'new',
                                                     ''))
                return found

            def get_provider_state(self, uuid, known=None):
                return model.Provider(uuid, 1, {'VCPU': Inventory(8)}, {})

        with tempfile.TemporaryDirectory() as directory, (
                mock.patch.object(placement_api, 'Placement', Growing)), (
                    mock.patch.object(trace_export.host_records, 'list_nodes',
                                      return_value={'old', 'new'})):
            path = os.path.join(directory, 'cloud.yaml')
            trace_export._write_cloud(path, {'c': None},
                                      trace_export.TraceExporter())
            setup, _ = simulation_cloud_file.read_cloud(path)
        self.assertEqual([1], [kind.count for kind in setup.hosts])

    def test_the_output_is_a_trace(self):
        export = trace_export.TraceExporter()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'trace.jsonl')
            with open(path, 'w', encoding='utf-8') as stream:
                native_format.write(stream, export.events(
                    [server('a', 0, 1, 2), server('b', 0, 1, None, **SPOT)]))
            found = list(trace_formats.Trace('json', [path]))
        self.assertEqual(['s1', 's2'], [event.id for event in found])
