// Makes and checks the bytes that are sent. They are those of hosepipe's payload `random`, so that a record's checksum
// can be recomputed on any machine from its seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "words.hpp"

// WyRand (Wang Yi, wyhash v4.2), with the same sequence as in hosepipe: 64 bits at a time from a 64-bit state.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state(seed) {}
    std::uint64_t next();
    // A number below `bound`, which must not be 0.
    std::uint64_t below(std::uint64_t bound);

  private:
    std::uint64_t state;
};

// One period of the payload, followed by the beginning of the next. The length of the period is a prime (2^17 - 1 bytes), so
// that blocks differ, and a lost, repeated or swapped block is detected.
class Tile {
  public:
    explicit Tile(std::uint64_t seed);
    // Copies the stream's bytes from position `phase` in the period to `out`; returns the position after them.
    std::size_t copy(std::size_t phase, std::byte *out, std::size_t size) const;
    // The longest contiguous piece from position `phase` on.
    const std::byte *piece(std::size_t phase, std::size_t &size) const;
    std::size_t advance(std::size_t phase, std::size_t size) const;

  private:
    std::vector<std::byte> bytes;
};

// A buffer of whole pages. Each page is written once here, so that page faults are not timed.
class Block {
  public:
    explicit Block(std::size_t size);  // throws std::bad_alloc
    ~Block();
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    Block(Block &&other) noexcept : start(other.start), length(other.length) { other.start = nullptr; }
    std::byte *data() const { return start; }
    std::size_t size() const { return length; }

  private:
    std::byte *start;
    std::size_t length;
};

// The sender's side: fills blocks with the next bytes of the stream; at level `none` blocks keep their content.
class Producer {
  public:
    Producer(const Tile &tile, DataLevel level) : tile(tile), fresh(level != DataLevel::None) {}
    void first_fill(const Block &block) const { tile.copy(0, block.data(), block.size()); }
    void fill(const Block &block) {
        if (fresh) phase = tile.copy(phase, block.data(), block.size());
    }
    bool makes_fresh_blocks() const { return fresh; }

  private:
    const Tile &tile;
    bool fresh;
    std::size_t phase = 0;
};

// The receiver's side: at level `verify` every byte is compared with the expected byte, and its XOR is computed for the record.
class Checker {
  public:
    Checker(const Tile &tile, DataLevel level) : tile(tile), verifies(level == DataLevel::Verify) {}
    // Returns false if a byte differs.
    bool accept(const std::byte *received, std::size_t size) { return !verifies || compare(received, size); }
    // Position of the first piece that differed, in bytes from the stream's beginning.
    std::uint64_t position() const { return seen; }
    std::optional<std::string> checksum() const;

  private:
    bool compare(const std::byte *received, std::size_t size);

    const Tile &tile;
    bool verifies;
    std::size_t phase = 0;
    std::uint64_t seen = 0;
    std::uint64_t sum = 0;
};
