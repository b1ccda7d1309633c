# SPDX-License-Identifier: Apache-2.0
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
