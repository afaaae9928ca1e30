#include "omp/parallel.hpp"

#include <atomic>

namespace wl::detail {

void run_in_turn(i64 count, i64 together, int threads, RangeFunction run, const void* body) {
  std::atomic<i64> next{0};
  const auto take = [&](int) {
    for (i64 begin; (begin = next.fetch_add(together, std::memory_order_relaxed)) < count;) {
      run(body, begin, std::min(begin + together, count));
      if (interrupted())
        return;
    }
  };
  for_parts(threads, take, reinterpret_cast<const void*>(run));
}

void run_near(i64 count, int threads, RangeFunction run, const void* body) {
  const int queues = static_cast<int>(std::min<i64>(count, threads));
  if (queues < 2) {
    for (i64 i = 0; i < count && !interrupted(); ++i)
      run(body, i, i + 1);
    return end_if_interrupted();
  }
  struct alignas(64) Queue {
    std::atomic<i64> next;
    i64 end;
  };
  const std::unique_ptr<Queue[]> all = std::make_unique<Queue[]>(queues);
  for (int q = 0; q < queues; ++q) {
    const Share share(count, q, queues);
    all[q].next.store(share.begin, std::memory_order_relaxed);
    all[q].end = share.end;
  }
  const auto take = [&](int own) {
    for (int turn = 0; turn < queues; ++turn) {
      Queue& queue = all[(own + turn) % queues];
      for (i64 i; (i = queue.next.fetch_add(1, std::memory_order_relaxed)) < queue.end;) {
        run(body, i, i + 1);
        if (interrupted())
          return;
      }
    }
  };
  for_parts(queues, take, reinterpret_cast<const void*>(run));
}

} // namespace wl::detail
