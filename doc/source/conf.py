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

"""What Sphinx needs to build the documentation."""

project = 'nova-preempt'
copyright = 'nova-preempt contributors'

extensions = [
    'sphinx.ext.autodoc',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
    'oslo_policy.sphinxpolicygen',
    'cliff.sphinxext',
]

# Sample configuration, which configuration.rst shows.
config_generator_config_file = [
    ('../../etc/nova-preempt/nova-preempt-config-generator.conf',
     '_static/nova-preempt'),
]

# Sample policy, which api.rst shows.
policy_generator_config_file = [
    ('../../etc/nova-preempt/nova-preempt-policy-generator.conf',
     '_static/nova-preempt'),
]

html_theme = 'alabaster'
html_theme_options = {
    'description': 'Preemptible servers for OpenStack Nova',
    'fixed_sidebar': True,
}
