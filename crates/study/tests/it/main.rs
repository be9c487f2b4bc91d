//! Studies as they are shown, with figures made by hand.
// Some functions of the mock are used only by the tests of `report`.
#[allow(dead_code)]
#[path = "../../../report/tests/it/mock.rs"]
mod mock;

mod study;
