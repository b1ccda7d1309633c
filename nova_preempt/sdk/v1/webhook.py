# SPDX-License-Identifier: Apache-2.0
"""Resource of the webhook of a project."""

from openstack import resource

from nova_preempt.sdk.v1 import _base


class Webhook(_base.Resource):
    """The URL to which events of a project are sent."""

    resource_key = 'webhook'
    base_path = '/webhooks'
    _max_microversion = '1.9'

    allow_fetch = True
    allow_commit = True
    allow_delete = True
    commit_method = 'PUT'

    project_id = resource.Body('project_id', alternate_id=True)
    url = resource.Body('url')
    #: What signs events; in the answer that made it only.
    secret = resource.Body('secret')
    #: Who has set it, and when.
    user_id = resource.Body('user_id')
    updated_at = resource.Body('updated_at')
    #: When the last event was delivered; None if none was.
    delivered_at = resource.Body('delivered_at')
    #: Failed calls since then, and why the last one failed.
    failures = resource.Body('failures', type=int)
    last_error = resource.Body('last_error')
    #: Events that wait, and events that were not delivered.
    waiting = resource.Body('waiting', type=int)
    dropped = resource.Body('dropped', type=int)
