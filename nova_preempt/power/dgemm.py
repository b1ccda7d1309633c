# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""One core's part of the benchmark: products of matrices by BLAS.

Run as a process of its own on each core, with one thread: how many a BLAS can
use was settled when it was built, and may be less than there are. It reads
"SIZE SECONDS" lines, and answers each with "PRODUCTS SECONDS" once those have
passed.
"""

import os
import sys
import time

import numpy


def multiply(size, seconds, clock=time.perf_counter):
    """Multiply matrices for so long: (how many products, how long)."""
    numbers = numpy.random.default_rng(size)
    left = numbers.random((size, size))
    right = numbers.random((size, size))
    product = numpy.empty((size, size))
    # The first is slower: memory, and the clock of the core.
    numpy.matmul(left, right, out=product)
    products = 0
    begin_s = clock()
    while True:
        numpy.matmul(left, right, out=product)
        products += 1
        elapsed_s = clock() - begin_s
        if elapsed_s >= seconds:
            return products, elapsed_s


def main():
    if len(sys.argv) > 1:
        os.sched_setaffinity(0, {int(sys.argv[1])})
    for line in sys.stdin:
        size, seconds = line.split()
        products, elapsed_s = multiply(int(size), float(seconds))
        sys.stdout.write(f'{products} {elapsed_s}\n')
        sys.stdout.flush()


if __name__ == '__main__':
    main()
