//! Studies as they are shown, with figures made by hand.
// The tests of `report` use the rest of it.
#[allow(dead_code)]
#[path = "../../../report/tests/it/mock.rs"]
mod mock;

mod study;
