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
"""Readings of Kwapi's REST API."""

from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import readings
from nova_preempt.power import rest


class Kwapi:
    """All probes in one request, as Kwapi's collector has them last."""

    NAME = 'kwapi'

    def __init__(self, conf, options):
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._client = rest.make_adapter(conf, options.kwapi_url)

    def read(self, hosts):
        """See nova_preempt.power.readings.Source."""
        with rest.answers_of('Kwapi'):
            probes = rest.call(self._client, 'GET', '/v1/probes/')['probes']
            return {
                host: readings.Reading(
                    host, probe.get('w'),
                    readings.from_epoch(probe.get('timestamp')))
                for host in hosts
                if (probe := probes.get(
                    self._hosts.source_name(host, self.NAME)))}
