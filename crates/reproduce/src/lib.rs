//! Runs a published study with its own parameters, part by part, into one record that can be resumed.
