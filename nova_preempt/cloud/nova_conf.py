# SPDX-License-Identifier: Apache-2.0
"""Reads nova.conf for a program."""

from nova import config
import nova.conf
from oslo_config import cfg

from nova_preempt import exceptions

CONF = nova.conf.CONF

MISSING = ('no nova.conf was found in the default directories, such as '
           '/etc/nova; name the file with --config-file')

# Raised for a missing or invalid file, a directory, and an encoding other than
# UTF-8.
BAD = (cfg.Error, OSError, UnicodeDecodeError)


def read(conf, arguments, **kwargs):
    """Read the files that a command line names, or Nova's default ones.

    :param conf: nova.conf.CONF
    :param arguments: the command line, with the program's name
    :param kwargs: those of nova.config.parse_args()
    :raises InvalidConfiguration: there is no file, or it cannot be read
    """
    try:
        config.parse_args(arguments, **kwargs)
    except BAD as exc:
        raise exceptions.InvalidConfiguration(describe(exc)) from None
    if not is_there(conf):
        raise exceptions.InvalidConfiguration(MISSING)


def describe(exc):
    """Return the text of an error of oslo.config."""
    return (str(exc) if isinstance(exc, cfg.Error)
            else f'the configuration cannot be read: {exc}')


def is_there(conf):
    """Return whether any file was read."""
    return bool(conf.config_file or conf.config_dir)
