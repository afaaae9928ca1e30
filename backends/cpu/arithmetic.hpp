// The functions of the compiler of this folder: vectors of values, hints for loops, sums. omp and
// dpcpp each define them. A SYCL program includes its own before the headers of this folder.
#pragma once
#ifndef WL_SYCL
#include <omp/arithmetic.hpp> // in brackets: the flattened text of a program has no part of omp
#endif
