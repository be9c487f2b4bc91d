//! `--code-to`: writes the program to a file, or two programs and their README to a folder.

use std::path::Path;

use model::Spec;
use programs::folder::{README, WRITTEN, readme};
use programs::{Program, Question, Role};

use crate::destination::Destination;
use crate::terminal::usage;

/// Checks where the programs of a question are to be written: a regular file or a folder, or what does not exist yet.
///
/// # Errors
/// It is of another kind, or cannot be written.
pub(super) fn check(path: &Path, question: &Question) -> anyhow::Result<()> {
    if !question.is_of_pair() {
        return program_file(path).map(drop);
    }
    let Ok(there) = path.metadata() else {
        // It will be made in a folder that is there.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return match rustix::fs::access(parent, rustix::fs::Access::WRITE_OK) {
            Ok(()) if parent.is_dir() => Ok(()),
            _ => usage(format!(
                "cannot make the folder `{}`: `{}` is no folder that you may write to",
                path.display(),
                parent.display()
            )),
        };
    };
    if !there.is_dir() {
        return usage(format!(
            "`{}` is not a folder: the answer is two programs, for which --code-to takes a folder",
            path.display()
        ));
    }
    for (role, language) in [Role::Sender, Role::Receiver].into_iter().zip(question.code.both()) {
        program_file(&path.join(role.file(language)))?;
    }
    let readme = path.join(README);
    program_file(&readme)?;
    match std::fs::read_to_string(&readme) {
        Ok(text) if !text.contains(WRITTEN) => usage(format!(
            "`{}` is there and not of `hosepipe recommend`: give another folder",
            readme.display()
        )),
        _ => Ok(()),
    }
}

/// The file of a program: a regular file, or one that does not exist yet.
fn program_file(path: &Path) -> anyhow::Result<Destination> {
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return usage(format!("`{}` is not a regular file", path.display()));
    }
    let destination = Destination::File(path.to_owned());
    destination.check().map(|()| destination)
}

/// Writes a program, and its library into the same folder; two programs into a folder, with a README.
///
/// # Errors
/// A file cannot be written.
pub(super) fn save(
    path: &Path,
    programs: &[Program],
    spec: &Spec,
    question: &Question,
) -> anyhow::Result<()> {
    if let [program] = programs {
        return save_one(path, program);
    }
    if !path.is_dir() {
        std::fs::create_dir(path).map_err(|error| {
            anyhow::anyhow!("cannot make the folder {}: {}", path.display(), model::describe_errno(&error))
        })?;
    }
    for program in programs {
        save_one(&path.join(program.file()), program)?;
    }
    program_file(&path.join(README))?.write(&readme(programs, spec, question))
}

fn save_one(path: &Path, program: &Program) -> anyhow::Result<()> {
    if let Some(library) = program.library {
        program_file(&path.with_file_name(library.file))?.write(library.text)?;
    }
    program_file(path)?.write(&program.text_in(path))
}
