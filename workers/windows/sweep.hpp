// The study's sweeps: which blocks, and how many of them.
#pragma once

#include "words.hpp"

// One thread: the study's sizes, 500k blocks where the size is written with one to three digits, else 100k.
void add_bradford1(const Case &plain, std::vector<Case> &cases);

// Two threads: powers of two from 1 byte to 16 MiB. The study's counts, and no more than 4 GiB in a trial.
void add_bradford2(const Case &plain, std::vector<Case> &cases);

// One thread with more and more slack, and with one byte too few, which must block wherever quotas are kept.
void add_slack_search(const Case &plain, bool block_given, std::vector<Case> &cases);
