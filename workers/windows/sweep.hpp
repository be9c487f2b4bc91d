// The study's series of cases: the sizes of the blocks, and their numbers.
#pragma once

#include "words.hpp"

// One thread: the study's sizes; 500,000 blocks for sizes below 1000, else 100,000.
void add_bradford1(const Case &plain, std::vector<Case> &cases);

// Two threads: powers of two from 1 byte to 16 MiB; the study's numbers of blocks, but at most 4 GiB in a trial.
void add_bradford2(const Case &plain, std::vector<Case> &cases);

// One thread with increasing slack. The first case has one byte too few, so it must block on a system that enforces quotas.
void add_slack_search(const Case &plain, bool block_given, std::vector<Case> &cases);
