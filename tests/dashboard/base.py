# SPDX-License-Identifier: Apache-2.0
"""A browser on Horizon of the small cloud, as a user sees it.

Elements are found by the words that are on a page, not by their ids, wherever
that is possible.
"""

import os
import pathlib
import shutil
import time
import unittest

from minicloud import layout as layouts
from minicloud import services
import openstack
from selenium import webdriver
from selenium.common import exceptions
from selenium.webdriver.common.by import By
from selenium.webdriver.support import ui
from selenium.webdriver.support import wait

from nova_preempt import sdk
from tests.dashboard import scene

WAIT_S = 20
PICTURES = pathlib.Path(__file__).resolve().parents[2].joinpath(
    'doc', 'source', 'pictures', 'dashboard')
_NOT_YET = (exceptions.NoSuchElementException,
            exceptions.StaleElementReferenceException,
            exceptions.ElementNotInteractableException,
            exceptions.ElementClickInterceptedException)
_DRIVERS = ('chromium', 'chromedriver')


def cloud():
    """Return the layout of the small cloud of MINICLOUD_DIR."""
    directory = pathlib.Path(os.environ['MINICLOUD_DIR']).resolve()
    found = layouts.Layout(directory, directory / 'venv').load()
    if found is None or not found.settings.dashboard:
        raise AssertionError(
            f'There is no cloud with Horizon in {directory}: run '
            '"make cloud-up DASHBOARD=1" first.')
    return found


def connect(layout, name):
    """Return a connection of the SDK as "admin" or "member"."""
    os.environ['OS_CLIENT_CONFIG_FILE'] = str(layout.clouds_yaml)
    return sdk.add_to(openstack.connect(cloud=f'minicloud-{name}'))


def _browser(width=1280):
    missing = [name for name in _DRIVERS if not shutil.which(name)]
    if missing:
        raise AssertionError(
            f'{" and ".join(missing)} not found: install Chromium and its '
            'driver, on Debian by "apt-get install chromium '
            'chromium-driver".')
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium')
    for argument in ('--headless=new', '--no-sandbox',
                     '--disable-dev-shm-usage', '--force-color-profile=srgb',
                     f'--window-size={width},1000'):
        options.add_argument(argument)
    return webdriver.Chrome(options, webdriver.ChromeService(
        shutil.which('chromedriver')))


class TestCase(unittest.TestCase):
    """A signed-in browser for all tests of a class.

    :cvar user: "admin" or "member"
    :cvar width: of the window, in pixels
    """

    user = 'member'
    width = 1280

    @classmethod
    def setUpClass(cls):
        cls.layout = cloud()
        cls.manager = services.Services(cls.layout)
        cls.admin = connect(cls.layout, 'admin')
        cls.member = connect(cls.layout, 'member')
        # The engine reads new hosts within a minute.
        hosts = cls.admin.preemption.hosts
        scene.until(lambda: len(cls.layout.computes) <= sum(
            host.state == 'up' for host in hosts()), 'all hosts are up')
        cls.browser = _browser(cls.width)
        cls.addClassCleanup(cls.browser.quit)
        cls.sign_in(cls.user)

    @classmethod
    def sign_in(cls, user):
        cls.browser.get(cls.url('/auth/login/'))
        cls.browser.find_element(By.NAME, 'username').send_keys(user)
        cls.browser.find_element(By.NAME, 'password').send_keys(
            layouts.PASSWORD)
        cls.browser.find_element(By.ID, 'loginBtn').click()
        wait.WebDriverWait(cls.browser, WAIT_S).until(
            lambda browser: '/auth/login' not in browser.current_url)

    @classmethod
    def url(cls, path):
        return cls.layout.url('horizon', path)

    def open(self, path, timed=True):
        """Open a page; return the seconds until its HTML was there."""
        self.browser.get(self.url(path))
        return self.browser.execute_script(
            'const t = performance.getEntriesByType("navigation")[0];'
            'return (t.responseEnd - t.requestStart) / 1000') if timed else 0

    def text(self):
        """Return the text of the page, '' while another one replaces it."""
        try:
            return self.browser.find_element(By.TAG_NAME, 'body').text
        except exceptions.WebDriverException as exc:
            # Chromium has no error of its own for this.
            if 'does not belong to the document' in str(exc):
                return ''
            raise

    def wait(self, condition, seconds=WAIT_S, what='a condition'):
        """Wait until a function returns something true; return that."""
        try:
            return wait.WebDriverWait(
                self.browser, seconds, ignored_exceptions=_NOT_YET).until(
                    lambda _browser: condition())
        except exceptions.TimeoutException:
            raise AssertionError(
                f'not within {seconds} s: {what}; the page '
                f'{self.browser.current_url} says:\n{self.text()}') from None

    def wait_text(self, text, seconds=WAIT_S):
        self.wait(lambda: text in self.text(), seconds, f'the text {text!r}')

    def press(self, words):
        """Click the visible link or button with these words."""
        def click():
            # Dialogs, which cover the rest, come last.
            text = f'normalize-space(translate(., "\xa0", " "))="{words}"'
            for element in reversed(self.browser.find_elements(
                    By.XPATH, f'//a[{text}] | //button[{text}] | '
                    f'//input[@type="submit" and @value="{words}"]')):
                if element.is_displayed():
                    element.click()
                    return True
            return False
        self.wait(click, what=f'the button {words!r}')

    def field(self, label):
        """Return the visible field of a label."""
        def find():
            for element in self.browser.find_elements(
                    By.XPATH, f'//label[contains(normalize-space(), '
                    f'"{label}")]'):
                name = element.get_attribute('for')
                found = self.browser.find_element(By.ID, name)
                if found.is_displayed():
                    return found
            return None
        return self.wait(find, what=f'the field {label!r}')

    def check(self, label):
        """Click the label of a check box."""
        def click():
            for element in self.browser.find_elements(
                    By.XPATH, f'//label[contains(., "{label}")]'):
                if element.is_displayed():
                    element.click()
                    return True
            return False
        self.wait(click, what=f'the check box {label!r}')

    def fill(self, label, value):
        field = self.field(label)
        if field.tag_name == 'select':
            options = [option.text for option in ui.Select(field).options]
            ui.Select(field).select_by_visible_text(next(
                option for option in options if value in option))
        elif field.get_attribute('type') == 'datetime-local':
            # Keys depend on the language of the browser.
            self.browser.execute_script(
                'arguments[0].value = arguments[1]', field, value)
        else:
            field.clear()
            field.send_keys(value)

    def picture(self, name):
        """Save a picture of the page for the guide."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        time.sleep(0.5)
        self.browser.save_screenshot(str(PICTURES / f'{name}.png'))
