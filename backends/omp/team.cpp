#include "omp/team.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "omp/waiting.hpp"

namespace wl {

namespace {

// The time in ns that a worker waits actively for the next loop, and a caller for its workers. The
// loops of an iteration follow each other within one or two microseconds. Waking a thread takes 5
// to 10 microseconds. Longer active waits slow down other libraries: libgomp's waits of some
// milliseconds made the threads of NumPy and PyTorch ten times as slow.
constexpr i64 kPatience = 100'000;

// A part that takes less is not worth waking a worker for.
constexpr i64 kWorthWaking = 10'000;

// Limits of the sleep in ns of a caller that has finished its part and waits for a worker to start
// on crowded cores. The sleep takes the time of the part.
constexpr i64 kShortestNap = 20'000, kLongestNap = 1'000'000;

// Looks, of 20 to 60 ns each, before the clock is read for the first time and from then on.
constexpr int kFirstLooks = 32, kLooks = 16;

// A sleeping caller looks for Ctrl-C now and then.
constexpr std::chrono::milliseconds kBetweenLooks(50);

// The first looks, before a clock is worth reading; returns whether it is done.
template <class Done>
bool is_done_soon(Done&& done) {
  for (int look = 0; look < kFirstLooks; ++look, pause())
    if (done())
      return true;
  return false;
}

// Waits actively from `began` on until done(), for no longer than `patience`; returns whether it
// is.
template <class Done>
bool wait_actively(i64 began, i64 patience, Done&& done) {
  for (i64 last = began; last - began < patience;) {
    for (int look = 0; look < kLooks; ++look, pause())
      if (done())
        return true;
    const i64 now = now_in_ns();
    if (now - last > kPutAside)
      crowding().seen(now);
    last = now;
  }
  return false;
}

// This thread is computing a part; loops within the part are sequential.
bool& at_a_part() {
  thread_local bool is = false;
  return is;
}

// Threads that start while this object exists get no signals, which belong to Python's
// main thread. Faults go to the thread that causes them.
// Windows has no signals: there Ctrl-C starts a separate thread.
#if defined(_WIN32)
struct NoSignals {
  NoSignals() {}
};
#else
class NoSignals {
public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

private:
  sigset_t before_;
};
#endif

void notify(std::mutex& mutex, std::condition_variable& sleeper) {
  {
    const std::lock_guard<std::mutex> until_it_sleeps(mutex);
  }
  sleeper.notify_one();
}

} // namespace

// ---- workers

void Team::grow(int workers) {
  const NoSignals blocked;
  try {
    while (size() < workers) {
      workers_.reserve(workers_.size() + 1);
      auto worker = std::make_unique<Worker>();
      worker->part = size() + 1;
      worker->patience = kPatience;
      std::thread([this, &mine = *worker] { work(mine); }).detach();
      workers_.push_back(std::move(worker));
    }
  } catch (const std::system_error&) {
    may_grow_ = false; // the system has no more threads: the others do their parts
  }
}

void Team::work(Worker& worker) {
  at_a_part() = true;
  for (;;) {
    wait_for_part(worker);
    if (!take_part(worker))
      continue; // another thread was faster
    belonging().interruption = interruption_;
    do_part(worker.part);
    do_left_parts();
    if (involved_ > 1 && crowding().is_on())
      do_parts_not_begun();
    if (worker.state.exchange(Worker::IDLE, std::memory_order_acq_rel) == Worker::AWAITED)
      notify(mutex_, done_);
  }
}

bool Team::take_part(Worker& worker) {
  std::uint32_t state = Worker::READY;
  if (worker.state.compare_exchange_strong(state, Worker::TAKEN, std::memory_order_acquire))
    return true;
  return state == Worker::CALLED &&
         worker.state.compare_exchange_strong(state, Worker::AWAITED, std::memory_order_acquire);
}

void Team::wait_for_part(Worker& worker) {
  const auto has_part = [&] {
    return worker.state.load(std::memory_order_relaxed) != Worker::IDLE;
  };
  if (is_done_soon(has_part))
    return;
  const i64 began = now_in_ns();
  if (wait_actively(began, crowding().is_on() ? 0 : worker.patience, has_part))
    return;
  std::uint32_t idle = Worker::IDLE;
  if (!worker.state.compare_exchange_strong(idle, Worker::ASLEEP, std::memory_order_acq_rel))
    return;
  asleep_.fetch_add(1, std::memory_order_relaxed);
  {
    std::unique_lock<std::mutex> lock(worker.mutex);
    worker.wake.wait(
        lock, [&] { return worker.state.load(std::memory_order_relaxed) != Worker::ASLEEP; });
  }
  asleep_.fetch_sub(1, std::memory_order_relaxed);
  worker.is_late.store(false, std::memory_order_relaxed);
  // Whether waiting actively would have paid.
  const bool soon = now_in_ns() - began < 2 * kPatience;
  worker.patience = soon ? kPatience : worker.patience / 2;
}

// ---- the caller

void Team::run(const Loop& loop) {
  loop_ = loop;
  interruption_ = belonging().interruption;
  const int most = std::min(loop.parts - 1, size());
  const bool timed = asleep_.load(std::memory_order_relaxed) > 0;
  hand_out(timed ? worth_involving(most) : most);
  const i64 began = timed ? now_in_ns() : 0;
  do_part(0);
  if (timed)
    learn(now_in_ns() - began);
  do_left_parts();
  if (timed && crowding().is_on())
    for (int i = 0; i < involved_; ++i)
      let_begin(*workers_[i]);
  do_parts_not_begun();
  for (int i = 0; i < involved_; ++i)
    wait_for(*workers_[i]);
  if (error_)
    std::rethrow_exception(std::exchange(error_, nullptr));
}

void Team::hand_out(int workers) {
  involved_ = workers;
  next_.store(workers + 1, std::memory_order_relaxed);
  for (int i = 0; i < workers; ++i) {
    Worker& worker = *workers_[i];
    if (worker.state.exchange(Worker::READY, std::memory_order_acq_rel) == Worker::ASLEEP)
      notify(worker.mutex, worker.wake);
  }
}

// The number of workers of a loop if some are asleep.
int Team::worth_involving(int most) {
  if (is_worth_waking())
    return most;
  int awake = 0;
  while (awake < most && workers_[awake]->state.load(std::memory_order_relaxed) != Worker::ASLEEP)
    ++awake;
  return awake;
}

bool Team::is_worth_waking() {
  const Known& last = known();
  const bool is_known = last.kind == loop_.kind;
  const bool is_long = is_known && last.nanoseconds >= kWorthWaking;
  if (crowding().is_on())
    return is_long; // it will sleep again after this loop
  owed_ += is_known ? last.nanoseconds : kWorthWaking;
  if (!is_long && owed_ < kWorthWaking)
    return false;
  owed_ = 0;
  return true;
}

void Team::learn(i64 nanoseconds) {
  Known& last = known();
  // The time of a loop excludes a descheduling in the middle.
  const i64 most = last.kind == loop_.kind ? 2 * last.nanoseconds + 1000 : nanoseconds;
  last = {loop_.kind, std::min(nanoseconds, most)};
}

// Sleeps briefly if a worker has not started: the system may have only this core for the worker. A
// thread that never sleeps is descheduled for whole time slices, and its loop with it.
void Team::let_begin(Worker& worker) {
  std::uint32_t ready = Worker::READY;
  if (worker.is_late.load(std::memory_order_relaxed) ||
      !worker.state.compare_exchange_strong(ready, Worker::CALLED, std::memory_order_acq_rel))
    return;
  const Nanoseconds part(std::clamp(known().nanoseconds, kShortestNap, kLongestNap));
  {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait_for(lock, part, [&] {
      const std::uint32_t state = worker.state.load(std::memory_order_relaxed);
      return state != Worker::CALLED && state != Worker::AWAITED;
    });
  }
  std::uint32_t called = Worker::CALLED;
  if (worker.state.compare_exchange_strong(called, Worker::READY, std::memory_order_acq_rel))
    worker.is_late.store(true, std::memory_order_relaxed);
}

void Team::wait_for(Worker& worker) {
  const auto is_done = [&] {
    const std::uint32_t state = worker.state.load(std::memory_order_acquire);
    return state == Worker::IDLE || state == Worker::ASLEEP;
  };
  if (is_done_soon(is_done) ||
      wait_actively(now_in_ns(), crowding().is_on() ? 0 : kPatience, is_done))
    return;
  std::uint32_t taken = Worker::TAKEN;
  if (!worker.state.compare_exchange_strong(taken, Worker::AWAITED, std::memory_order_acq_rel,
                                            std::memory_order_acquire) &&
      taken != Worker::AWAITED)
    return;
  for (bool done = false; !done;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      done = done_.wait_for(lock, kBetweenLooks, [&] {
        return worker.state.load(std::memory_order_acquire) != Worker::AWAITED;
      });
    }
    interrupted(); // tells the workers
  }
}

// ---- parts

void Team::do_part(int part) {
  try {
    loop_.run(loop_.body, part);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_)
      error_ = std::current_exception();
  }
}

void Team::do_left_parts() {
  if (next_.load(std::memory_order_relaxed) >= loop_.parts)
    return;
  for (int part; (part = next_.fetch_add(1, std::memory_order_relaxed)) < loop_.parts;)
    do_part(part);
}

void Team::do_parts_not_begun() {
  for (int i = 0; i < involved_; ++i) {
    Worker& worker = *workers_[i];
    std::uint32_t ready = Worker::READY;
    if (worker.state.load(std::memory_order_relaxed) == Worker::READY &&
        worker.state.compare_exchange_strong(ready, Worker::IDLE, std::memory_order_relaxed))
      do_part(worker.part);
  }
}

// ---- all teams

namespace {

// Teams at rest. The team called last is called next: one is kept without a lock.
struct Rest {
  std::atomic<Team*> nearest{nullptr};
  std::mutex mutex;
  std::vector<Team*> others;
  int workers = 0; // of all teams

  Team* take() {
    if (Team* const team = nearest.exchange(nullptr, std::memory_order_acquire))
      return team;
    const std::lock_guard<std::mutex> lock(mutex);
    if (others.empty())
      return new Team; // never freed: its threads run until the process ends
    Team* const team = others.back();
    others.pop_back();
    return team;
  }

  void give_back(Team* team) {
    Team* none = nullptr;
    if (nearest.compare_exchange_strong(none, team, std::memory_order_release))
      return;
    const std::lock_guard<std::mutex> lock(mutex);
    others.push_back(team);
  }

  // The first team has as many workers as it is asked for. Where several Python threads compute at
  // a time, all together have two workers a core at most, and callers do the remaining parts.
  void grow(Team& team, int wanted) {
    const std::lock_guard<std::mutex> lock(mutex);
    const int elsewhere = workers - team.size();
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    team.grow(elsewhere == 0 ? wanted : std::min(wanted, 2 * cores - elsewhere));
    workers = elsewhere + team.size();
  }
};

Rest& rest() {
  static Rest* const one = new Rest; // workers outlive the destructors at exit
  return *one;
}

// Has a team, and says that this thread is in a loop.
class Taken {
public:
  Taken() : team_(rest().take()) { at_a_part() = true; }
  ~Taken() {
    at_a_part() = false;
    rest().give_back(team_);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  Team* operator->() const { return team_; }
  Team& operator*() const { return *team_; }

private:
  Team* const team_;
};

} // namespace

void run_parts(const Loop& loop) {
  if (at_a_part() || loop.parts == 1) {
    for (int part = 0; part < loop.parts; ++part)
      loop.run(loop.body, part);
  } else {
    const Taken team;
    if (team->size() < loop.parts - 1 && team->may_grow())
      rest().grow(*team, loop.parts - 1);
    team->run(loop);
  }
  end_if_interrupted();
}

void watch_forks() {
#if !defined(_WIN32)
  // A child has one thread. The teams of its parent are left where they are, and it makes others.
  pthread_atfork([] { rest().mutex.lock(); }, [] { rest().mutex.unlock(); },
                 [] {
                   rest().nearest = nullptr;
                   rest().others.clear();
                   rest().workers = 0;
                   rest().mutex.unlock();
                   this_is_the_main_thread();
                 });
#endif
}

} // namespace wl
