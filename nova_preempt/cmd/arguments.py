# SPDX-License-Identifier: Apache-2.0
"""Helpers to declare and parse arguments of commands."""

import argparse


def add_group(groups, name, text):
    """Add a command with subcommands; return their subparsers."""
    return groups.add_parser(name, help=text).add_subparsers(
        required=True, metavar='COMMAND')


def within(kind, least, most=float('inf')):
    """Return an argument type: numbers from least to most.

    :param kind: int or float
    """
    def read(text):
        found = kind(text)
        if not least <= found <= most:
            raise argparse.ArgumentTypeError(
                f'{text} must be from {least} to {most}')
        return found

    # argparse names it in the error for other text.
    read.__name__ = kind.__name__
    return read
