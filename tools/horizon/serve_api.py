# SPDX-License-Identifier: Apache-2.0
"""Serve the API with something to show, and stand-ins of other services.

Usage: serve_api.py FILE

Writes URLs and ids to FILE as JSON, and serves until it is killed.
"""

import datetime
import json
import os
import pathlib
import sys
import time
from unittest import mock

from oslo_utils import timeutils

from tests.unit.api import base as api_base
from tests.unit.sdk import base


def in_hours(count):
    """Return the time in so many hours, as the API takes it."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(
        hours=count)).strftime('%Y-%m-%dT%H:%M:%SZ')


def flavor(flavor_id, name, **extra_specs):
    return {'id': flavor_id, 'name': name, 'vcpus': 1, 'ram': 512, 'disk': 1,
            'extra_specs': extra_specs}


#: {end of the path: answer} of Nova, Glance and Neutron.
OTHERS = {
    'servers/detail': {'servers': [{
        'id': api_base.make_uuid('s'), 'name': 'spot-1', 'status': 'ACTIVE',
        'created': in_hours(-3), 'addresses': {}, 'metadata': {},
        'OS-EXT-STS:vm_state': 'active', 'flavor': {
            'original_name': 'spot', 'vcpus': 1, 'ram': 512, 'disk': 1,
            'extra_specs': {'preemptible:enabled': 'true'}}}]},
    'flavors/detail': {'flavors': [
        flavor('f1', 'big'),
        flavor('f2', 'spot', **{'preemptible:enabled': 'true'})]},
    'os-keypairs': {'keypairs': [{'keypair': {
        'name': 'key', 'fingerprint': 'x', 'public_key': 'y'}}]},
    'images': {'images': [{
        'id': api_base.Reading.image_id, 'name': 'cirros', 'size': 1,
        'status': 'active', 'visibility': 'public', 'min_disk': 0,
        'min_ram': 0}]},
    'networks': {'networks': [{
        'id': api_base.make_uuid('n'), 'name': 'private', 'subnets': []}]},
    'compute/v2.1': {'version': {
        'id': 'v2.1', 'status': 'CURRENT', 'version': '2.103',
        'min_version': '2.1', 'links': []}}}


def others(environ, start_response):
    """Answer as the other services would (WSGI)."""
    path = environ['PATH_INFO'].rstrip('/')
    found = next((answer for end, answer in OTHERS.items()
                  if path.endswith(end)), None)
    if found is None:
        version = {'image': 'v2', 'network': 'v2.0'}.get(
            path.strip('/').partition('/')[0], 'v2.1')
        found = {'versions': [{
            'id': version, 'status': 'CURRENT', 'links': [{
                'rel': 'self', 'href':
                f'http://{environ["HTTP_HOST"]}{path}/{version}/'}]}]}
    start_response('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps(found).encode()]


class Server(base.SdkTestCase):
    """The API of the tests of the SDK."""

    def runTest(self):
        """Make things to show, and serve."""
        for number in range(4):
            self.inventory.add(f'host{number}', vacant=number != 1)
        now = timeutils.utcnow().replace(microsecond=0)
        with mock.patch.object(api_base, 'NOW', now):
            for number in range(3):
                self.add(f'd{number}', project='p', age_s=600 * number,
                         victims=[('v', 'p', 'spot'), ('w', 'q', 'spot')],
                         record={'operation': 'create', 'flavor': 'normal',
                                 'resources': {'VCPU': 2}, 'why': 'full',
                                 'considered': [{
                                     'host': 'host1', 'node': 'host1',
                                     'cost_us': 60, 'victims': [
                                         api_base.make_uuid('v')]}]})
        reservation = self.member.create_reservation(
            start_time=in_hours(2), end_time=in_hours(5), name='r', quantity=1)
        request = self.member.create_backlog_request(flavors=['f1'], body={
            'server': {'name': 'batch', 'networks': 'none',
                       'imageRef': self.reading.image_id}})
        file = pathlib.Path(sys.argv[1])
        part = file.with_suffix('.part')
        part.write_text(json.dumps({
            'preemption': self.url, 'others': self.listen(others),
            'reservation': reservation.id, 'request': request.id,
            'decision': api_base.make_uuid('d0')}))
        os.replace(part, file)
        while True:
            time.sleep(1)


if __name__ == '__main__':
    Server().debug()
