# SPDX-License-Identifier: Apache-2.0
"""Errors of power drivers and sources."""

from nova_preempt.core import credential_masking


class PowerError(Exception):
    """A host's power cannot be switched, or its state cannot be read.

    :param host: its node name
    :param cause: text for an operator, or the exception behind it
    """

    def __init__(self, host, cause):
        # NOTE: the address of a controller may contain its password.
        self.host = host
        self.cause = credential_masking.masked(cause)
        super().__init__(f'host {host}: {self.cause}')


class SourceError(Exception):
    """A power source cannot be read, or its answer is invalid."""


class HostsFileError(Exception):
    """[energy]hosts_file, or a host's settings in it, are invalid."""
