// Work that Ctrl-C must not leave half done.
#pragma once

#include "omp/interruption.hpp"

namespace wl {

// Ctrl-C ends no loop while this object exists, also within a solve that it would end.
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
