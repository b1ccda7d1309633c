# SPDX-License-Identifier: Apache-2.0
"""openstack preemption webhook: the URL that a project is notified at."""

from nova_preempt.client import argtypes
from nova_preempt.client import base
from nova_preempt.client import name_lookup

_PROJECT = base.option(
    '--project', metavar='<project>',
    help='Project (name or id; administrators; default: that of the token)')


def _project(command, args):
    return args.project and name_lookup.project_id(command, args.project)


class ShowWebhook(base.ShowCommand):
    """Show the webhook of the project, and whether its calls succeed"""

    options = (_PROJECT,)

    def ask(self, client, args):
        return client.get_webhook(_project(self, args))


class CreateWebhook(base.ShowCommand):
    """Set or replace the webhook of the project, and send a test event to it

    A new webhook has a secret, which is shown this time only.
    """

    options = (
        base.option('url', metavar='<url>', help='URL to send events to'),
        base.option('--secret-file', metavar='<file>',
                    type=argtypes.file_text,
                    help='File with the secret that signs events, in the '
                         'format of Standard Webhooks (default: the secret '
                         'is kept, or a new one is made)'),
        _PROJECT)

    def ask(self, client, args):
        return client.set_webhook(args.url, args.secret_file,
                                  _project(self, args))


class DeleteWebhook(base.ActionCommand):
    """Delete the webhook of the project, and events that wait for it"""

    options = (_PROJECT,)

    def act(self, client, args):
        client.delete_webhook(_project(self, args), ignore_missing=False)
