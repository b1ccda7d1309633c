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
"""The extensions of Sphinx that the guide is built with."""

import importlib.util
import pathlib

EXTENSIONS = pathlib.Path(__file__).parents[1] / 'doc' / 'ext'


def extension(name):
    """The module of an extension."""
    spec = importlib.util.spec_from_file_location(
        name, EXTENSIONS / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
