# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What tempest loads, by the entry point in setup.cfg."""

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
