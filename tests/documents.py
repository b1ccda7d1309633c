# SPDX-License-Identifier: Apache-2.0
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
