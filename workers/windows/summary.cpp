#include "summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

double middle(const std::vector<double> &sorted) {
    const std::size_t half = sorted.size() / 2;
    if (sorted.size() % 2 == 1) return sorted[half];
    return std::clamp(sorted[half - 1] / 2 + sorted[half] / 2, sorted[half - 1], sorted[half]);
}

double median_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return middle(values);
}

// The largest k for which the k-th smallest and k-th largest of n values enclose the median with 95 %, or 1 if there
// is none: the number of values below the median is binomial with p = 1/2.
std::size_t interval_rank(std::size_t count) {
    const double n = static_cast<double>(count);
    // The normal approximation; 0.5^n would soon leave the range of a double.
    if (count > 500) return static_cast<std::size_t>(std::floor((n - 1.96 * std::sqrt(n)) / 2));
    double probability = std::pow(0.5, n), below = probability;
    std::size_t rank = 0;
    while (below <= 0.025) {
        ++rank;
        probability *= (n - static_cast<double>(rank) + 1) / static_cast<double>(rank);
        below += probability;
    }
    return std::max<std::size_t>(rank, 1);
}

// Modified z-score above 3.5 (Iglewicz and Hoaglin, 1993).
std::uint32_t outliers_in(const std::vector<double> &values) {
    if (values.size() < 3) return 0;
    const double center = median_of(values);
    std::vector<double> deviations;
    for (double value : values) deviations.push_back(std::fabs(value - center));
    const double mad = median_of(deviations);
    const double mean = std::accumulate(deviations.begin(), deviations.end(), 0.0) / static_cast<double>(values.size());
    // The mean deviation is used if more than half of the values are equal.
    const double sigma = mad > 0 ? mad * 1.4826 : mean * 1.2533;
    return static_cast<std::uint32_t>(std::count_if(deviations.begin(), deviations.end(), [&](double deviation) {
        return sigma > 0 && deviation / sigma > 3.5;
    }));
}

// `share`: the longer side of the interval as a share of the median. `quiet` figures can be ranked; between `noisy` ones, smaller differences
// count as equal.
const char *verdict(double share) { return share <= 0.05 ? "quiet" : share <= 0.15 ? "noisy" : "wild"; }

}  // namespace

double throughput_bytes_per_s(const Sample &sample) {
    return static_cast<double>(sample.bytes) * 1e9 / static_cast<double>(sample.elapsed_ns);
}

std::optional<Summary> summarise(const std::vector<Sample> &samples) {
    if (samples.empty()) return std::nullopt;
    std::vector<double> values;
    for (const Sample &sample : samples) values.push_back(throughput_bytes_per_s(sample));
    std::sort(values.begin(), values.end());
    const std::size_t rank = interval_rank(values.size());
    Summary summary{};
    summary.median = middle(values);
    summary.low = values[rank - 1];
    summary.high = values[values.size() - rank];
    summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    double squares = 0;
    for (double value : values) squares += (value - summary.mean) * (value - summary.mean);
    if (values.size() > 1) {
        summary.stddev = std::sqrt(squares / static_cast<double>(values.size() - 1));
        const double arm = std::max(summary.median - summary.low, summary.high - summary.median);
        summary.noise = verdict(arm / summary.median);
    }
    summary.outliers = outliers_in(values);
    return summary;
}
