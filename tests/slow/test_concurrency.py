# SPDX-License-Identifier: Apache-2.0

from tests.functional import test_concurrency


class TestManyBoots(test_concurrency.TestConcurrentBoots):

    threads = 16
    large = 4, 5
    scarce = 3, 4
    doubles = 4
