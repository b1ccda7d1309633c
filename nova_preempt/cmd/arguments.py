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
"""Declaring and reading arguments of commands."""

import argparse


def add_group(groups, name, text):
    """A command of commands; returns what those are added to."""
    return groups.add_parser(name, help=text).add_subparsers(
        required=True, metavar='COMMAND')


def within(kind, least, most=float('inf')):
    """A type of arguments: numbers from least to most.

    :param kind: int or float
    """
    def read(text):
        found = kind(text)
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(
                f'{text} is not from {least} to {most}')
        return found

    # So argparse calls what is no number at all.
    read.__name__ = kind.__name__
    return read
