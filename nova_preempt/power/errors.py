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
"""What can go wrong between us and the power of hosts."""

from nova_preempt.core import masking


class PowerError(Exception):
    """A host's power could not be switched, or its state is not known.

    :param host: its node name
    :param cause: text for an operator, or the exception behind it
    """

    def __init__(self, host, cause):
        # An address of a controller may hold its password.
        self.host = host
        self.cause = masking.masked(cause)
        super().__init__(f'host {host}: {self.cause}')


class SourceError(Exception):
    """A power source as a whole gave nothing that could be used."""


class HostsFileError(Exception):
    """[energy]hosts_file, or what it says of a host, cannot be used."""
