#include "sweep.hpp"

#include <algorithm>

namespace {

constexpr std::uint64_t SHORT_SIZE_COUNT = 500 << 10;
constexpr std::uint64_t LONG_SIZE_COUNT = 100 << 10;
constexpr std::uint64_t TRIAL_BYTES_MAX = 4ULL << 30;
constexpr std::uint64_t LARGEST_BLOCK = 16 << 20;

// SHORT_SIZES are those that the study writes with one to three digits, LONG_SIZES those with four digits, and 3k and 4k.
constexpr std::uint64_t SHORT_SIZES[] = {
    1,   2,   3,   4,   6,   8,   10,  12,  14,  16,  20,  24,  28,  32,  36,  40,  44,  48,  52,
    56,  60,  64,  72,  80,  88,  96,  104, 112, 120, 128, 144, 160, 176, 192, 208, 224, 240, 256,
    288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 832, 896, 960};
constexpr std::uint64_t LONG_SIZES[] = {1024, 1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096};

constexpr std::int64_t SLACKS[] = {-1, 0, 1, 8, 16, 23, 24, 25, 28, 32, 40, 48, 56, 64};
constexpr std::uint64_t SLACK_SEARCH_BLOCKS[] = {64, 4096};
constexpr std::uint64_t SLACK_SEARCH_COUNT = 16;

void add(Case one, std::uint64_t block_bytes, std::uint64_t count, std::vector<Case> &cases) {
    one.block_bytes = block_bytes;
    one.count = count;
    cases.push_back(one);
}

}  // namespace

void add_bradford1(const Case &plain, std::vector<Case> &cases) {
    Case one = plain;
    one.threads = 1;
    for (std::uint64_t size : SHORT_SIZES) add(one, size, SHORT_SIZE_COUNT, cases);
    for (std::uint64_t size : LONG_SIZES) add(one, size, LONG_SIZE_COUNT, cases);
}

void add_bradford2(const Case &plain, std::vector<Case> &cases) {
    Case one = plain;
    one.threads = 2;
    for (std::uint64_t size = 1; size <= LARGEST_BLOCK; size *= 2) {
        const std::uint64_t study_count = size < 1000 ? SHORT_SIZE_COUNT : LONG_SIZE_COUNT;
        add(one, size, std::min(study_count, TRIAL_BYTES_MAX / size), cases);
    }
}

void add_slack_search(const Case &plain, bool block_given, std::vector<Case> &cases) {
    Case one = plain;
    one.threads = 1;
    for (std::uint64_t block : SLACK_SEARCH_BLOCKS) {
        for (std::int64_t slack : SLACKS) {
            one.slack_bytes = slack;
            add(one, block_given ? plain.block_bytes : block, SLACK_SEARCH_COUNT, cases);
        }
        if (block_given) break;
    }
}
