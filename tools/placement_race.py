# SPDX-License-Identifier: Apache-2.0
"""Overcommit a Placement by simultaneous claims of several clients.

    python tools/placement_race.py --os-auth-url ... [--rounds 40]

Makes a resource provider of its own with 10 VCPU, has six clients ask for 5
of them each at the same moment, again and again, and removes it. Exits with 1
if Placement has ever given away more than it had. Credentials are those of
openstackclient (--os-... or OS_...) of a user who may change providers.
"""

import argparse
import concurrent.futures
import os
import sys
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import loading

CLIENTS = 6
CAPACITY = 10
AMOUNT = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    loading.register_session_argparse_arguments(parser)
    loading.register_auth_argparse_arguments(
        parser, sys.argv[1:], default='password')
    loading.register_adapter_argparse_arguments(
        parser, service_type='placement')
    parser.add_argument('--rounds', type=int, default=40)
    parser.set_defaults(os_region_name=os.environ.get('OS_REGION_NAME'))
    args = parser.parse_args()
    auth = loading.load_auth_from_argparse_arguments(args)
    clients = [adapter.Adapter(
        loading.load_session_from_argparse_arguments(args, auth=auth),
        service_type=args.os_service_type, interface=args.os_interface,
        region_name=args.os_region_name, default_microversion='1.36',
        raise_exc=False) for _ in range(CLIENTS)]
    provider = _make_provider(clients[0])
    over = granted = 0
    try:
        for _ in range(args.rounds):
            number, used = _race(clients, provider)
            granted += number
            over += used > CAPACITY
    finally:
        clients[0].delete(f'/resource_providers/{provider}')
    print(f'{over} of {args.rounds} rounds gave away more than there was; '
          f'{granted} of {args.rounds * CLIENTS} requests were granted')
    return 1 if over else 0


def _make_provider(client):
    provider = str(uuid.uuid4())
    for response in (
            client.post('/resource_providers', json={
                'name': f'race-{provider}', 'uuid': provider}),
            client.put(f'/resource_providers/{provider}/inventories', json={
                'resource_provider_generation': 0,
                'inventories': {'VCPU': {'total': CAPACITY,
                                         'max_unit': CAPACITY}}})):
        if response.status_code != 200:
            raise SystemExit(f'Placement says: {response.text}')
    return provider


def _race(clients, provider):
    """Return (number of granted claims, usage afterwards)."""
    consumers = [str(uuid.uuid4()) for _ in clients]

    def claim(client, consumer):
        return client.put(f'/allocations/{consumer}', json={
            'allocations': {provider: {'resources': {'VCPU': AMOUNT}}},
            'consumer_generation': None, 'project_id': 'race',
            'user_id': 'race'}).status_code == 204

    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        granted = sum(pool.map(claim, clients, consumers))
    usages = clients[0].get(f'/resource_providers/{provider}/usages').json()
    for consumer in consumers:
        clients[0].delete(f'/allocations/{consumer}')
    return granted, usages['usages'].get('VCPU', 0)


if __name__ == '__main__':
    sys.exit(main())
