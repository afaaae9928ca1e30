// A block of a GPU on the CPU: each work-item is a fiber, and work-items are ordered only where
// they synchronize. Kernel text runs unchanged. An action that no GPU allows is an error with a
// message:
//
// - lanes of a wave that synchronize at different calls, or of which some have returned (divergent
//   code);
// - work-items of a block that reach different barriers, or of which some have returned;
// - a shuffle that reads from a lane that does not exist;
// - a block that ends with a barrier half full, or with copies in flight.
//
// Shared memory holds garbage when a block begins. Only synchronization orders the work-items, and
// `schedule` selects one of the orders that are left. Below 8, a wave runs as far as it can before
// the next wave starts, bit 0 reverses lanes, bit 1 waves, bit 2 blocks, and copies arrive at once.
// From 8 on it is a seed: waves run in a random order, and copies arrive at random times in any
// order, but awaited copies not before the wait. With one of these orders, a kernel without a
// necessary barrier reads the old value.
#include "machine.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

namespace wl {
alignas(128) unsigned char shared[most_shared];
}

namespace wl::lockstep {

item_now now;

namespace {

// Where work-items wait for one another.
struct rendezvous {
  int arrived = 0, waiting = 0;
  long long round = 0;
  const void* site = nullptr; // where in the code the first one arrived from
  unsigned long long votes = 0, result = 0;
};

// A barrier in shared memory: its phase ends when all have arrived and all bytes have been copied.
struct counting {
  int each = 0, missing = 0;
  long long bytes = 0;
  unsigned phase = 0;
};

// The condition of a barrier: bytes, or an arrival that is behind all of a work-item's copies.
struct copying {
  unsigned to;
  std::vector<unsigned char> data;
  unsigned barrier;
  int arrivals = 0;
  std::vector<copying> before;
};

struct fiber {
  static constexpr std::size_t stack_size = 256 * 1024;
  std::unique_ptr<char[]> stack{new char[stack_size]};
  jmp_buf place;
  bool started = false, ended = true;
  const rendezvous* waits = nullptr; // for the round after this one
  long long round = 0;
  // The words that it offers to its wave, in rounds of even and of odd number: while one work-item
  // reads, others may offer the next words already.
  unsigned words[2][6];
  std::vector<product> products;
  std::vector<std::size_t> groups; // how many of them were asked for when a group ended
  std::vector<copying> copies;
  std::vector<std::size_t> copy_groups; // the same of copies
};

// The fibers of a launch, and its errors. One launch at a time.
struct machine {
  std::vector<fiber> fibers;
  jmp_buf scheduler;
  int threads = 0, wave = 0;
  const void* body = nullptr;
  void (*call)(const void*) = nullptr;
  std::string error;
  unsigned schedule = 0;
  std::mt19937 random;
  long long events = 0;
  std::vector<rendezvous> waves, warpgroups;
  rendezvous block, numbered[16];
  std::map<unsigned, counting> barriers;
  std::vector<copying> copies;
} m;

// ---------------------------------------------------------------- fibers
// ucontext makes their stacks; _setjmp and _longjmp switch, because swapcontext asks the kernel for
// the signal mask each time.

fiber& self() { return m.fibers[now.thread]; }

__attribute__((noinline)) void yield() {
  if (_setjmp(self().place) == 0)
    _longjmp(m.scheduler, 1);
}

void fiber_main() {
  for (;;) {
    m.call(m.body);
    self().ended = true;
    ++m.events;
    yield();
  }
}

// Runs the fiber until it waits for another.
__attribute__((noinline)) void resume(int thread) {
  now.thread = thread;
  fiber& f = m.fibers[thread];
  if (_setjmp(m.scheduler) != 0)
    return;
  if (f.started)
    _longjmp(f.place, 1);
  f.started = true;
  ucontext_t fresh;
  getcontext(&fresh);
  fresh.uc_stack.ss_sp = f.stack.get();
  fresh.uc_stack.ss_size = fiber::stack_size;
  fresh.uc_link = nullptr;
  makecontext(&fresh, fiber_main, 0);
  setcontext(&fresh);
}

void blame(const std::string& what) {
  if (m.error.empty())
    m.error = what + " (thread " + std::to_string(now.thread) + ", block " +
              std::to_string(now.block) + " of " + std::to_string(now.blocks) + ", wave of " +
              std::to_string(m.wave) + ")";
}

// A launch with an error does not continue: its fibers start anew in the next launch.
[[noreturn]] void fail(const std::string& what) {
  blame(what);
  _longjmp(m.scheduler, 1);
}

// ---------------------------------------------------------------- barriers and exchanges

// Call sites are compared where they are given.
void arrive_at(rendezvous& g, int count, const void* site) {
  ++m.events;
  if (g.arrived == 0)
    g.site = site;
  else if (g.site != site)
    fail("work-items meet from different calls: divergent code");
  if (++g.arrived == count) {
    g.arrived = 0;
    g.result = g.votes;
    g.votes = 0;
    ++g.round;
  }
}

// Even the last one waits: in each round, the order of the schedule begins again.
void wait_at(rendezvous& g, int count, const void* site) {
  fiber& f = self();
  f.waits = &g;
  f.round = g.round;
  arrive_at(g, count, site);
  yield();
}

bool can_go_on(const fiber& f) {
  return !f.ended && (f.waits == nullptr || f.waits->round != f.round);
}

rendezvous& my_wave() { return m.waves[now.thread / m.wave]; }

// Offers words to the wave; returns the index of their slot.
int offer(const unsigned* words, int count, const void* site) {
  const int which = my_wave().round & 1;
  std::memcpy(self().words[which], words, count * sizeof(unsigned));
  wait_at(my_wave(), m.wave, site);
  return which;
}

const unsigned* taken(int which, int lane) {
  return m.fibers[now.thread / m.wave * m.wave + lane].words[which];
}

} // namespace

#define SITE __builtin_return_address(0)

int exchange(int word, int from) {
  if (from < 0 || from >= m.wave)
    fail("a shuffle asks for lane " + std::to_string(from));
  const unsigned mine = unsigned(word);
  const int which = offer(&mine, 1, SITE);
  return int(taken(which, from)[0]);
}

unsigned long long ballot(bool vote) {
  rendezvous& g = my_wave();
  g.votes |= (unsigned long long)(vote) << now.thread % m.wave;
  wait_at(g, m.wave, SITE);
  return g.result;
}

void wave_barrier() { wait_at(my_wave(), m.wave, SITE); }

void barrier() { wait_at(m.block, m.threads, SITE); }

bool barrier_or(bool vote) {
  m.block.votes |= vote;
  wait_at(m.block, m.threads, SITE);
  return m.block.result != 0;
}

void named_barrier_sync(int barrier, int count) { wait_at(m.numbered[barrier], count, nullptr); }
void named_barrier_arrive(int barrier, int count) {
  arrive_at(m.numbered[barrier], count, nullptr);
}

// ---------------------------------------------------------------- barriers that count bytes

namespace {

void turn_if_done(counting& b) {
  ++m.events;
  if (b.missing != 0 || b.bytes != 0)
    return;
  b.missing = b.each;
  b.phase ^= 1;
}

void store(const copying& copy) {
  std::memcpy(shared + copy.to, copy.data.data(), copy.data.size());
}

void land(std::size_t i) {
  const copying copy = std::move(m.copies[i]);
  m.copies.erase(m.copies.begin() + i);
  for (const copying& one : copy.before)
    store(one);
  store(copy);
  counting& b = m.barriers.at(copy.barrier);
  b.bytes -= (long long)(copy.data.size());
  b.missing -= copy.arrivals;
  if (b.missing < 0)
    return blame("more arrivals than were expected");
  turn_if_done(b);
}

counting& known(unsigned barrier) {
  const auto found = m.barriers.find(barrier);
  if (found == m.barriers.end())
    fail("a barrier was never initialized");
  return found->second;
}

bool at_random() { return m.schedule >= 8; }

} // namespace

void counting_init(unsigned barrier, int arrivals) {
  m.barriers[barrier] = {arrivals, arrivals, 0, 0};
}

void counting_arrive(unsigned barrier, unsigned bytes) {
  counting& b = known(barrier);
  b.bytes += bytes;
  if (--b.missing < 0)
    fail("more arrivals than were expected");
  turn_if_done(b);
}

void counting_wait(unsigned barrier, unsigned parity) {
  const counting& b = known(barrier);
  self().waits = nullptr; // tests again and again
  while (b.phase == parity)
    yield();
}

bool counting_turned(unsigned barrier, unsigned parity) { return known(barrier).phase != parity; }

void copy(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  if (bytes == 0 || bytes % 16 || to % 16 || (unsigned long long)(from) % 16)
    fail("a copy is not of whole units of 16 bytes");
  if (to + bytes > sizeof shared)
    fail("a copy beyond shared memory");
  known(barrier);
  const unsigned char* const data = static_cast<const unsigned char*>(from);
  m.copies.push_back({to, {data, data + bytes}, barrier, 0, {}});
  ++m.events;
  if (!at_random())
    land(m.copies.size() - 1);
}

// ---------------------------------------------------------------- copies that a work-item waits
// for

namespace {

// The first copies that the work-item has asked for come.
void come(std::size_t count) {
  auto& copies = self().copies;
  for (std::size_t i = 0; i < count; ++i)
    store(copies[i]);
  copies.erase(copies.begin(), copies.begin() + long(count));
}

} // namespace

void copy_16_bytes(unsigned to, const void* from) {
  if (to % 16 || (unsigned long long)(from) % 16)
    fail("a copy is not of a whole unit of 16 bytes");
  if (to + 16 > sizeof shared)
    fail("a copy beyond shared memory");
  std::vector<unsigned char> data(16);
  if (from)
    std::memcpy(data.data(), from, 16);
  self().copies.push_back({to, std::move(data), 0, 0, {}});
  if (!at_random())
    come(1);
}

void commit_copies() { self().copy_groups.push_back(self().copies.size()); }

void wait_for_copies(int left) {
  auto& groups = self().copy_groups;
  if (groups.size() <= std::size_t(left))
    return;
  const std::size_t ended = groups.size() - left, count = groups[ended - 1];
  come(count);
  groups.erase(groups.begin(), groups.begin() + long(ended));
  for (std::size_t& end : groups)
    end -= count;
}

void arrive_when_copied(unsigned barrier) {
  known(barrier);
  m.copies.push_back({0, {}, barrier, 1, std::move(self().copies)});
  self().copies.clear();
  self().copy_groups.clear();
  ++m.events;
  if (!at_random())
    land(m.copies.size() - 1);
}

// ---------------------------------------------------------------- tensor cores

namespace {

float number(unsigned bits, halves kind) {
  const bool ieee = kind == halves::ieee;
  unsigned wide = ieee ? (bits & 0x7fff) << 13 : bits << 16;
  float v;
  std::memcpy(&v, &wide, 4);
  if (!ieee)
    return v;
  v *= 0x1p112f; // exponents of halves, of subnormal ones too
  std::memcpy(&wide, &v, 4);
  if ((bits & 0x7c00) == 0x7c00)
    wide |= 0x7f800000;
  wide |= (bits & 0x8000) << 16;
  std::memcpy(&v, &wide, 4);
  return v;
}

// One of the two numbers of a word.
float part(unsigned word, int which, halves kind) {
  return number(word >> 16 * which & 0xffff, kind);
}

float number_at(unsigned address, halves kind) {
  unsigned short bits;
  std::memcpy(&bits, shared + address, 2);
  return number(bits, kind);
}

// The number of row `row` that is the `k`-th of 16, at the address of a descriptor (PTX ISA,
// "Matrix descriptor"): without swizzle cores of 8 rows of 16 bytes; else blocks of 8 rows of 128
// or 64 bytes, with 16-byte chunks permuted by their addresses.
float number_of(unsigned long long descriptor, int row, int k, bool transposed, halves kind) {
  const auto field = [&](int from) { return unsigned(descriptor >> from & 0x3fff) << 4; };
  const unsigned next = field(16), below = field(32);
  const int swizzle = int(descriptor >> 62);
  if (swizzle == 0)
    return number_at(field(0) + row / 8 * below + k / 8 * next + row % 8 * 16 + k % 8 * 2, kind);
  const unsigned bytes = swizzle == 1 ? 128 : 64;
  if (transposed)
    std::swap(row, k);
  const unsigned along = k * 2;
  const unsigned at =
      field(0) + row / 8 * below + row % 8 * bytes + along / bytes * next + along % bytes;
  return number_at(at ^ (at >> 7 & (bytes / 16 - 1)) << 4, kind);
}

// The first products that the 128 work-items of a warpgroup have asked for, of which some are left.
void multiply(int first, int left) {
  const fiber& one = m.fibers[first];
  const std::size_t groups = one.groups.size() - left, count = one.groups[groups - 1];
  for (int t = 0; t < 128; ++t)
    if (m.fibers[first + t].groups != one.groups)
      fail("work-items of a warpgroup ask for different products");
  std::vector<float> right;
  for (std::size_t p = 0; p < count; ++p) {
    const product& asked = one.products[p];
    right.resize(16 * asked.columns);
    for (int n = 0; n < asked.columns; ++n)
      for (int k = 0; k < 16; ++k)
        right[n * 16 + k] = number_of(asked.of_b, n, k, asked.transposed, asked.kind);
    for (int t = 0; t < 128; ++t) {
      const product& mine = m.fibers[first + t].products[p];
      const int quad = first + t / 4 * 4;
      for (int half = 0; half < 2; ++half) {
        const int row = t / 32 * 16 + 8 * half + t % 32 / 4;
        float left_row[16];
        for (int k = 0; k < 16; ++k)
          left_row[k] = asked.a ? part(m.fibers[quad + k % 8 / 2].products[p].a[k / 8 * 2 + half],
                                       k % 2, asked.kind)
                                : number_of(asked.of_a, row, k, false, asked.kind);
        for (int j = 0; j < asked.columns / 8; ++j)
          for (int z = 0; z < 2; ++z) {
            const float* const column = &right[(8 * j + 2 * (t % 4) + z) * 16];
            double sum = 0;
            for (int k = 0; k < 16; ++k)
              sum += double(left_row[k]) * column[k];
            float& d = mine.d[4 * j + 2 * half + z];
            d = float((mine.add ? double(d) : 0.0) + sum);
          }
      }
    }
  }
  for (int t = 0; t < 128; ++t) {
    fiber& its = m.fibers[first + t];
    its.products.erase(its.products.begin(), its.products.begin() + long(count));
    its.groups.erase(its.groups.begin(), its.groups.begin() + long(groups));
    for (std::size_t& end : its.groups)
      end -= count;
  }
}

} // namespace

void wave_product(float* d, const unsigned* a, const unsigned* b, halves kind) {
  unsigned mine[6];
  std::copy(a, a + 4, mine);
  std::copy(b, b + 2, mine + 4);
  const int which = offer(mine, 6, SITE), lane = now.thread % 32;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int of_quad = k % 8 / 2, upper = k / 8;
      const float left = part(taken(which, row * 4 + of_quad)[i / 2 + 2 * upper], k % 2, kind);
      const float right = part(taken(which, column * 4 + of_quad)[4 + upper], k % 2, kind);
      d[i] += left * right;
    }
  }
}

void load_cores(unsigned* b, unsigned row, bool transposed) {
  const int which = offer(&row, 1, SITE), lane = now.thread % 32;
  for (int core = 0; core < 4; ++core) {
    if (!transposed)
      std::memcpy(b + core, shared + taken(which, core * 8 + lane / 4)[0] + lane % 4 * 4, 4);
    unsigned short two[2];
    for (int i = 0; transposed && i < 2; ++i)
      std::memcpy(two + i, shared + taken(which, core * 8 + lane % 4 * 2 + i)[0] + lane / 4 * 2, 2);
    if (transposed)
      std::memcpy(b + core, two, 4);
  }
}

void ask_product(const product& asked) { self().products.push_back(asked); }

void commit_products() { self().groups.push_back(self().products.size()); }

void wait_for_products(int left) {
  const int group = now.thread / 128;
  rendezvous& g = m.warpgroups[group];
  wait_at(g, 128, SITE);
  if (self().groups.size() > std::size_t(left)) // the first to go on
    multiply(group * 128, left);
}

// ---------------------------------------------------------------- blocks

namespace {

int place_in(int i, int count, unsigned reversed) { return reversed ? count - 1 - i : i; }

// Runs every lane of a wave that can run, until it waits.
void turn(int wave) {
  for (int i = 0; i < m.wave && m.error.empty(); ++i) {
    const int thread = wave * m.wave + place_in(i, m.wave, m.schedule & 1);
    if (can_go_on(m.fibers[thread]))
      resume(thread);
  }
}

void turns_in_order() {
  const int waves = m.threads / m.wave;
  for (int w = 0; w < waves; ++w) {
    long long before;
    do {
      before = m.events;
      turn(place_in(w, waves, m.schedule & 2));
    } while (m.events != before && m.error.empty());
  }
}

void turns_at_random() {
  std::vector<int> waves(m.threads / m.wave);
  for (std::size_t w = 0; w < waves.size(); ++w)
    waves[w] = int(w);
  std::shuffle(waves.begin(), waves.end(), m.random);
  for (const int w : waves)
    turn(w);
  // An awaited copy has to come.
  const bool some = m.random() % 2;
  if (!m.copies.empty() && some)
    land(m.random() % m.copies.size());
}

void run_block(const shared_place* places) {
  for (auto* place = places; place; place = place->next)
    std::memset(place->data, 0xcd, place->bytes);
  m.waves.assign(m.threads / m.wave, {});
  m.warpgroups.assign(m.threads / 128, {});
  m.block = {};
  for (rendezvous& g : m.numbered)
    g = {};
  m.barriers.clear();
  m.copies.clear();
  for (int t = 0; t < m.threads; ++t) {
    m.fibers[t].ended = false;
    m.fibers[t].products.clear(); // which no work-item waited for
    m.fibers[t].groups.clear();
    m.fibers[t].copies.clear();
    m.fibers[t].copy_groups.clear();
    m.fibers[t].waits = nullptr;
  }
  for (int idle = 0;;) {
    const long long before = m.events;
    at_random() ? turns_at_random() : turns_in_order();
    if (!m.error.empty())
      return;
    const auto live = std::count_if(m.fibers.begin(), m.fibers.begin() + m.threads,
                                    [](const fiber& f) { return !f.ended; });
    if (live == 0)
      break;
    idle = m.events == before && m.copies.empty() ? idle + 1 : 0;
    if (idle > 1)
      return blame(std::to_string(live) +
                   " work-items wait for others who do not come: divergent code");
  }
  if (!m.copies.empty())
    blame("copies arrive after the block has ended");
  for (int i = 0; i < 16; ++i)
    if (m.numbered[i].arrived != 0)
      blame("barrier " + std::to_string(i) + " is left half full");
}

} // namespace

void run(long long blocks, int threads, int wave, shared_place* const* places, const void* body,
         void (*call)(const void*)) {
  m.error.clear();
  if (int(m.fibers.size()) < threads)
    m.fibers = std::vector<fiber>(threads);
  m.threads = threads;
  m.wave = wave;
  m.body = body;
  m.call = call;
  m.random.seed(m.schedule);
  now.blocks = blocks;
  for (long long b = 0; b < blocks && m.error.empty(); ++b) {
    now.block = m.schedule & 4 ? blocks - 1 - b : b;
    run_block(*places);
  }
  if (!m.error.empty())
    for (fiber& f : m.fibers) {
      f.started = false;
      f.products.clear();
      f.groups.clear();
      f.copies.clear();
      f.copy_groups.clear();
    }
}

extern "C" {
const char* lockstep_error() { return m.error.c_str(); }
void lockstep_schedule(unsigned schedule) { m.schedule = schedule; }
}

} // namespace wl::lockstep
