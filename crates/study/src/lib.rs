//! Published studies: for each a folder with its parameters and published figures (`study.toml`), how it is run here
//! (`run.rs`), and how what came of it is shown beside what was published (`view.rs`).
//!
//! A study is run part by part into one record that can be resumed ([`conduct`]). Nothing here prints.

mod bradford;
mod comp517;
mod conduct;
mod kernel_pipe;
mod needs;
mod part;
mod pipelines;
mod registry;
mod scale;
mod size;
mod stover;
mod streams;
mod view;

pub use comp517::{Comp517, FILE_NAME, FOLDER_NAME, Link, Material, Needs as Runs, Pipeline, comp517};
pub use conduct::{Resume, check_resume, conduct, foreign_part};
pub use needs::{Have, Lack, Needs, needs};
pub use part::{Job, Part, ReproduceError, Stage, parts};
pub use registry::{Head, Name, head};
pub use scale::Scale;
pub use view::{summarise, view};
