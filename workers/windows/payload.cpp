#include "payload.hpp"

#include <windows.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace {

constexpr std::size_t PERIOD = (1 << 17) - 1;
constexpr std::size_t OVERLAP_BYTES = 64 << 10;
constexpr std::size_t PAGE_BYTES = 4096;

}  // namespace

std::uint64_t Random::next() {
    state += 0x2d358dccaa6c78a5;
    const auto product = static_cast<unsigned __int128>(state) * (state ^ 0x8bb84b93962eacc9);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t Random::below(std::uint64_t bound) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(next()) * bound >> 64);
}

Tile::Tile(std::uint64_t seed) : bytes(PERIOD + OVERLAP_BYTES) {
    Random random(seed);
    for (std::size_t at = 0; at < PERIOD; at += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(&bytes[at], &word, std::min<std::size_t>(8, PERIOD - at));
    }
    std::memcpy(&bytes[PERIOD], bytes.data(), OVERLAP_BYTES);
}

const std::byte *Tile::piece(std::size_t phase, std::size_t &size) const {
    size = bytes.size() - phase;
    return bytes.data() + phase;
}

std::size_t Tile::advance(std::size_t phase, std::size_t size) const {
    // Avoids a division for each 1-byte block, whose cost would be measurable.
    const std::size_t next = phase + size;
    return next < PERIOD ? next : next % PERIOD;
}

std::size_t Tile::copy(std::size_t phase, std::byte *out, std::size_t size) const {
    while (size > 0) {
        std::size_t length = 0;
        const std::byte *from = piece(phase, length);
        length = std::min(length, size);
        std::memcpy(out, from, length);
        out += length;
        size -= length;
        phase = advance(phase, length);
    }
    return phase;
}

Block::Block(std::size_t size) : length(size) {
    start = static_cast<std::byte *>(VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
    if (!start) throw std::bad_alloc();
    for (std::size_t at = 0; at < size; at += PAGE_BYTES) {
        *const_cast<volatile std::byte *>(start + at) = std::byte{1};
    }
}

Block::~Block() {
    if (start) VirtualFree(start, 0, MEM_RELEASE);
}

bool Checker::compare(const std::byte *received, std::size_t size) {
    while (size > 0) {
        std::size_t length = 0;
        const std::byte *expected = tile.piece(phase, length);
        length = std::min(length, size);
        std::uint64_t differs = 0, folded = 0;
        std::size_t at = 0;
        for (; at + 8 <= length; at += 8) {
            std::uint64_t is = 0, must = 0;
            std::memcpy(&is, received + at, 8);
            std::memcpy(&must, expected + at, 8);
            differs |= is ^ must;
            folded ^= is;
        }
        for (; at < length; ++at) {
            differs |= static_cast<std::uint64_t>(received[at] ^ expected[at]);
            folded ^= static_cast<std::uint64_t>(received[at]);
        }
        sum ^= folded;
        if (differs != 0) return false;
        received += length;
        size -= length;
        seen += length;
        phase = tile.advance(phase, length);
    }
    return true;
}

std::optional<std::string> Checker::checksum() const {
    if (!verifies) return std::nullopt;
    std::uint64_t folded = sum ^ (sum >> 32);
    folded ^= folded >> 16;
    folded ^= folded >> 8;
    constexpr char HEX[] = "0123456789abcdef";
    return std::string{HEX[folded >> 4 & 15], HEX[folded & 15]};
}
