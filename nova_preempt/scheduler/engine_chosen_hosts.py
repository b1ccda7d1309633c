# SPDX-License-Identifier: Apache-2.0
"""Hosts that the engine has chosen for requests that waited.

They come first when Nova sorts hosts, after the filters, and are claimed like
other hosts: if one is full or gone, the next best host is used.
"""

import copy
import itertools

import nova.conf
from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.cloud import placement_api
from nova_preempt.core.backlog import boot_host_choice
from nova_preempt.db import boot_host_choices

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def find(database, asked, now):
    """Return {node: number of servers} of a request, None if none was chosen.

    A forged or outdated hint is ignored.

    :param asked: a nova_preempt.scheduler.request_context.RequestContext
    :param now: naive, in UTC
    """
    secret = _secret(asked.spec_obj)
    # The hint of the boot does not apply to later moves.
    if secret is None or asked.operation != boot_host_choice.CREATE:
        return None
    boot = boot_host_choice.BootParameters(
        asked.spec_obj.project_id, asked.context.user_id,
        asked.spec_obj.flavor.flavorid, len(asked.server_uuids))
    try:
        choice = boot_host_choices.get_choice(database, secret)
        why = boot_host_choice.refusal(choice, boot, now)
        if not why and not boot_host_choices.use_choice(database, secret):
            why = 'it was used before'
    except db_exc.DBError as exc:
        why = f'the database does not tell what it is for: {exc}'
    if why:
        LOG.info('Server %(server)s is placed without regard to its hint '
                 '%(hint)s: %(why)s.',
                 {'server': asked.server_uuids[0],
                  'hint': boot_host_choice.HINT, 'why': why})
        return None
    return choice.hosts


def _secret(spec_obj):
    hints = (spec_obj.scheduler_hints
             if 'scheduler_hints' in spec_obj else None) or {}
    value = hints.get(boot_host_choice.HINT)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value, = value
    return value if isinstance(value, str) else None


def add(offered, names, ask, resources, find_providers):
    """Return allocation candidates that include the hosts of these names.

    In a large cloud Placement limits the number of candidates.

    :param offered: (allocation requests, provider summaries, version)
    :param ask: returns the candidates of a ResourceRequest
    :param resources: the nova.scheduler.utils.ResourceRequest
    :param find_providers: see Placement.list_providers
    """
    requests, summaries, version = offered
    if not names or not requests or (
            resources.get_request_group(None).in_tree) or (
            len(requests) < CONF.scheduler.max_placement_results):
        return offered
    requests, summaries = list(requests), dict(summaries)
    try:
        for provider in itertools.chain.from_iterable(
                find_providers([('name', name)]) for name in names):
            if provider.uuid in summaries:
                continue
            narrow = copy.deepcopy(resources)
            narrow.get_request_group(None).in_tree = provider.uuid
            # Nova's client returns None if Placement is away.
            more, known, _ = ask(narrow) or (None, None, None)
            requests += more or ()
            summaries.update(known or {})
    except placement_api.PlacementError as exc:
        LOG.warning('Cannot read the hosts that the engine chose: %s', exc)
    return requests, summaries, version
