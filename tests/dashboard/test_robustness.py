# SPDX-License-Identifier: Apache-2.0
"""Texts of users, narrow screens, and an API that does not answer."""

import signal
import time

from minicloud import layout as layouts
from selenium.common import exceptions
from selenium.webdriver.common.by import By

from tests.dashboard import base
from tests.dashboard import scene
from tests.dashboard import test_admin_pages

PROJECT_PAGES = ('/project/spot/', '/project/spot/chances/',
                 '/project/reservations/', '/project/backlog/')
PAGES = (*PROJECT_PAGES, *(
    f'/admin/{name}/' for name in test_admin_pages.PAGES))
# Of a reservation, and for how long the API is away meanwhile.
START_S = 20
AWAY_S = 10
API = 'nova-preempt-api'
# The longest time of a page while the API is silent: one call, and Horizon.
SILENCE_S = 60
# The width of a small telephone, in pixels.
TELEPHONE = 320
UNKNOWN = '00000000-0000-0000-0000-000000000000'
SCRIPT = '"><script>window.hurt = 1</script><img src=x onerror=hurt=1>'


class TestTexts(base.TestCase):

    user = 'admin'

    def setUp(self):
        super().setUp()
        self.scene = scene.Scene(self.admin)
        self.scene.clean()
        self.addCleanup(self.scene.clean)

    def test_no_script_of_a_user_runs(self):
        ours = self.admin.preemption
        reserved = self.scene.reserve(SCRIPT)
        scene.until(lambda: ours.get_reservation(
            reserved.id).status == 'active', 'the reservation is active')
        self.scene.boot(SCRIPT[:60], 'spot.1', scheduler_hints={
            'reservation': reserved.id}, metadata={
                'preemption': '{"action": "<script>hurt=1</script>", '
                '"reason": "<script>hurt=1</script>", '
                '"deadline": "2036-01-01T00:00:00Z"}'})
        request = self.scene.request(SCRIPT, 'normal.1',
                                     not_before=scene.hours(10))
        self.addCleanup(ours.resume, 'power')
        ours.pause('power', SCRIPT)
        for path in (
                *PAGES, f'/project/reservations/{reserved.id}/',
                f'/project/reservations/{reserved.id}/update/',
                f'/project/reservations/{reserved.id}/boot/',
                f'/project/backlog/{request.id}/',
                '/admin/preemption_hosts/?kind=%22><script>hurt=1</script>',
                '/project/reservations/?days=<script>&hosts="><script>'):
            with self.subTest(path=path):
                self.open(path)
                self.assertIsNone(self.browser.execute_script(
                    'return window.hurt'))
                self.assertEqual([], self.browser.find_elements(
                    By.CSS_SELECTOR, 'img[src=x]'))
        self.open('/project/reservations/')
        self.wait_text(SCRIPT)
        self.open('/project/backlog/')
        self.wait_text(SCRIPT)
        self.open('/admin/preemption_pauses/')
        self.wait_text(SCRIPT)
        self.open('/project/spot/')
        self.wait_text('It will be <script>hurt=1</script>')


class TestNarrow(base.TestCase):

    user = 'admin'
    width = 500

    def test_no_page_is_wider_than_the_window(self):
        self.check()
        self.open('/project/reservations/')
        self.picture('narrow')

    def test_no_page_is_wider_than_a_telephone(self):
        """Chromium has no narrower window than 500 pixels."""
        self.browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': TELEPHONE, 'height': 700, 'deviceScaleFactor': 1,
            'mobile': False})
        self.addCleanup(self.browser.execute_cdp_cmd,
                        'Emulation.clearDeviceMetricsOverride', {})
        self.check()

    def check(self):
        for path in (*PAGES, '/project/reservations/create/',
                     '/project/backlog/create/',
                     '/admin/preemption_hosts/host/?name=compute1'):
            with self.subTest(path=path):
                self.open(path)
                width, window = self.browser.execute_script(
                    'return [document.documentElement.scrollWidth, '
                    'window.innerWidth]')
                self.assertLessEqual(width, window)


class TestNoApi(base.TestCase):

    user = 'admin'

    def setUp(self):
        super().setUp()
        self.manager.stop(API)
        self.addCleanup(self.manager.start, API)

    def test_pages_say_so(self):
        for path in (*PAGES, f'/project/reservations/{UNKNOWN}/',
                     '/admin/preemption_hosts/host/?name=compute1'):
            with self.subTest(path=path):
                self.browser.get(self.url(path))
                self.wait(lambda: 'Unable to' in self.text()
                          or 'does not answer' in self.text())
                self.assertNotIn('Something went wrong', self.text())

    def test_forms_say_so(self):
        self.browser.get(self.url('/project/reservations/create/'))
        self.fill('Name', 'lost')
        self.press('Reserve')
        self.wait_text('The service does not answer')
        self.assertEqual('lost', self.field('Name').get_attribute('value'))
        with self.assertRaises(exceptions.NoSuchElementException):
            self.browser.find_element(By.ID, 'loginBtn')

    def test_pages_come_back(self):
        for path in PAGES:
            self.browser.get(self.url(path))
        self.manager.start(API)
        for path in PAGES:
            with self.subTest(path=path):
                self.browser.get(self.url(path))
                self.assertNotIn('Unable to', self.text())
                self.assertNotIn('does not answer', self.text())


class TestSilentApi(base.TestCase):
    """The API takes connections and never answers."""

    user = 'admin'

    def setUp(self):
        super().setUp()
        # The token of the first call is known.
        self.browser.get(self.url('/project/spot/'))
        self.addCleanup(self.manager.signal, API, signal.SIGCONT)
        self.manager.signal(API, signal.SIGSTOP)

    def test_pages_come_within_the_time_of_one_call(self):
        for path in ('/project/spot/', '/admin/preemption_health/'):
            with self.subTest(path=path):
                started_s = time.monotonic()
                self.browser.get(self.url(path))
                self.wait(lambda: 'Unable to' in self.text()
                          or 'does not answer' in self.text())
                self.assertLess(time.monotonic() - started_s, SILENCE_S)


class TestRevokedToken(base.TestCase):
    """Keystone has revoked the token of the user.

    Horizon itself asks a user whose token has expired to sign in.
    """

    user = 'member'

    def test_pages_say_so(self):
        self.browser.get(self.url('/project/spot/'))
        self.assertIn('My preemptible servers', self.text())
        # Setting a password revokes the tokens of its user.
        member = next(self.admin.identity.users(name='member'))
        self.admin.identity.patch(f'/users/{member.id}', json={
            'user': {'password': layouts.PASSWORD}})
        for path in PROJECT_PAGES:
            with self.subTest(path=path):
                self.wait(lambda path=path: self._is_refused(path))

    def _is_refused(self, path):
        self.browser.get(self.url(path))
        return 'You are not authorized to access this page' in self.text()


class TestPolling(base.TestCase):
    """Rows that the browser reads again and again."""

    def setUp(self):
        super().setUp()
        self.scene = scene.Scene(self.member)
        self.scene.clean()
        self.addCleanup(self.scene.clean)

    def test_a_row_is_read_again_after_the_api_was_away(self):
        reserved = self.scene.reserve('soon', START_S / 3600)
        self.browser.get(self.url('/project/reservations/'))
        self.wait_text('Pending: it starts now')
        self.addCleanup(self.manager.start, API)
        self.manager.stop(API)
        # The browser asks meanwhile, without an answer.
        time.sleep(AWAY_S)
        self.assertIn('Pending: it starts now', self.text())
        self.manager.start(API)
        scene.until(lambda: self.member.preemption.get_reservation(
            reserved.id).status == 'active', 'the reservation is active')
        self.wait_text('Active: boot servers on it', 60)
