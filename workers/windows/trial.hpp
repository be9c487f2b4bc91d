// One timed run of a case.
#pragma once

#include "payload.hpp"

struct Outcome {
    Granted granted;
    Sample sample;
};

// Makes a pipe, moves `wanted.count` blocks through it and takes the time. Throws Failed; `guard`'s reasons among them.
Outcome run_trial(const Case &wanted, const Tile &tile, std::chrono::milliseconds hangs_after);

// Thrown in place of Failed when it was Ctrl-C that ended the trial.
struct Interrupted {};
