# SPDX-License-Identifier: Apache-2.0

"""What Sphinx needs to build the release notes."""

project = 'nova-preempt release notes'
copyright = 'nova-preempt contributors'

extensions = [
    'openstackdocstheme',
    'reno.sphinxext',
]

templates_path = ['../../doc/source/_templates']

# As doc/source/conf.py, which says why.
html_theme = 'openstackdocs'
html_theme_options = {
    'display_badge': False,
    'analytics_tracking_code': '',
}
openstackdocs_repo_name = ''
openstackdocs_bug_project = ''
openstackdocs_auto_name = False
openstackdocs_auto_version = False
