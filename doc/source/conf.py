# SPDX-License-Identifier: Apache-2.0

"""What Sphinx needs to build the documentation."""

import os
import sys

sys.path.insert(0, os.path.abspath('../ext'))

project = 'nova-preempt'
copyright = 'nova-preempt contributors'

extensions = [
    'sphinx.ext.autodoc',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
    'oslo_policy.sphinxpolicygen',
    'cliff.sphinxext',
    'openstackdocstheme',
    'api_reference',
    'log_lines',
    'metrics_table',
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

templates_path = ['_templates']

html_theme = 'openstackdocs'
html_theme_options = {
    'display_badge': False,         # that of a release of OpenStack
    'analytics_tracking_code': '',  # who reads is nobody's business
}
# Neither names a place that is there: a repository, and a bug tracker.
openstackdocs_repo_name = ''
openstackdocs_bug_project = ''
# The name is the one above; the pages are of no version.
openstackdocs_auto_name = False
openstackdocs_auto_version = False
