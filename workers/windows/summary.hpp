// A row's summary, computed as hosepipe computes it (crates/stats), so that a record read there says the same.
#pragma once

#include "words.hpp"

struct Summary {
    double median, low, high, mean, stddev;  // bytes per second
    const char *noise;                       // a word of docs/RECORD.md; null where one sample shows no spread
    std::uint32_t outliers;
};

double throughput_bytes_per_s(const Sample &sample);

// None without samples.
std::optional<Summary> summarise(const std::vector<Sample> &samples);
