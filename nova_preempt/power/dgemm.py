# SPDX-License-Identifier: Apache-2.0
"""Multiplies matrices with BLAS on one core, for the benchmark.

It runs as a process on each core with one thread, as the number of threads is
fixed when a BLAS is built, and may be less than the cores. It reads lines of
"SIZE SECONDS", and answers each with "PRODUCTS SECONDS" afterwards.
"""

import os
import sys
import time

import numpy


def multiply(size, seconds, clock=time.perf_counter):
    """Multiply matrices for some seconds; return (products, seconds)."""
    numbers = numpy.random.default_rng(size)
    left = numbers.random((size, size))
    right = numbers.random((size, size))
    product = numpy.empty((size, size))
    # NOTE: the first product is slower: memory, and the clock of the core.
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
