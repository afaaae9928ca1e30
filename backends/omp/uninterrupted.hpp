// Work that Ctrl-C must not leave half done.
#pragma once

#include "omp/interruption.hpp"

namespace wl {

// Loops are not ended by Ctrl-C while it lives, also in the middle of a solve that can be.
class Uninterrupted {
public:
  Uninterrupted() { belonging().interruption = nullptr; }
  ~Uninterrupted() { belonging().interruption = outer_; }
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

private:
  Interruption* const outer_ = belonging().interruption;
};

} // namespace wl
