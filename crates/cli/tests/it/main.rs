//! The program as its users meet it: all end-to-end tests in one program, so that they are linked once.

mod common;

mod absent;
mod adaptive;
mod bad_input;
mod bench_workers;
mod bottleneck;
mod compare;
mod conformance;
mod diff;
mod differential;
mod doctor;
mod faults;
mod faults_round_trips;
mod filters;
mod hostile;
mod house;
mod limits;
mod load;
mod memory;
mod outputs;
mod page;
mod quota;
mod recommend;
mod report;
mod reproduce;
mod run;
mod sh;
mod sh_jobs;
mod sh_programs;
mod sh_prompt;
mod shells;
mod suites;
mod windows;
mod workers;
mod workers_faults;
