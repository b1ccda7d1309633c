# SPDX-License-Identifier: Apache-2.0
"""The tempest plugin, loaded by the entry point in setup.cfg."""

import os

from tempest import config
from tempest.test_discover import plugins

from nova_preempt_tempest_plugin import config as our_config

HERE = os.path.dirname(os.path.abspath(__file__))


class NovaPreemptTempestPlugin(plugins.TempestPlugin):

    def load_tests(self):
        return HERE, os.path.dirname(HERE)

    def register_opts(self, conf):
        conf.register_opt(our_config.service_option, group='service_available')
        for group, options in (
                (our_config.preemption_group, our_config.PreemptionGroup),
                (our_config.preemption_feature_group,
                 our_config.PreemptionFeatureGroup)):
            config.register_opt_group(conf, group, options)

    def get_opt_lists(self):
        return [
            ('service_available', [our_config.service_option]),
            (our_config.preemption_group.name, our_config.PreemptionGroup),
            (our_config.preemption_feature_group.name,
             our_config.PreemptionFeatureGroup),
        ]

    def get_service_clients(self):
        return [{
            **config.service_client_config('preemption'),
            'name': 'preemption_v1',
            'service_version': 'preemption.v1',
            'module_path': 'nova_preempt_tempest_plugin.services',
            'client_names': ['PreemptionClient', 'ReservationClient',
                             'EnergyClient'],
        }]
