# SPDX-License-Identifier: Apache-2.0
"""Placement of many requests together.

What waits is placed at once, so that the first does not take what another
needs more: by minimum-cost flow as in ECSched (Y. Hu, H. Zhou, C. de Laat and
Z. Zhao, Euro-Par 2018, doi 10.1007/978-3-319-96983-1_26; FGCS 2020, doi
10.1016/j.future.2019.08.025), or exactly by an integer program.

``model`` has the nouns, ``choice.make()`` what places. Only what ``choice``
loads imports numpy and scipy.
"""
