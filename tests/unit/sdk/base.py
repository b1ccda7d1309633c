# SPDX-License-Identifier: Apache-2.0
"""openstacksdk with the service, against the API on a real socket."""

import threading

from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint
from openstack import connection

from nova_preempt import sdk
from tests.unit.api import listening


class SdkTestCase(listening.ListeningTestCase):

    def setUp(self):
        super().setUp()
        self.member = self.connect().preemption
        self.admin = self.connect('admin:z').preemption

    def connect(self, token='u:p', url=None, **values):
        """Return a Connection with this token."""
        auth = token_endpoint.Token(f'{url or self.url}/v1', token)
        return self.opened(sdk.add_to(connection.Connection(
            session=ks_session.Session(auth), **values)))

    def opened(self, conn):
        self.addCleanup(conn.session.session.close)
        self.addCleanup(conn.close)
        return conn

    def soon(self, do, *arguments, **values):
        """Do something in a moment."""
        timer = threading.Timer(0.2, do, arguments, values)
        timer.start()
        self.addCleanup(timer.join)

    def raised(self, error, do, *arguments, **values):
        """Return the message of an exception."""
        with self.assertRaises(error) as caught:
            do(*arguments, **values)
        return str(caught.exception)
