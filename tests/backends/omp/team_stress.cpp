// Several threads share loops of all kinds at once; compiled with a sanitizer by test_team.py.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "omp/ordered_blocks.hpp"
#include "omp/parallel.hpp"

namespace wl {

// No Python here, and no Ctrl-C.
Belonging& belonging() {
  thread_local Belonging here;
  return here;
}
void Interruption::look() {}
void this_is_the_main_thread() {}

namespace {

std::atomic<long> wrong{0};

void expect(bool holds) { wrong += !holds; }

// Every part is done once, loops within are plain, and exceptions of a part come back.
void share_one(std::mt19937& random, int parts, i64 count) {
  std::vector<i64> x(count, 0);
  std::vector<int> done(parts, 0);
  const int thrower = random() % 20 == 0 ? static_cast<int>(random() % parts) : -1;
  bool thrown = false;
  try {
    for_parts(parts, [&](int part) {
      const Share share(count, part, parts);
      for_parts(2, [&](int half) {
        const Share mine(share.end - share.begin, half, 2);
        for (i64 i = mine.begin; i < mine.end; ++i)
          x[share.begin + i] += part + 1;
      });
      ++done[part];
      if (part == thrower)
        throw std::runtime_error("as asked");
    });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  expect(thrown == (thrower >= 0));
  for (int part = 0; part < parts; ++part) {
    expect(done[part] == 1);
    const Share share(count, part, parts);
    for (i64 i = share.begin; i < share.end; ++i)
      expect(x[i] == part + 1);
  }
}

// Every block is done once, after the blocks that it needs, and sees their writes.
void follow_in_lanes(std::mt19937& random, int lanes, int count) {
  struct Block {
    int step;
    std::vector<int> needs; // steps
  };
  std::vector<std::vector<Block>> blocks(lanes);
  std::vector<int> lane(count), place(count);
  for (int step = 0; step < count; ++step) {
    lane[step] = static_cast<int>(random() % lanes);
    place[step] = static_cast<int>(blocks[lane[step]].size());
    blocks[lane[step]].push_back({step, {}});
    for (int tries = 0; step > 0 && tries < 2; ++tries)
      blocks[lane[step]].back().needs.push_back(step - 1 - static_cast<int>(random() % step % 9));
  }
  std::vector<int> starts{0}, begin, waits{0}, of, needed;
  std::vector<const Block*> all;
  for (const std::vector<Block>& own : blocks) {
    for (const Block& block : own) {
      for (const int need : block.needs)
        of.push_back(lane[need]), needed.push_back(place[need] + 1);
      waits.push_back(static_cast<int>(of.size()));
      begin.push_back(block.step);
      all.push_back(&block);
    }
    starts.push_back(static_cast<int>(all.size()));
  }
  std::vector<int> times(count, 0);
  const Lanes<int> shared{starts.data(), begin.data(),  waits.data(),
                          of.data(),     needed.data(), lanes};
  for_lanes(shared, [&](i64 b) {
    for (const int need : all[b]->needs)
      expect(times[need] == 1);
    ++times[all[b]->step];
  });
  for (const int done : times)
    expect(done == 1);
}

void share_all(int seed, double seconds) {
  std::mt19937 random(seed);
  const i64 end = now_in_ns() + static_cast<i64>(seconds * 1e9);
  while (now_in_ns() < end) {
    const int parts = 2 + static_cast<int>(random() % 6);
    const i64 count = i64(1) << (4 + random() % 10);
    share_one(random, parts, count);
    std::atomic<i64> near{0}, in_turn{0};
    for_each_near(count, parts, [&](i64 i) { near += i; });
    for_each_in_turn(count, 7, parts, [&](i64 i) { in_turn += i; });
    follow_in_lanes(random, parts, static_cast<int>(count % 300));
    expect(near == count * (count - 1) / 2 && in_turn == near);
    if (random() % 64 == 0) // until workers sleep
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 600));
    if (random() % 256 == 0)
      crowding().seen(now_in_ns());
  }
}

} // namespace

} // namespace wl

int main(int, char** arguments) {
  const double seconds = std::atof(arguments[1]);
  std::vector<std::thread> callers;
  for (int seed = 0; seed < 3; ++seed)
    callers.emplace_back(wl::share_all, seed, seconds);
  for (std::thread& caller : callers)
    caller.join();
  std::printf("%ld wrong\n", wl::wrong.load());
  return wl::wrong != 0;
}
