// Totals and rows of vectors of MPI ranks on one host, exchanged through shared memory.
//
// Each rank has two posts in the shared window, for alternating turns: a rank posts turn t + 2
// after it has read turn t + 1 of all others, so after all of them have read turn t. MPI messages
// cost more: their Python code has to be loaded into the caches again after each product.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "omp/call.hpp"

namespace wl {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

enum class RankTotal { SUM, LARGEST, NORM };

// The message of a rank in one turn.
struct alignas(64) RankPost {
  static constexpr i64 kBytes = 8192 - 64;

  std::atomic<std::uint64_t> turn;
  i64 requests; // requests to stop that the rank has received
  alignas(8) u8 numbers[kBytes];
};

// One rank's view of the window.
class RankMemory {
public:
  // `requests` are two numbers: how many requests to stop the rank has had, and how many it obeyed.
  // `look` is called with the number of a rank now and then while this one waits for it, and raises
  // if a rank has failed;
  // `obey` is called with a number of requests, and raises if it is larger than before.
  RankMemory(u8* window, int rank, int size, const i64* requests, bool crowded, Object look,
             Object obey)
      : posts_(reinterpret_cast<RankPost*>(window)), rank_(rank), size_(size), requests_(requests),
        crowded_(crowded), look_(std::move(look)), obey_(std::move(obey)) {}

  static i64 bytes(int size) { return 2 * size * static_cast<i64>(sizeof(RankPost)); }

  // Replaces numbers by their totals over the ranks, added up in the order of ranks.
  template <class R>
  void total(R* numbers, i64 count, RankTotal kind);

  int size() const { return size_; }

  // Waits until a number that another rank writes has reached `turn`.
  void await(int rank, const std::atomic<std::uint64_t>& number, std::uint64_t turn) const;

private:
  RankPost* const posts_; // of turn 0 and of turn 1, by rank
  const int rank_, size_;
  const i64* const requests_;
  const bool crowded_;
  const Object look_, obey_;
  std::uint64_t turn_ = 0;
};

// The position of the rows of a rank in the ghosts, in bytes.
struct RankPart {
  int rank;
  i64 place, bytes;
};

// The rows that a rank repeatedly exchanges with other ranks. The memory of a sender has a header
// and two alternating buffers.
class RankRows {
public:
  // `mine` is the rank's own memory, or nullptr if it sends nothing; `bytes` is the size of its
  // packed rows, `targets` the ranks that read them. `connect` is called when rows are first
  // received, and returns the memory of the sources: they need not have it before.
  RankRows(std::shared_ptr<RankMemory> ranks, int rank, u8* mine, i64 bytes,
           std::vector<int> targets, std::vector<RankPart> sources, Object connect)
      : ranks_(std::move(ranks)), rank_(rank), mine_(mine), bytes_(bytes),
        targets_(std::move(targets)), sources_(std::move(sources)), connect_(std::move(connect)) {}

  static i64 memory_bytes(int size, i64 packed) {
    return (1 + size) * static_cast<i64>(sizeof(Line)) + 2 * rounded(packed);
  }

  void send(const u8* packed);
  void receive(u8* ghosts);

private:
  // Of the sender, with the turn that it has sent, and of each rank, with the turn that it has
  // read.
  struct alignas(64) Line {
    std::atomic<std::uint64_t> turn;
    i64 begin, packed; // of the part of a rank, and of all parts, in bytes
    i64 reads, opened; // for the Python side
  };
  static constexpr i64 rounded(i64 bytes) { return (bytes + 63) / 64 * 64; }
  static std::atomic<std::uint64_t>& sent(u8* memory) {
    return reinterpret_cast<Line*>(memory)->turn;
  }
  static Line& line(u8* memory, int rank) { return reinterpret_cast<Line*>(memory)[1 + rank]; }
  u8* buffer(u8* memory, i64 packed, std::uint64_t turn) const {
    return memory + (1 + ranks_->size()) * static_cast<i64>(sizeof(Line)) +
           static_cast<i64>(turn % 2) * rounded(packed);
  }
  void connect();

  const std::shared_ptr<RankMemory> ranks_;
  const int rank_;
  u8* const mine_;
  const i64 bytes_;
  const std::vector<int> targets_;
  const std::vector<RankPart> sources_;
  Object connect_, memories_;
  std::vector<u8*> memory_; // of the sources
  std::uint64_t turn_ = 0;
};

} // namespace wl
