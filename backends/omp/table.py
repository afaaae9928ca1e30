"""The table in which the algorithms of this backend register."""

from ...core.algorithm import AlgorithmTable

algorithms = AlgorithmTable("omp")
