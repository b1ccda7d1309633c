# SPDX-License-Identifier: Apache-2.0

import setuptools

setuptools.setup(pbr=True)
