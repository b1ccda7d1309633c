# SPDX-License-Identifier: Apache-2.0
"""Tests of the marks of preemptible servers."""

import unittest
from unittest import mock

from nova_preempt.cloud import extra_specs


class TestMarks(unittest.TestCase):

    def test_flavor(self):
        for specs, expected in (
            ({}, False),
            ({'preemptible:enabled': 'true'}, True),
            ({'preemptible:enabled': 'YES'}, True),
            ({'preemptible:enabled': 'false'}, False),
            ({'blazar:preemptible': 'True'}, True),
            ({'blazar:preemptible': '0'}, False),
            ({'preemptible:enabeld': 'true'}, False),
        ):
            with self.subTest(specs):
                self.assertIs(
                    expected, extra_specs.flavor_is_preemptible(specs))

    def test_lifecycle(self):
        specs = {'lifecycle:preemptable': 'true', 'x': 'y',
                 'lifecycle:preempt_policy': 'shelve'}
        own = {**specs, 'preemptible:enabled': 'false',
               'preemptible:action': 'stop'}
        for marks, expected in (((), (specs, own)), (('hint',), (specs, own)),
                                (('hint', 'lifecycle'), (
                {**specs, 'preemptible:enabled': 'true',
                 'preemptible:action': 'shelve'}, own))):
            with mock.patch('oslo_config.cfg.CONF', mock.Mock(
                    preemption=mock.Mock(marks=marks))):
                self.assertEqual(expected, (extra_specs.translated(specs),
                                            extra_specs.translated(own)))
                self.assertEqual({'a': 'b'}, extra_specs.translated(
                    {'a': 'b'}))
        # A process without our options.
        with mock.patch('oslo_config.cfg.CONF', mock.Mock(spec=[])):
            self.assertEqual(specs, extra_specs.translated(specs))

    def test_hint_in_any_form_that_nova_keeps(self):
        for hints, expected in (
            (None, False),
            ({}, False),
            ({'preemptible': ['true']}, True),
            ({'preemptible': 'true'}, True),
            ({'preemptible': True}, True),
            ({'preemptible': ['false']}, False),
            ({'preemptible': []}, False),
            ({'group': ['x']}, False),
        ):
            with self.subTest(hints):
                self.assertIs(expected, extra_specs.hint_is_preemptible(hints))

    def test_class_of_preemptible_servers(self):
        for specs, expected in (
            ({}, ''),
            ({'preemptible:enabled': 'true'}, ''),
            ({'preemptible:enabled': 'true',
              'preemptible:class': 'gold'}, 'gold'),
            ({'preemptible:class': 'gold'}, ''),
        ):
            with self.subTest(specs):
                self.assertEqual(expected, extra_specs.class_name(specs))

    def test_resources(self):
        specs = {'resources:VGPU': '1', 'resources1:CUSTOM_GPU': '2',
                 'resources_more:CUSTOM_GPU': '3', 'resources2:FPGA': 'x',
                 'trait1:CUSTOM_A100': 'required', 'resources:VCPU': '0'}
        self.assertEqual({'VGPU': 1, 'CUSTOM_GPU': 5, 'VCPU': 0},
                         extra_specs.resource_amounts(specs))

    def test_minimum_runtime(self):
        key = extra_specs.MINIMUM_RUNTIME
        for specs, expected in (({}, 0), ({key: '90'}, 90), ({key: '-5'}, 0),
                                ({key: 'soon'}, 0)):
            with self.subTest(specs):
                self.assertEqual(
                    expected, extra_specs.minimum_runtime_s(specs))
