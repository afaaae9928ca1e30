#include "omp/rank_memory.hpp"

#include <cmath>
#include <cstring>
#include <thread>

#include "omp/crowding.hpp"
#include "omp/waiting.hpp"

namespace wl {

namespace {

// Looks at memory before a waiting rank lets others have the core: about 0.1 ms.
constexpr int kSpins = 2000;
// Nanoseconds between two calls of `look`, and of waiting before a rank sleeps between two looks.
constexpr i64 kBetweenCalls = 5'000'000, kBeforeSleep = 20'000'000;
constexpr std::chrono::microseconds kSleep(50);

class Gil {
public:
  Gil() = default;
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

private:
  const PyGILState_STATE state_ = PyGILState_Ensure();
};

// Returns the result of a function of Python with up to two arguments.
Object result_of(const Object& function, Object first = Object(), Object second = Object()) {
  PyObject* const result =
      PyObject_CallFunctionObjArgs(function.get(), first.get(), second.get(), nullptr);
  if (result == nullptr)
    throw_python_error(); // its indicator stays with this thread
  return Object::steal(result);
}

template <class R>
void add(R* total, const R* part, i64 count, RankTotal kind, bool first) {
  for (i64 i = 0; i < count; ++i) {
    const R x = part[i];
    if (kind == RankTotal::NORM)
      total[i] = (first ? R(0) : total[i]) + x * x;
    else if (first)
      total[i] = x;
    else if (kind == RankTotal::SUM)
      total[i] += x;
    else if (!(x <= total[i]) && total[i] == total[i]) // NaN stays, and is taken
      total[i] = x;
  }
}

} // namespace

void RankMemory::await(int rank, const std::atomic<std::uint64_t>& number,
                       std::uint64_t turn) const {
  const auto has_come = [&] { return number.load(std::memory_order_acquire) >= turn; };
  if (!crowded_ && !crowding().is_on())
    for (int looks = 0; looks < kSpins; ++looks) {
      if (has_come())
        return;
      pause();
    }
  const i64 began = now_in_ns();
  for (i64 called = began; !has_come();) {
    const i64 now = now_in_ns();
    if (now - began < kBeforeSleep)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kSleep);
    if (now - called < kBetweenCalls)
      continue;
    called = now;
    const Gil held;
    result_of(look_, Object::steal(PyLong_FromLong(rank)),
              Object::steal(PyFloat_FromDouble(1e-9 * static_cast<double>(now - began))));
  }
}

template <class R>
void RankMemory::total(R* numbers, i64 count, RankTotal kind) {
  const std::uint64_t turn = ++turn_;
  RankPost* const posts = posts_ + static_cast<i64>(turn % 2) * size_;
  RankPost& mine = posts[rank_];
  mine.requests = *static_cast<const volatile i64*>(requests_);
  std::memcpy(mine.numbers, numbers, count * sizeof(R));
  mine.turn.store(turn, std::memory_order_release);
  i64 requests = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const RankPost& post = posts[rank];
    await(rank, post.turn, turn);
    requests = std::max(requests, post.requests);
    add(numbers, reinterpret_cast<const R*>(post.numbers), count, kind, rank == 0);
  }
  if (kind == RankTotal::NORM)
    for (i64 i = 0; i < count; ++i)
      numbers[i] = std::sqrt(numbers[i]);
  if (requests > requests_[1]) {
    const Gil held;
    result_of(obey_, Object::steal(PyLong_FromLongLong(requests)));
  }
}

template void RankMemory::total(float*, i64, RankTotal);
template void RankMemory::total(double*, i64, RankTotal);

void RankRows::send(const u8* packed) {
  ++turn_;
  if (mine_ == nullptr)
    return;
  if (turn_ > 2)
    for (const int target : targets_)
      ranks_->await(target, line(mine_, target).turn, turn_ - 2);
  std::memcpy(buffer(mine_, bytes_, turn_), packed, bytes_);
  sent(mine_).store(turn_, std::memory_order_release);
}

void RankRows::receive(u8* ghosts) {
  if (memory_.size() < sources_.size())
    connect();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const RankPart& part = sources_[i];
    u8* const memory = memory_[i];
    ranks_->await(part.rank, sent(memory), turn_);
    Line& mine = line(memory, rank_);
    std::memcpy(ghosts + part.place, buffer(memory, mine.packed, turn_) + mine.begin, part.bytes);
    mine.turn.store(turn_, std::memory_order_release);
  }
}

void RankRows::connect() {
  const Gil held;
  memories_ = result_of(connect_);
  std::vector<u8*> found;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    ArrayView view{};
    PyObject* const array = PyList_GetItem(memories_.get(), static_cast<Py_ssize_t>(i)); // borrowed
    if (array == nullptr)
      throw_python_error();
    if (!view_array(array, view))
      throw std::runtime_error("the memory of a rank is an array of bytes");
    found.push_back(reinterpret_cast<u8*>(view.data));
  }
  memory_ = std::move(found);
}

} // namespace wl
