"""The algorithm table of this backend."""

from ...core.algorithm import AlgorithmTable

algorithms = AlgorithmTable("omp")
