# SPDX-License-Identifier: Apache-2.0
"""Errors of power drivers and sources."""

from nova_preempt.core import credential_masking


class PowerError(Exception):
    """A host's power could not be switched, or its state is not known.

    :param host: its node name
    :param cause: text for an operator, or the exception behind it
    """

    def __init__(self, host, cause):
        # An address of a controller may hold its password.
        self.host = host
        self.cause = credential_masking.masked(cause)
        super().__init__(f'host {host}: {self.cause}')


class SourceError(Exception):
    """A power source as a whole gave nothing that could be used."""


class HostsFileError(Exception):
    """[energy]hosts_file, or what it says of a host, cannot be used."""
