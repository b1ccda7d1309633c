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
