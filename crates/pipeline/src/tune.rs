//! What makes a pipeline faster: its text, the rules that change a stage, and texts that must not be run several times.

mod lexer;
pub mod rules;
pub mod safety;
pub mod script;
pub mod text;
